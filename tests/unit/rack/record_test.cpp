// An interlock whose record was put back: noticed, shown, replaced, and no host power meanwhile.
#include <gtest/gtest.h>

#include "actors/rack/rack_members.hpp"
#include "tests/unit/rack/rack_bench.hpp"

namespace busbar::rack::test {
namespace {

const journal::Condition* condition(const rack_bench& bench) {
  for (const journal::Condition& row : bench.state.rack.conditions()) {
    if (row.type() == "INTERLOCK_RECORD_CURRENT") return &row;
  }
  return nullptr;
}

void hold(rack_bench& bench, std::uint64_t generation) {
  bench.arm([generation](interlock::Status& status) {
    status.set_generation(generation);
    status.set_armed_rack(generation > 0);
  });
}

TEST(interlock_record, the_generation_that_is_held_is_kept_with_the_rack_and_never_sinks) {
  rack_bench bench;
  hold(bench, 4);
  EXPECT_TRUE(bench.durable);
  EXPECT_EQ(armed_generation(bench.state.rack), 4U);
  hold(bench, 7);
  EXPECT_EQ(armed_generation(bench.state.rack), 7U);
  hold(bench, 5);
  EXPECT_EQ(armed_generation(bench.state.rack), 7U);
  EXPECT_EQ(condition(bench)->health(), journal::HEALTH_BAD);
  const std::size_t events = bench.count_told("condition_set");
  hold(bench, 5);
  EXPECT_EQ(bench.count_told("condition_set"), events) << "told once, not at every heartbeat";
}

TEST(interlock_record, one_that_is_current_needs_no_word) {
  rack_bench bench;
  for (const std::uint64_t generation : {0U, 1U, 2U, 2U, 9U}) hold(bench, generation);
  EXPECT_EQ(condition(bench), nullptr);
  EXPECT_TRUE(bench.effects_of<arm_anew>().empty());
}

TEST(interlock_record, an_older_one_or_none_is_replaced_and_asked_for_again_until_it_is) {
  for (const std::uint64_t found : {0U, 1U, 6U}) {
    rack_bench bench;
    hold(bench, 7);
    hold(bench, found);
    ASSERT_NE(condition(bench), nullptr) << found;
    EXPECT_EQ(bench.effects_of<arm_anew>().size(), 1U) << found;
    hold(bench, found);
    EXPECT_EQ(bench.effects_of<arm_anew>().size(), 1U) << "its answer is waited for";
    bench.wait_ns(10'000'000'000);
    hold(bench, found);
    EXPECT_EQ(bench.effects_of<arm_anew>().size(), 2U) << found;
    hold(bench, 8);
    EXPECT_EQ(condition(bench)->health(), journal::HEALTH_GOOD);
    hold(bench, found);
    EXPECT_EQ(bench.effects_of<arm_anew>().size(), 3U) << "the next roll-back is answered at once";
  }
}

TEST(interlock_record, an_older_one_gives_no_host_power_though_its_gate_is_open) {
  rack_bench bench;
  bench.reach(journal::COOLED);
  hold(bench, 7);
  hold(bench, 6);
  bench.give(permit_wanted{slot('s', 1), node::permit_kind::power_on});
  ASSERT_NE(bench.last_answer(slot('s', 1)), nullptr);
  EXPECT_FALSE(bench.last_answer(slot('s', 1))->granted);
  EXPECT_EQ(bench.last_answer(slot('s', 1))->fault, core::fault::INTERLOCK_RECORD_OLD);
  hold(bench, 8);
  EXPECT_TRUE(bench.last_answer(slot('s', 1))->granted);
}

TEST(interlock_record, a_silent_interlock_is_not_called_rolled_back) {
  rack_bench bench;
  hold(bench, 7);
  auto view = std::make_shared<interlock_view>(*bench.state.run.interlock);
  view->life = interlock_life::dead;
  auto status = std::make_shared<interlock::Status>(*view->status);
  status->set_generation(1);
  view->status = status;
  bench.give(interlock_heard{view});
  EXPECT_EQ(condition(bench), nullptr);
}

}  // namespace
}  // namespace busbar::rack::test
