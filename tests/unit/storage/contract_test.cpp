// One contract, both stores.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "storage/memory_store.hpp"
#include "storage/rocks_store.hpp"
#include "tests/unit/storage/temporary_folder.hpp"

namespace busbar::storage {
namespace {

using row = std::pair<std::string, std::string>;

struct subject {
  virtual ~subject() = default;
  virtual store& get() = 0;
  virtual void reopen() = 0;  // the next life on the same disk
};

struct memory_subject final : subject {
  store& get() override { return *held; }
  void reopen() override { held = held->copy(); }
  std::shared_ptr<memory_store> held = std::make_shared<memory_store>();
};

struct rocks_subject final : subject {
  rocks_subject() { open(); }
  store& get() override { return *held; }
  void reopen() override {
    EXPECT_TRUE(held->close().ok());
    held.reset();
    open();
  }
  void open() {
    rocks_options options;
    options.directory = folder.file("store");
    options.ballast_bytes = 1 << 20;
    auto opened = open_rocks_store(options);
    ASSERT_TRUE(opened.ok()) << opened.status();
    held = std::move(*opened);
  }
  temporary_folder folder;
  std::unique_ptr<store> held;
};

class store_contract : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (GetParam() == "memory") {
      subject_ = std::make_unique<memory_subject>();
    } else {
      subject_ = std::make_unique<rocks_subject>();
    }
  }
  store& tested() { return subject_->get(); }
  std::vector<row> rows(family where, std::string_view from = {}, std::string_view to = {}, bool back = false) {
    std::vector<row> seen;
    const auto visit = [&seen](std::string_view key, std::string_view value) {
      seen.emplace_back(key, value);
      return true;
    };
    EXPECT_TRUE((back ? tested().scan_back(where, from, to, visit) : tested().scan(where, from, to, visit)).ok());
    return seen;
  }
  void put(family where, const std::string& key, const std::string& value) {
    store_write write;
    write.put(where, key, value);
    ASSERT_TRUE(tested().write(write).ok());
  }
  std::unique_ptr<subject> subject_;
};

TEST_P(store_contract, a_missing_key_is_nothing_and_no_error) {
  const auto found = tested().get(family::meta, "none");
  ASSERT_TRUE(found.ok());
  EXPECT_FALSE(found->has_value());
}

TEST_P(store_contract, gives_back_any_bytes_also_after_reopening) {
  const std::string key("\0k\xff", 3);
  const std::string value("\0\0v\xfe", 4);
  put(family::state, key, value);
  put(family::state, "empty", "");
  subject_->reopen();
  EXPECT_EQ(tested().get(family::state, key)->value(), value);
  EXPECT_EQ(tested().get(family::state, "empty")->value(), "");
}

TEST_P(store_contract, families_do_not_mix) {
  for (const family where : families) put(where, "key", std::string(name_of(where)));
  for (const family where : families) EXPECT_EQ(rows(where), (std::vector<row>{{"key", std::string(name_of(where))}}));
}

TEST_P(store_contract, operations_of_a_batch_apply_in_order) {
  put(family::state, "a", "old");
  store_write write;
  write.put(family::state, "a", "new");
  write.erase(family::state, "a");
  write.put(family::state, "b", "1");
  write.erase_range(family::state, "a", "c");
  write.put(family::state, "b", "2");
  ASSERT_TRUE(tested().write(write).ok());
  EXPECT_EQ(rows(family::state), (std::vector<row>{{"b", "2"}}));
}

TEST_P(store_contract, scans_are_ordered_and_bounded_both_ways) {
  for (const char* key : {"b", "a", "d", "c", "\xff"}) put(family::events, key, key);
  EXPECT_EQ(rows(family::events, "b", "d"), (std::vector<row>{{"b", "b"}, {"c", "c"}}));
  EXPECT_EQ(rows(family::events, "b", "d", true), (std::vector<row>{{"c", "c"}, {"b", "b"}}));
  EXPECT_EQ(rows(family::events, "d"), (std::vector<row>{{"d", "d"}, {"\xff", "\xff"}}));
  EXPECT_EQ(rows(family::events).size(), 5U);
  EXPECT_EQ(rows(family::events, {}, {}, true).front().first, "\xff");
}

TEST_P(store_contract, a_visitor_can_stop) {
  for (const char* key : {"a", "b", "c"}) put(family::events, key, key);
  int seen = 0;
  ASSERT_TRUE(tested().scan(family::events, {}, {}, [&seen](std::string_view, std::string_view) { return ++seen < 2; }).ok());
  EXPECT_EQ(seen, 2);
}

TEST_P(store_contract, a_range_takes_its_first_key_and_leaves_its_end) {
  for (const char* key : {"a", "b", "c", "d"}) put(family::audit, key, key);
  store_write write;
  write.erase_range(family::audit, "b", "d");
  write.erase_range(family::audit, "z", "a");  // an empty range is no error
  ASSERT_TRUE(tested().write(write).ok());
  subject_->reopen();
  EXPECT_EQ(rows(family::audit), (std::vector<row>{{"a", "a"}, {"d", "d"}}));
}

TEST_P(store_contract, a_healthy_store_serves_and_a_probe_changes_nothing_else) {
  put(family::state, "a", "1");
  EXPECT_EQ(tested().health(), store_health::serving);
  ASSERT_TRUE(tested().probe().ok());
  EXPECT_EQ(tested().health(), store_health::serving);
  EXPECT_EQ(rows(family::state).size(), 1U);
}

INSTANTIATE_TEST_SUITE_P(stores, store_contract, ::testing::Values("memory", "rocks"),
                         [](const auto& chosen) { return chosen.param; });

TEST(rocks_store, one_owner_at_a_time) {
  const temporary_folder folder;
  rocks_options options;
  options.directory = folder.file("store");
  const auto first = open_rocks_store(options);
  ASSERT_TRUE(first.ok()) << first.status();
  const auto second = open_rocks_store(options);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kAlreadyExists);
}

TEST(rocks_store, a_checkpoint_is_a_store_of_that_moment) {
  const temporary_folder folder;
  rocks_options options;
  options.directory = folder.file("store");
  const auto original = open_rocks_store(options);
  ASSERT_TRUE(original.ok());
  store_write write;
  write.put(family::state, "a", "1");
  ASSERT_TRUE((*original)->write(write).ok());
  ASSERT_TRUE(checkpoint_rocks_store(**original, folder.file("copy")).ok());
  store_write later;
  later.put(family::state, "a", "2");
  ASSERT_TRUE((*original)->write(later).ok());
  options.directory = folder.file("copy");
  const auto copy = open_rocks_store(options);
  ASSERT_TRUE(copy.ok()) << copy.status();
  EXPECT_EQ((*copy)->get(family::state, "a")->value(), "1");
}

}  // namespace
}  // namespace busbar::storage
