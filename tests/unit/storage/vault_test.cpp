#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "actors/core/errors.hpp"
#include "storage/journal_log.hpp"
#include "storage/memory_store.hpp"
#include "storage/vault.hpp"
#include "tests/unit/storage/temporary_folder.hpp"

namespace busbar::storage {
namespace {

class vault_test : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(new_key(key_).ok());
    vault_ = open();
  }
  std::shared_ptr<vault> open() {
    auto opened = vault::open(disk_, key_);
    EXPECT_TRUE(opened.ok()) << opened.status();
    return opened.ok() ? *opened : nullptr;
  }
  std::string raw(const std::string& name) { return disk_->get(family::vault, name)->value(); }
  void overwrite(const std::string& name, const std::string& bytes) {
    store_write write;
    write.put(family::vault, name, bytes);
    ASSERT_TRUE(disk_->write(write).ok());
  }
  std::optional<core::fault> refusal() { return core::fault_of(vault::open(disk_, key_).status()); }

  const temporary_folder folder_;
  const std::string key_ = folder_.file("vault.key");
  std::shared_ptr<memory_store> disk_ = std::make_shared<memory_store>();
  std::shared_ptr<vault> vault_;
};

TEST_F(vault_test, gives_a_secret_back_also_after_reopening_and_lists_names_only) {
  ASSERT_TRUE(vault_->put("r01/c07/busbar", "s3cret").ok());
  ASSERT_TRUE(vault_->put("r01/c01/busbar", "").ok());
  vault_ = open();
  EXPECT_EQ(vault_->get("r01/c07/busbar")->reveal(), "s3cret");
  EXPECT_EQ(vault_->get("r01/c01/busbar")->reveal(), "");
  EXPECT_EQ(*vault_->list(), (std::vector<std::string>{"r01/c01/busbar", "r01/c07/busbar"}));
  ASSERT_TRUE(vault_->erase("r01/c07/busbar").ok());
  EXPECT_EQ(vault_->get("r01/c07/busbar").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(vault_test, a_sealed_secret_rides_in_a_journal_batch) {
  journal_options options;
  options.clock = [] { return core::instant{1, 1}; };
  const auto log = journal_log::open(disk_, options);
  ASSERT_TRUE(log.ok());
  core::journal_batch batch;
  batch.secrets.push_back(*vault_->seal("r01/c07/busbar", "s3cret"));
  ASSERT_TRUE((*log)->commit(batch).ok());
  EXPECT_EQ(vault_->get("r01/c07/busbar")->reveal(), "s3cret");
  core::journal_batch closing;
  closing.secrets_erased.push_back("r01/c07/busbar");
  ASSERT_TRUE((*log)->commit(closing).ok());
  EXPECT_FALSE(vault_->get("r01/c07/busbar").ok());
}

TEST_F(vault_test, nothing_readable_lies_in_the_store) {
  ASSERT_TRUE(vault_->put("name", "a-very-plain-secret").ok());
  EXPECT_EQ(raw("name").find("plain"), std::string::npos);
}

TEST_F(vault_test, every_changed_bit_is_noticed) {
  ASSERT_TRUE(vault_->put("name", "secret").ok());
  const std::string sealed = raw("name");
  for (std::size_t at = 0; at < sealed.size(); ++at) {
    std::string changed = sealed;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    overwrite("name", changed);
    EXPECT_EQ(core::fault_of(vault_->get("name").status()), core::fault::VAULT_DAMAGED) << at;
    overwrite("name", sealed.substr(0, at));
    EXPECT_EQ(core::fault_of(vault_->get("name").status()), core::fault::VAULT_DAMAGED) << at;
  }
  overwrite("name", sealed);
  EXPECT_TRUE(vault_->get("name").ok());
}

TEST_F(vault_test, a_secret_moved_to_another_name_does_not_verify) {
  ASSERT_TRUE(vault_->put("r01/c07/busbar", "secret").ok());
  overwrite("r01/c08/busbar", raw("r01/c07/busbar"));
  EXPECT_EQ(core::fault_of(vault_->get("r01/c08/busbar").status()), core::fault::VAULT_DAMAGED);
}

TEST_F(vault_test, no_nonce_comes_twice) {
  std::set<std::string> nonces;
  for (int i = 0; i < 5000; ++i) nonces.insert(vault_->seal("name", "same")->bytes.substr(1, 12));
  EXPECT_EQ(nonces.size(), 5000U);
}

TEST_F(vault_test, refuses_names_that_it_keeps_for_itself) {
  EXPECT_FALSE(vault_->put("", "x").ok());
  EXPECT_FALSE(vault_->put(std::string("\0check", 6), "x").ok());
  EXPECT_FALSE(vault_->erase(std::string("\0check", 6)).ok());
}

TEST_F(vault_test, refuses_a_key_that_others_may_read) {
  ASSERT_EQ(::chmod(key_.c_str(), 0640), 0);
  EXPECT_EQ(refusal(), core::fault::VAULT_KEY_REFUSED);
}

TEST_F(vault_test, refuses_a_key_of_another_size_or_none) {
  std::ofstream(key_, std::ios::app) << "x";
  EXPECT_EQ(refusal(), core::fault::VAULT_KEY_REFUSED);
  std::filesystem::remove(key_);
  EXPECT_EQ(refusal(), core::fault::VAULT_KEY_REFUSED);
}

TEST_F(vault_test, refuses_another_key_than_the_store_was_sealed_with) {
  std::filesystem::remove(key_);
  ASSERT_TRUE(new_key(key_).ok());
  EXPECT_EQ(refusal(), core::fault::VAULT_KEY_REFUSED);
}

TEST_F(vault_test, a_key_is_never_overwritten_and_is_the_owners_alone) {
  EXPECT_EQ(new_key(key_).code(), absl::StatusCode::kAlreadyExists);
  struct stat facts {};
  ASSERT_EQ(::stat(key_.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 07777, 0600U);
  EXPECT_EQ(facts.st_size, 32);
}

TEST(secret_test, moving_leaves_nothing_behind) {
  secret first(std::string_view("short"));
  const secret second(std::move(first));
  EXPECT_EQ(second.reveal(), "short");
  EXPECT_TRUE(first.empty());  // NOLINT: that is what is tested
  std::string taken = "short";
  const secret third(std::move(taken));
  EXPECT_EQ(third.reveal(), "short");
  EXPECT_EQ(taken.find("short"), std::string::npos);  // NOLINT: that is what is tested
}

TEST(generate_password_test, has_24_characters_of_all_classes_and_none_that_a_shell_minds) {
  std::set<std::string> seen;
  for (int i = 0; i < 500; ++i) {
    const secret made = generate_password();
    const std::string text(made.reveal());
    EXPECT_EQ(text.size(), 24U);
    const auto count = [&text](auto is) { return std::count_if(text.begin(), text.end(), is); };
    EXPECT_GE(count([](unsigned char c) { return std::isupper(c); }), 2);
    EXPECT_GE(count([](unsigned char c) { return std::islower(c); }), 2);
    EXPECT_GE(count([](unsigned char c) { return std::isdigit(c); }), 2);
    EXPECT_GE(count([](char c) { return c == '-' || c == '_' || c == '.'; }), 2);
    EXPECT_EQ(count([](unsigned char c) { return !std::isalnum(c) && c != '-' && c != '_' && c != '.'; }), 0);
    EXPECT_TRUE(std::isalnum(static_cast<unsigned char>(text[0])));
    seen.insert(text);
  }
  EXPECT_EQ(seen.size(), 500U);
}

}  // namespace
}  // namespace busbar::storage
