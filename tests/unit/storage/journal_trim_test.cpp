#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "actors/core/errors.hpp"
#include "tests/support/memory_journal.hpp"

namespace busbar::storage {
namespace {

using test_support::memory_journal;

constexpr std::int64_t hour_ns = 3'600'000'000'000;

journal_options limits(std::uint64_t events, std::size_t step) {
  journal_options chosen;
  chosen.kept_events = events;
  chosen.trim_step = step;
  return chosen;
}

void commit(memory_journal& journal, int count, int events_each = 1, const std::string& role = "system") {
  for (int i = 0; i < count; ++i) {
    core::journal_batch batch;
    for (int j = 0; j < events_each; ++j) {
      journal::Event event;
      event.set_object("r01");
      event.mutable_principal()->set_role(role);
      batch.events.push_back(event);
    }
    ASSERT_TRUE(journal.log->commit(batch).ok());
  }
}

std::size_t events_held(const memory_journal& journal) {
  return journal.log->read_events(journal.log->oldest(), journal.log->head().revision(), SIZE_MAX)->size();
}

void trim_all(memory_journal& journal) {
  for (int i = 0; i < 1000; ++i) {
    const auto more = journal.log->trim();
    ASSERT_TRUE(more.ok()) << more.status();
    if (!*more) return;
  }
  FAIL() << "retention does not end";
}

TEST(journal_retention, nothing_is_due_below_the_limits) {
  memory_journal journal(limits(100, 10));
  commit(journal, 100);
  EXPECT_FALSE(journal.log->trim_is_due());
  trim_all(journal);
  EXPECT_EQ(events_held(journal), 100U);
}

TEST(journal_retention, keeps_the_newest_events_and_answers_older_positions_with_the_oldest) {
  memory_journal journal(limits(100, 10));
  const journal::Position start = journal.log->oldest();
  commit(journal, 150);
  EXPECT_TRUE(journal.log->trim_is_due());
  trim_all(journal);
  EXPECT_GE(events_held(journal), 100U);
  EXPECT_LT(events_held(journal), 110U);
  const auto read = journal.log->read_events(start, 150, 10);
  EXPECT_EQ(core::fault_of(read.status()), core::fault::POSITION_OUT_OF_RANGE);
  const std::string oldest = "@" + std::to_string(journal.log->oldest().revision());
  EXPECT_NE(std::string(read.status().message()).find(oldest), std::string::npos) << read.status();
  const auto rest = journal.log->read_events(journal.log->oldest(), 150, 1000);
  ASSERT_TRUE(rest.ok());
  EXPECT_EQ(rest->front()->position().revision(), journal.log->oldest().revision() + 1);
  EXPECT_EQ(rest->back()->position().revision(), 150U);
  journal.restart();
  EXPECT_EQ(events_held(journal), rest->size());
}

TEST(journal_retention, never_splits_a_revision) {
  memory_journal journal(limits(10, 4));
  commit(journal, 20, 7);
  trim_all(journal);
  EXPECT_EQ(events_held(journal) % 7, 0U);
  EXPECT_GE(events_held(journal), 7U);
}

TEST(journal_retention, old_events_go_by_age_but_never_the_last_thousand) {
  memory_journal journal(limits(1'000'000, 100));
  commit(journal, 1500);
  journal.now->wall_ns += 24 * 30 * hour_ns + hour_ns;
  EXPECT_TRUE(journal.log->trim_is_due());
  trim_all(journal);
  EXPECT_EQ(events_held(journal), 1000U);
  EXPECT_FALSE(journal.log->trim_is_due());
}

TEST(journal_retention, audit_outlives_events_and_its_chain_still_holds) {
  memory_journal journal(limits(10, 5));
  commit(journal, 30, 1, "operator");
  journal.now->wall_ns += 24 * 399 * hour_ns;
  commit(journal, 30, 1, "operator");
  trim_all(journal);
  EXPECT_LE(events_held(journal), 15U);
  std::size_t records = 0;
  const auto count = [&records](std::string_view, std::string_view) {
    ++records;
    return true;
  };
  ASSERT_TRUE(journal.disk->scan(family::audit, {}, {}, count).ok());
  EXPECT_EQ(records, 60U);
  journal.now->wall_ns += 2 * 24 * hour_ns;
  trim_all(journal);
  records = 0;
  ASSERT_TRUE(journal.disk->scan(family::audit, {}, {}, count).ok());
  EXPECT_EQ(records, 30U);
  EXPECT_TRUE(journal.log->verify_audit().ok());
}

TEST(journal_retention, a_request_id_is_kept_a_day) {
  memory_journal journal;
  core::journal_batch batch;
  batch.requests.push_back({"q1", "digest", "operations/1"});
  ASSERT_TRUE(journal.log->commit(batch).ok());
  journal.now->wall_ns += 23 * hour_ns;
  EXPECT_FALSE(journal.log->trim_is_due());
  EXPECT_EQ(*journal.log->find_request("q1", "digest"), "operations/1");
  journal.now->wall_ns += 2 * hour_ns;
  EXPECT_EQ(*journal.log->find_request("q1", "other"), "");
  EXPECT_TRUE(journal.log->trim_is_due());
  trim_all(journal);
  EXPECT_FALSE(journal.log->trim_is_due());
  EXPECT_FALSE(journal.disk->get(family::meta, "request/q1")->has_value());
}

}  // namespace
}  // namespace busbar::storage
