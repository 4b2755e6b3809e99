// The snapshot hub over a journal: reading, watching, falling behind.
#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "actors/core/errors.hpp"
#include "tests/support/memory_journal.hpp"

namespace busbar::core {
namespace {

using test_support::memory_journal;

class watching : public ::testing::Test {
 protected:
  void commit(const std::string& name, journal::NodeStep step, bool with_event = true) {
    journal_batch batch;
    auto node = std::make_shared<journal::Node>();
    node->set_name(name);
    node->set_step(step);
    batch.put(std::shared_ptr<const journal::Node>(std::move(node)));
    if (with_event) batch.events.push_back(event(name));
    publish(std::move(batch));
  }
  void erase(const std::string& name) {
    journal_batch batch;
    batch.erase(object_kind::node, name);
    publish(std::move(batch));
  }
  void publish(journal_batch batch) {
    const auto done = journal_.log->commit(std::move(batch));
    ASSERT_TRUE(done.ok()) << done.status();
    hub().publish({&done->commit, 1});
  }
  static journal::Event event(const std::string& name) {
    journal::Event made;
    made.set_object(name);
    made.set_kind("node");
    return made;
  }
  std::unique_ptr<subscription> watch(const journal::Position& from, watch_filter filter = {},
                                      watch_options options = {}) {
    auto made = hub().subscribe(from, std::move(filter), options, [this] { ++wakes_; });
    EXPECT_TRUE(made.ok()) << made.status();
    return std::move(*made);
  }
  static std::vector<std::string> drain(subscription& from, std::size_t limit = 100) {
    std::vector<std::string> seen;
    for (;;) {
      const auto items = from.take(limit);
      EXPECT_TRUE(items.ok()) << items.status();
      if (!items.ok() || items->empty()) return seen;
      for (const watch_item& item : *items) {
        switch (item.what) {
          case watch_item::type::event: seen.push_back("event " + item.event->object()); break;
          case watch_item::type::changed: seen.push_back("changed " + item.name); break;
          case watch_item::type::erased: seen.push_back("erased " + item.name); break;
          case watch_item::type::bookmark: seen.push_back("bookmark " + std::to_string(item.revision)); break;
        }
      }
    }
  }
  // A daemon that starts anew holds nothing in memory but the state: all older events come from disk.
  void restart() { journal_.restart(); }
  void keep_in_memory(std::size_t items) {
    hub_options options;
    options.kept_items = items;
    options.history = [log = journal_.log](const journal::Position& from, std::uint64_t to, std::size_t limit) {
      return log->read_events(from, to, limit);
    };
    small_ = std::make_shared<snapshot_hub>(journal_.log->load()->state, options);
  }
  snapshot_hub& hub() { return small_ != nullptr ? *small_ : *journal_.hub; }
  journal::Position at(std::uint64_t revision) {
    journal::Position position = journal_.log->head();
    position.set_revision(revision);
    return position;
  }
  using lines = std::vector<std::string>;

  memory_journal journal_;
  std::shared_ptr<snapshot_hub> small_;
  int wakes_ = 0;
};

TEST_F(watching, a_snapshot_never_changes_and_shares_what_a_commit_does_not_touch) {
  commit("r01/c01", journal::DISCOVERED);
  const auto before = hub().read();
  commit("r01/c02", journal::DISCOVERED);
  const auto after = hub().read();
  EXPECT_EQ(before->nodes->size(), 1U);
  EXPECT_EQ(after->nodes->size(), 2U);
  EXPECT_EQ(before->node("r01/c01"), after->node("r01/c01"));
  EXPECT_EQ(before->racks, after->racks);
  EXPECT_EQ(after->position.revision(), 2U);
}

TEST_F(watching, valves_and_pdus_are_told_live_and_after_a_restart) {
  commit("r01/c01", journal::DISCOVERED);
  const auto live = watch({});
  EXPECT_TRUE(drain(*live).empty());
  journal_batch batch;
  auto valve = std::make_shared<journal::Valve>();
  valve->set_name("r01/supply");
  batch.put(std::shared_ptr<const journal::Valve>(std::move(valve)));
  auto pdu = std::make_shared<journal::Pdu>();
  pdu->set_name("r01/u01");
  batch.put(std::shared_ptr<const journal::Pdu>(std::move(pdu)));
  publish(std::move(batch));
  EXPECT_EQ(drain(*live), (lines{"changed r01/supply", "changed r01/u01"}));
  restart();
  EXPECT_EQ(drain(*watch(at(1))), (lines{"changed r01/supply", "changed r01/u01"}));
  journal_batch gone;
  gone.erase(object_kind::valve, "r01/supply");
  publish(std::move(gone));
  EXPECT_EQ(hub().read()->valve("r01/supply"), nullptr);
  EXPECT_NE(hub().read()->pdu("r01/u01"), nullptr);
}

TEST_F(watching, from_a_position_gives_what_came_after_then_what_comes) {
  commit("r01/c01", journal::DISCOVERED);
  commit("r01/c02", journal::DISCOVERED);
  const auto watcher = watch(at(1));
  EXPECT_EQ(drain(*watcher), (lines{"changed r01/c02", "event r01/c02"}));
  EXPECT_EQ(wakes_, 0);
  commit("r01/c03", journal::DISCOVERED);
  EXPECT_EQ(wakes_, 1);
  commit("r01/c04", journal::DISCOVERED);
  EXPECT_EQ(wakes_, 1) << "woken once until it took all";
  EXPECT_EQ(drain(*watcher), (lines{"changed r01/c03", "event r01/c03", "changed r01/c04", "event r01/c04"}));
  EXPECT_EQ(watcher->position().revision(), 4U);
}

TEST_F(watching, without_a_position_starts_from_now) {
  commit("r01/c01", journal::DISCOVERED);
  const auto watcher = watch({});
  EXPECT_TRUE(drain(*watcher).empty());
  erase("r01/c01");
  EXPECT_EQ(drain(*watcher), (lines{"erased r01/c01", "event r01/c01"}));
}

TEST_F(watching, after_a_restart_old_events_come_from_disk_and_objects_as_they_are_now) {
  commit("r01/c01", journal::DISCOVERED);
  commit("r01/c02", journal::DISCOVERED);
  commit("r01/c02", journal::IDENTIFIED);
  commit("r01/c03", journal::DISCOVERED);
  erase("r01/c03");
  restart();
  commit("r01/c04", journal::DISCOVERED);
  const auto watcher = watch(at(1));
  EXPECT_EQ(drain(*watcher, 2),
            (lines{"event r01/c02", "event r01/c02", "event r01/c03", "erased r01/c03", "event r01/c03",
                   "changed r01/c02", "changed r01/c04", "event r01/c04"}));
}

TEST_F(watching, a_filter_by_kind_and_prefix_passes_only_its_own) {
  watch_filter filter;
  filter.kinds = {object_kind::node};
  filter.object_prefix = "r01/c01";
  filter.events = false;
  const auto watcher = watch({}, filter);
  EXPECT_TRUE(drain(*watcher).empty());
  commit("r01/c01", journal::DISCOVERED);
  commit("r01/c010", journal::DISCOVERED);
  commit("r02/c01", journal::DISCOVERED);
  EXPECT_EQ(drain(*watcher), (lines{"changed r01/c01"}));
}

TEST_F(watching, an_operation_is_seen_by_who_watches_its_target) {
  watch_filter filter;
  filter.object_prefix = "r01";
  filter.events = false;
  const auto watcher = watch({}, filter);
  for (const char* target : {"r01/c07", "r02"}) {
    auto operation = std::make_shared<journal::Operation>();
    operation->set_id(std::string("operations/") + target);
    operation->set_target(target);
    journal_batch batch;
    batch.put(std::shared_ptr<const journal::Operation>(std::move(operation)));
    publish(std::move(batch));
  }
  EXPECT_EQ(drain(*watcher), (lines{"changed operations/r01/c07"}));
}

TEST_F(watching, bookmarks_move_the_position_of_a_watcher_that_sees_nothing) {
  watch_filter filter;
  filter.object_prefix = "r09";
  watch_options options;
  options.bookmark_every = 3;
  const auto watcher = watch({}, filter, options);
  EXPECT_TRUE(drain(*watcher).empty());
  for (int i = 0; i < 4; ++i) commit("r01/c01", journal::DISCOVERED);
  EXPECT_EQ(drain(*watcher), (lines{"bookmark 4"}));
  commit("r01/c01", journal::DISCOVERED);
  EXPECT_TRUE(drain(*watcher).empty());
}

TEST_F(watching, a_slow_watcher_is_ended_and_told_where_to_go_on) {
  watch_options options;
  options.queue_limit = 5;
  const auto watcher = watch({}, {}, options);
  EXPECT_TRUE(drain(*watcher).empty());
  for (int i = 0; i < 4; ++i) commit("r01/c01", journal::DISCOVERED);
  const auto end = watcher->take(100);
  EXPECT_EQ(end.status().code(), absl::StatusCode::kResourceExhausted) << end.status();
  EXPECT_EQ(fault_of(end.status()), fault::WATCH_OVERFLOW);
  EXPECT_FALSE(watcher->take(100).ok()) << "it stays ended";
  EXPECT_EQ(drain(*watch(watcher->position())).size(), 8U) << "nothing is lost to who comes back";
}

TEST_F(watching, one_still_reading_history_is_not_ended) {
  for (int i = 0; i < 30; ++i) commit("r01/c01", journal::DISCOVERED);
  keep_in_memory(6);
  watch_options options;
  options.queue_limit = 5;
  const auto watcher = watch(at(0), {}, options);
  for (int i = 0; i < 10; ++i) commit("r01/c02", journal::DISCOVERED);
  const auto seen = drain(*watcher, 3);
  EXPECT_EQ(std::count(seen.begin(), seen.end(), "event r01/c01"), 30);
  EXPECT_EQ(std::count(seen.begin(), seen.end(), "event r01/c02"), 10);
}

TEST_F(watching, every_item_can_be_resumed_from_without_loss) {
  for (int i = 1; i <= 5; ++i) commit("r01/c0" + std::to_string(i), journal::DISCOVERED);
  const auto all = watch(at(0))->take(100);
  ASSERT_TRUE(all.ok());
  for (std::size_t taken = 1; taken <= all->size(); ++taken) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < taken; ++i) names.push_back((*all)[i].name);
    const auto rest = watch((*all)[taken - 1].position)->take(100);
    ASSERT_TRUE(rest.ok());
    for (const watch_item& item : *rest) names.push_back(item.name);
    for (int i = 1; i <= 5; ++i) {
      EXPECT_NE(std::find(names.begin(), names.end(), "r01/c0" + std::to_string(i)), names.end()) << taken;
    }
  }
}

TEST_F(watching, refuses_positions_of_another_journal_or_of_the_future) {
  commit("r01/c01", journal::DISCOVERED);
  journal::Position foreign = at(1);
  foreign.set_journal_id("another");
  for (const journal::Position& bad : {foreign, at(2)}) {
    const auto refused = hub().subscribe(bad, {}, {}, [] {});
    EXPECT_EQ(fault_of(refused.status()), fault::POSITION_OUT_OF_RANGE);
  }
}

TEST_F(watching, a_position_that_retention_took_is_out_of_range) {
  storage::journal_options limits;
  limits.kept_events = 10;
  limits.trim_step = 5;
  memory_journal short_lived(limits);
  for (int i = 0; i < 40; ++i) {
    journal_batch batch;
    batch.events.push_back(event("r01/c01"));
    ASSERT_TRUE(short_lived.log->commit(std::move(batch)).ok());
  }
  while (*short_lived.log->trim()) {
  }
  short_lived.restart();
  journal::Position early = short_lived.log->head();
  early.set_revision(3);
  const auto watcher = short_lived.hub->subscribe(early, {}, {}, [] {});
  ASSERT_TRUE(watcher.ok());
  const auto end = (*watcher)->take(10);
  EXPECT_EQ(fault_of(end.status()), fault::POSITION_OUT_OF_RANGE) << end.status();
}

TEST_F(watching, closing_ends_and_wakes_every_watcher) {
  const auto watcher = watch({});
  EXPECT_TRUE(drain(*watcher).empty());
  hub().close();
  EXPECT_EQ(wakes_, 1);
  EXPECT_EQ(watcher->take(1).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(hub().subscribe({}, {}, {}, [] {}).status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(watching, a_watcher_that_went_away_is_not_woken) {
  auto watcher = watch({});
  EXPECT_TRUE(drain(*watcher).empty());
  watcher.reset();
  commit("r01/c01", journal::DISCOVERED);
  EXPECT_EQ(wakes_, 0);
}

// Readers on threads of their own while a writer commits: each sees every event once and in order, and no snapshot goes back.
TEST_F(watching, readers_on_other_threads_miss_nothing) {
  constexpr std::uint64_t revisions = 400;
  constexpr int readers = 4;
  keep_in_memory(100);
  struct reader {
    std::mutex mutex;
    std::condition_variable woken;
    bool wake = true;  // take once after subscribing
    std::vector<std::uint64_t> seen;
    absl::Status end;
  };
  std::vector<reader> all(readers);
  std::vector<std::thread> threads;
  watch_options options;
  options.queue_limit = 100;
  watch_filter filter;
  filter.objects = false;
  for (reader& mine : all) {
    threads.emplace_back([this, &mine, &filter, &options] {
      std::uint64_t newest = 0;
      journal::Position from = at(0);
      while (newest < revisions) {
        auto watcher = hub().subscribe(from, filter, options, [&mine] {
          const std::scoped_lock lock(mine.mutex);
          mine.wake = true;
          mine.woken.notify_one();
        });
        if (!watcher.ok()) break;
        mine.wake = true;
        for (;;) {
          {
            std::unique_lock lock(mine.mutex);
            mine.woken.wait(lock, [&mine] { return mine.wake; });
            mine.wake = false;
          }
          auto items = (*watcher)->take(7);
          while (items.ok() && !items->empty()) {
            for (const watch_item& item : *items) {
              if (item.what == watch_item::type::event) mine.seen.push_back(item.revision);
              newest = std::max(newest, item.revision);
            }
            items = (*watcher)->take(7);
          }
          if (!items.ok() || newest >= revisions) {
            from = (*watcher)->position();  // one that was ended for being slow comes back here
            mine.end = items.status();
            break;
          }
        }
        if (!mine.end.ok() && fault_of(mine.end) != fault::WATCH_OVERFLOW) break;
      }
    });
  }
  for (std::uint64_t i = 0; i < revisions; ++i) commit("r01/c01", journal::DISCOVERED);
  for (std::thread& thread : threads) thread.join();
  std::vector<std::uint64_t> expected(revisions);
  std::iota(expected.begin(), expected.end(), 1);
  for (const reader& each : all) EXPECT_EQ(each.seen, expected) << each.end;
}

}  // namespace
}  // namespace busbar::core
