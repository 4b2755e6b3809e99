// The mark beside the store: a store that is gone or was exchanged is not taken for a first start.
#include "storage/journal_mark.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "actors/core/errors.hpp"
#include "storage/rocks_store.hpp"
#include "tests/unit/storage/temporary_folder.hpp"

namespace busbar::storage {
namespace {

namespace fs = std::filesystem;

class journal_mark : public ::testing::Test {
 protected:
  std::shared_ptr<journal_log> open(const std::string& directory, bool restored = false) {
    rocks_options on_disk;
    on_disk.directory = directory;
    on_disk.ballast_bytes = 0;
    auto store = open_rocks_store(on_disk);
    EXPECT_TRUE(store.ok()) << store.status();
    journal_options options;
    options.clock = [] { return core::instant{1, 1}; };
    options.restored = restored;
    auto log = journal_log::open(*std::move(store), options);
    EXPECT_TRUE(log.ok()) << log.status();
    return *log;
  }
  const temporary_folder folder_;
  const std::string mark_ = folder_.file("journal_id");
  const std::string store_ = folder_.file("store");
};

TEST_F(journal_mark, a_first_start_and_every_start_after_it_pass) {
  for (int life = 0; life < 3; ++life) {
    ASSERT_TRUE(check_store_is_there(mark_, store_).ok());
    const auto log = open(store_);
    ASSERT_TRUE(check_store_is_ours(mark_, *log).ok());
    ASSERT_TRUE(mark_journal(mark_, *log).ok());
    ASSERT_TRUE(log->close().ok());
  }
  EXPECT_EQ(fs::status(mark_).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(journal_mark, a_store_that_is_gone_or_hollow_is_named_and_nothing_is_made) {
  auto log = open(store_);
  ASSERT_TRUE(mark_journal(mark_, *log).ok());
  const std::string id = log->head().journal_id();
  ASSERT_TRUE(log->close().ok());
  log.reset();
  fs::remove_all(store_);
  for (const bool hollow : {false, true}) {
    if (hollow) fs::create_directories(store_);
    const absl::Status refused = check_store_is_there(mark_, store_);
    EXPECT_EQ(core::fault_of(refused), core::fault::STORE_MISSING);
    for (const std::string& part : {id, store_, std::string("--accept-empty-store")})
      EXPECT_THAT(std::string(refused.message()), ::testing::HasSubstr(part));
    EXPECT_EQ(fs::exists(store_), hollow);
  }
}

TEST_F(journal_mark, another_journal_is_refused_and_a_restored_copy_is_not) {
  const auto first = open(store_);
  ASSERT_TRUE(mark_journal(mark_, *first).ok());
  const auto other = open(folder_.file("other"));
  EXPECT_EQ(core::fault_of(check_store_is_ours(mark_, *other)), core::fault::STORE_MISSING);
  ASSERT_TRUE(first->close().ok());
  const auto restored = open(store_, true);
  EXPECT_TRUE(check_store_is_ours(mark_, *restored).ok());
  ASSERT_TRUE(mark_journal(mark_, *restored).ok());
  EXPECT_TRUE(check_store_is_ours(mark_, *restored).ok());
}

TEST_F(journal_mark, a_mark_that_cannot_be_read_is_not_taken_for_none) {
  fs::create_directories(mark_);
  EXPECT_FALSE(check_store_is_there(mark_, store_).ok());
}

TEST_F(journal_mark, a_store_that_is_open_elsewhere_is_said_in_our_words) {
  const auto first = open(store_);
  rocks_options on_disk;
  on_disk.directory = store_;
  const auto second = open_rocks_store(on_disk);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(second.status().message()), ::testing::HasSubstr("another process"));
  EXPECT_THAT(std::string(second.status().message()), ::testing::Not(::testing::HasSubstr("IO error")));
}

}  // namespace
}  // namespace busbar::storage
