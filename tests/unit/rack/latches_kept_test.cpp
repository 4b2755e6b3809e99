// An interlock whose latch file was put back or lost: noticed, shown, told, and no host power until a person
// has looked; what was latched of before can then be cleared.
#include <gtest/gtest.h>

#include "actors/rack/rack_members.hpp"
#include "tests/unit/rack/rack_bench.hpp"

namespace busbar::rack::test {
namespace {

const journal::Condition* condition(const rack_bench& bench) {
  for (const journal::Condition& row : bench.state.rack.conditions()) {
    if (row.type() == "INTERLOCK_LATCHES_KEPT") return &row;
  }
  return nullptr;
}

void hear(rack_bench& bench, std::uint64_t number, bool sound = true, std::uint64_t latch_number = 0) {
  bench.arm([number, sound, latch_number](interlock::Status& status) {
    status.set_last_record_number(number);
    status.set_last_latch_number(latch_number);
    status.set_latch_file_ok(sound);
    status.set_armed_rack(sound);
    if (!sound) status.set_reason("the latch file cannot be trusted");
  });
}

// Every line up to this one is read and imported.
void import(rack_bench& bench, std::uint64_t number) {
  interlock::Latch line;
  line.set_number(number);
  line.set_kind(interlock::Latch::TRIP_CLOSED);
  bench.give(latches_read{{line}});
  bench.effects.clear();
}

TEST(interlock_latches, the_highest_line_that_was_seen_is_kept_with_the_rack_and_never_sinks) {
  rack_bench bench;
  for (const std::uint64_t number : {3U, 9U, 9U, 12U}) {
    hear(bench, number);
    EXPECT_EQ(known_latch_number(bench.state.rack), number);
    import(bench, number);
  }
  EXPECT_EQ(condition(bench), nullptr);
  EXPECT_TRUE(bench.effects_of<read_latches>().empty());
  hear(bench, 4);
  EXPECT_EQ(known_latch_number(bench.state.rack), 12U);
}

TEST(interlock_latches, fewer_than_were_seen_are_told_to_the_interlock_and_give_no_host_power) {
  for (const std::uint64_t found : {0U, 1U, 11U}) {
    rack_bench bench;
    bench.reach(journal::COOLED);
    hear(bench, 12);
    import(bench, 12);
    hear(bench, found);
    ASSERT_NE(condition(bench), nullptr) << found;
    EXPECT_EQ(condition(bench)->health(), journal::HEALTH_BAD);
    ASSERT_EQ(bench.effects_of<read_latches>().size(), 1U);
    EXPECT_EQ(bench.effects_of<read_latches>().front().after, 12U);
    bench.give(permit_wanted{slot('s', 1), node::permit_kind::power_on});
    EXPECT_FALSE(bench.last_answer(slot('s', 1))->granted) << "though its gate is open";
    EXPECT_EQ(bench.last_answer(slot('s', 1))->fault, core::fault::INTERLOCK_LATCHES_PUT_BACK);
    bench.give(latches_read{});
    const std::size_t events = bench.count_told("condition_set");
    hear(bench, found);
    EXPECT_EQ(bench.count_told("condition_set"), events) << "told once";
    EXPECT_EQ(bench.effects_of<read_latches>().size(), 1U) << "its answer is waited for";
    bench.wait_ns(10'000'000'000);
    hear(bench, found);
    EXPECT_EQ(bench.effects_of<read_latches>().size(), 2U);
    bench.give(latches_read{});
    hear(bench, 13, false);
    EXPECT_EQ(condition(bench)->health(), journal::HEALTH_BAD)
        << "it goes on above, and no person has looked";
    EXPECT_FALSE(bench.last_answer(slot('s', 1))->granted);
    bench.soak();
    import(bench, 13);
    hear(bench, 14);
    EXPECT_EQ(condition(bench)->health(), journal::HEALTH_GOOD);
    EXPECT_TRUE(bench.last_answer(slot('s', 1))->granted);
  }
}

TEST(interlock_latches, what_was_imported_counts_as_seen) {
  rack_bench bench;
  (*bench.state.rack.mutable_facts())["latches_imported"] = "5";
  hear(bench, 2, true, 1);
  ASSERT_EQ(bench.effects_of<read_latches>().size(), 1U);
  EXPECT_EQ(bench.effects_of<read_latches>().front().after, 5U);
  EXPECT_EQ(condition(bench)->health(), journal::HEALTH_BAD);
}

TEST(interlock_latches, a_silent_interlock_is_not_called_put_back) {
  rack_bench bench;
  hear(bench, 12);
  auto view = std::make_shared<interlock_view>(*bench.state.run.interlock);
  view->life = interlock_life::dead;
  auto status = std::make_shared<interlock::Status>(*view->status);
  status->set_last_record_number(1);
  view->status = status;
  bench.give(interlock_heard{view});
  EXPECT_EQ(condition(bench), nullptr);
}

interlock::Latch reset_of(std::uint64_t number, const std::string& device) {
  interlock::Latch line;
  line.set_number(number);
  line.set_kind(interlock::Latch::RESET);
  line.set_device(device);
  line.set_principal("uid 0");
  line.set_detail("looked, all dry");
  return line;
}

TEST(interlock_latches, an_acknowledged_loss_clears_what_is_latched_here_and_not_at_the_interlock) {
  for (const std::string& scope : {std::string("*"), slot('c', 1)}) {
    rack_bench bench;
    for (const std::string& tray : {slot('c', 1), slot('c', 2)})
      bench.change(tray, [](journal::Node& node) { node.set_leak_latched(true); });
    bench.arm([](interlock::Status& status) {
      status.set_latch_file_ok(true);
      status.set_last_record_number(14);
      interlock::Latch& open = *status.add_latches();
      open.set_kind(interlock::Latch::LEAK_SEEN);
      open.set_device(slot('c', 2));
    });
    bench.give(latches_read{{reset_of(14, scope)}});
    std::set<std::string> cleared;
    for (const tell_latch& told : bench.effects_of<tell_latch>()) {
      EXPECT_FALSE(told.latched);
      if (bench.state.run.members.contains(told.member)) cleared.insert(told.member);
    }
    EXPECT_EQ(cleared, std::set<std::string>{slot('c', 1)}) << scope;
  }
}

}  // namespace
}  // namespace busbar::rack::test
