// What is shown as on is read again, and what is shown as dry is watched: unknown and off never stay good.
#include <gtest/gtest.h>

#include <array>

#include "tests/unit/node/tray_bench.hpp"

namespace busbar::node::test {
namespace {

constexpr std::array kinds{journal::COMPUTE_TRAY, journal::SWITCH_TRAY, journal::POWER_SHELF};
constexpr std::array steps_on{journal::STAGED,     journal::INSPECTED, journal::FIRMWARE_CURRENT,
                              journal::CONFIGURED, journal::VALIDATED, journal::READY,
                              journal::PRODUCTION};

void rest_at(tray_bench& bench, journal::NodeStep step) {
  bench.state.node.set_health(journal::HEALTH_GOOD);
  bench.start_at(step);
  bench.aim(step);
  bench.settle();
}

TEST(power_watch, a_member_of_any_kind_at_any_step_that_is_read_off_twice_leaves_it_with_a_named_fault) {
  for (const auto kind : kinds) {
    for (const auto step : steps_on) {
      tray_bench bench(kind);
      rest_at(bench, step);
      bench.device->power = journal::POWER_OFF;
      const auto before = bench.calls_of(call_op::read_power);
      bench.give(look_at_power{});
      ASSERT_TRUE(bench.fails()) << kind << " at " << step;
      EXPECT_EQ(bench.calls_of(call_op::read_power), before + 2);
      EXPECT_EQ(bench.fault(), "POWER_LOST");
      EXPECT_EQ(bench.stored.power().observed(), journal::POWER_OFF);
      EXPECT_EQ(bench.stored.power().wanted(), journal::POWER_OFF);
      EXPECT_EQ(bench.stored.step(), journal::CREDENTIALED);
      EXPECT_EQ(bench.stored.health(), journal::HEALTH_BAD);
      EXPECT_FALSE(bench.stored.boot().agent_connected());
      EXPECT_TRUE(lost_its_power(bench.stored));
      EXPECT_TRUE(bench.device->acts.empty() || bench.device->count_acts("reset On") == 0U)
          << "nothing goes on by itself";
    }
  }
}

TEST(power_watch, one_reading_is_enough_where_the_interlock_says_that_it_tripped_it) {
  tray_bench bench;
  rest_at(bench, journal::PRODUCTION);
  bench.device->power = journal::POWER_OFF;
  const auto before = bench.calls_of(call_op::read_power);
  bench.give(look_at_power{"the interlock's trip 4 of r01: stop"});
  ASSERT_TRUE(bench.fails());
  EXPECT_EQ(bench.calls_of(call_op::read_power), before + 1);
  EXPECT_NE(bench.state.node.failure().message().find("trip 4"), std::string::npos);
  EXPECT_EQ(bench.fault(), "TRIP_OPEN");
}

TEST(trip, ends_whatever_a_member_of_any_kind_was_at_with_its_reason) {
  for (const auto kind : kinds) {
    for (const auto step : steps_on) {
      tray_bench bench(kind);
      rest_at(bench, step);
      const std::size_t acts = bench.device->acts.size();
      bench.give(trip_held{7, "trip 7 of r01 (no flow): 80.0, limit 120.0"});
      ASSERT_TRUE(bench.fails()) << kind << " at " << step;
      EXPECT_EQ(bench.fault(), "TRIP_OPEN") << kind << " at " << step;
      EXPECT_NE(bench.stored.failure().message().find("no flow"), std::string::npos);
      EXPECT_EQ(bench.stored.step(), journal::CREDENTIALED);
      EXPECT_EQ(bench.stored.power().observed(), journal::POWER_UNKNOWN) << "nobody has read it off yet";
      EXPECT_FALSE(bench.stored.boot().agent_connected());
      EXPECT_TRUE(lost_its_power(bench.stored));
      bench.aim(journal::CREDENTIALED);
      bench.settle();
      EXPECT_EQ(bench.device->acts.size(), acts) << "the interlock turns it off, nobody else";
      bench.give(interlock_read_off{"trip 7, off after 120 ms"});
      bench.settle();
      EXPECT_EQ(bench.stored.power().observed(), journal::POWER_OFF);
      EXPECT_TRUE(bench.told("power_off", "interlock"));
    }
  }
}

TEST(trip, during_a_suite_or_a_firmware_push_ends_it_and_is_told_once) {
  tray_bench bench;
  bench.want_firmware(1, "UEFI", "2.0", "host_restart");
  bench.start_at(journal::INSPECTED);
  bench.aim(journal::CONFIGURED);
  bench.mute(call_op::push_firmware);
  ASSERT_TRUE(bench.run_until([&bench] { return bench.calls_of(call_op::push_firmware) > 0; }));
  bench.give(trip_held{9, "trip 9 of r01/c07 (emergency stop): uid 0: stop"});
  ASSERT_TRUE(bench.fails());
  EXPECT_EQ(bench.fault(), "TRIP_OPEN");
  bench.settle();
  const auto events = bench.events.size();
  bench.give(trip_held{9, "trip 9 of r01/c07 (emergency stop): uid 0: stop"});
  bench.settle();
  EXPECT_EQ(bench.events.size(), events);
  EXPECT_EQ(bench.calls_of(call_op::push_firmware), 1U);
}

TEST(trip, that_cuts_shelves_forgets_what_was_being_flashed_and_one_of_a_tray_does_not) {
  for (const bool cuts : {true, false}) {
    tray_bench bench;
    rest_at(bench, journal::PRODUCTION);
    journal::FirmwareProgress& row = *bench.state.node.add_firmware();
    row.set_component("UEFI");
    row.set_state(journal::FirmwareProgress::PUSHING);
    row.set_task_uri("/redfish/v1/TaskService/Tasks/7");
    bench.give(trip_held{9, "trip 9", cuts});
    bench.settle();
    ASSERT_EQ(bench.stored.firmware_size(), 1);
    const bool pending = bench.stored.firmware(0).state() == journal::FirmwareProgress::PENDING;
    EXPECT_EQ(pending, cuts);
    EXPECT_EQ(bench.stored.firmware(0).task_uri().empty(), cuts);
  }
}

TEST(trip, of_a_member_that_was_off_or_not_ours_changes_nothing_of_it) {
  for (const auto step :
       {journal::DECLARED, journal::DISCOVERED, journal::IDENTIFIED, journal::CREDENTIALED}) {
    tray_bench bench;
    bench.start_at(step);
    bench.state.node.mutable_power()->set_observed(journal::POWER_OFF);
    bench.give(trip_held{3, "trip 3 of r01 (leak): rope"});
    bench.run_until([&bench] { return bench.stored.facts().contains("trip"); });
    EXPECT_FALSE(bench.state.node.has_failure()) << step;
    EXPECT_EQ(bench.state.node.step(), step);
  }
}

TEST(trip, is_taken_up_again_by_a_bring_up_once_it_is_reset) {
  tray_bench bench;
  rest_at(bench, journal::PRODUCTION);
  bench.give(trip_held{7, "trip 7 of r01 (leak): rope"});
  bench.give(interlock_read_off{"trip 7"});
  bench.settle();
  bench.device->power = journal::POWER_OFF;
  rack_view view;
  view.goal = journal::CONFIGURED;
  view.operation_id = "operations/2";
  view.bringing_up = true;
  bench.give(view);
  ASSERT_TRUE(bench.run_until([&bench] { return bench.stored.step() == journal::CONFIGURED; }));
  EXPECT_FALSE(bench.stored.has_failure());
}

TEST(trip, leaves_a_leak_of_its_own_its_name) {
  tray_bench bench;
  rest_at(bench, journal::PRODUCTION);
  bench.give(trip_held{7, "trip 7 of r01/c07 (leak): 0_Manifold"});
  bench.give(leak_latch{true, "a leak", "0_Manifold"});
  bench.settle();
  EXPECT_EQ(bench.fault(), "POWER_LEAK_LATCHED");
  EXPECT_FALSE(lost_its_power(bench.stored)) << "a bring-up does not turn on what leaks";
}

TEST(power_watch, an_unchanged_reading_writes_nothing) {
  tray_bench bench;
  rest_at(bench, journal::PRODUCTION);
  bench.give(look_at_power{});
  bench.settle();  // the session is open now
  const int before = bench.commits;
  for (int i = 0; i < 5; ++i) {
    bench.give(look_at_power{});
    bench.settle();
  }
  EXPECT_EQ(bench.commits, before);
  ASSERT_GE(bench.looks.size(), 5U);
  EXPECT_TRUE(bench.looks.back().known);
  EXPECT_EQ(bench.looks.back().seen, journal::POWER_ON);
}

TEST(power_watch, one_reading_of_off_between_two_of_on_is_no_loss) {
  tray_bench bench;
  rest_at(bench, journal::PRODUCTION);
  auto left = std::make_shared<int>(1);
  bench.scripts[call_op::read_power] = [left](const call&) -> std::optional<scripted_answer> {
    if ((*left)-- <= 0) return std::nullopt;
    devices::power_facts off;
    off.state = journal::POWER_OFF;
    return scripted_answer{absl::OkStatus(), off};
  };
  bench.give(look_at_power{});
  bench.settle();
  EXPECT_FALSE(bench.state.node.has_failure());
  EXPECT_EQ(bench.stored.step(), journal::PRODUCTION);
  EXPECT_EQ(bench.looks.back().seen, journal::POWER_ON);
}

TEST(power_watch, power_that_cannot_be_read_is_shown_unknown_and_not_good_until_it_is_read) {
  tray_bench bench;
  rest_at(bench, journal::PRODUCTION);
  bench.give(look_at_power{});
  bench.settle();
  bench.refuse(call_op::read_power, unreachable());
  bench.give(look_at_power{});
  bench.settle();
  EXPECT_EQ(bench.stored.power().observed(), journal::POWER_UNKNOWN);
  EXPECT_EQ(bench.stored.health(), journal::HEALTH_UNKNOWN);
  EXPECT_FALSE(bench.stored.waits_for().empty());
  EXPECT_FALSE(bench.stored.has_failure());
  EXPECT_FALSE(bench.looks.back().known);
  bench.scripts.clear();
  bench.give(look_at_power{});
  bench.settle();
  EXPECT_EQ(bench.stored.power().observed(), journal::POWER_ON);
  EXPECT_EQ(bench.stored.health(), journal::HEALTH_GOOD);
  EXPECT_EQ(bench.stored.waits_for(), "");
}

TEST(power_watch, a_device_that_is_gone_after_a_restart_of_ours_is_unknown_and_no_failure) {
  tray_bench bench;
  rest_at(bench, journal::PRODUCTION);
  bench.crash();
  bench.refuse(call_op::login_own, unreachable());
  bench.give(look_at_power{});
  bench.settle();
  EXPECT_EQ(bench.stored.power().observed(), journal::POWER_UNKNOWN);
  EXPECT_EQ(bench.stored.health(), journal::HEALTH_UNKNOWN);
  EXPECT_FALSE(bench.state.node.has_failure()) << bench.fault();
  EXPECT_EQ(bench.spins, 0);
}

TEST(power_watch, a_bring_up_turns_on_again_only_what_lost_its_power_and_by_the_normal_way) {
  tray_bench bench;
  rest_at(bench, journal::PRODUCTION);
  bench.device->power = journal::POWER_OFF;
  bench.give(look_at_power{});
  ASSERT_TRUE(bench.fails());
  bench.give(rack_view{journal::STAGED, "operations/1", true});
  bench.settle();
  EXPECT_TRUE(bench.state.node.has_failure()) << "the same operation takes nothing up";
  bench.permits_asked.clear();
  bench.give(rack_view{journal::STAGED, "operations/2", true});
  ASSERT_TRUE(bench.run_until([&bench] { return bench.state.node.step() >= journal::STAGED; }));
  EXPECT_EQ(bench.permits_asked, std::vector<permit_kind>{permit_kind::power_on});
  EXPECT_GT(bench.calls_of(call_op::read_detectors), 0U);
  EXPECT_EQ(bench.stored.power().observed(), journal::POWER_ON);
  EXPECT_EQ(bench.stored.health(), journal::HEALTH_GOOD);
}

TEST(power_watch, what_failed_for_another_reason_is_not_taken_up) {
  tray_bench bench;
  rest_at(bench, journal::PRODUCTION);
  bench.give(leak_latch{true, "wet", "0_ColdPlate"});
  bench.settle();
  bench.device->power = journal::POWER_OFF;
  bench.give(look_at_power{"the interlock latched a leak of it"});
  bench.settle();
  EXPECT_EQ(bench.fault(), "POWER_LEAK_LATCHED");
  bench.give(rack_view{journal::PRODUCTION, "operations/2", true});
  bench.settle();
  EXPECT_EQ(bench.fault(), "POWER_LEAK_LATCHED");
}

TEST(power_watch, detectors_that_the_interlock_does_not_watch_are_not_shown_dry_nor_the_member_good) {
  for (const auto kind : {journal::COMPUTE_TRAY, journal::SWITCH_TRAY}) {
    tray_bench bench(kind);
    auto& row = *bench.state.node.add_detectors();
    row.set_name("a");
    row.set_verdict(journal::Detector::DRY);
    rest_at(bench, journal::PRODUCTION);
    bench.give(interlock_sight{"the interlock is not heard"});
    bench.settle();
    EXPECT_EQ(bench.stored.health(), journal::HEALTH_UNKNOWN);
    EXPECT_NE(bench.stored.waits_for().find("not heard"), std::string::npos);
    EXPECT_EQ(bench.stored.detectors(0).verdict(), journal::Detector::UNKNOWN);
    EXPECT_NE(bench.stored.detectors(0).detail().find("last known dry before 20"), std::string::npos);
    const int commits = bench.commits;
    bench.give(interlock_sight{"the interlock is not heard"});
    bench.settle();
    EXPECT_EQ(bench.commits, commits);
    bench.give(look_at_power{});
    bench.settle();
    EXPECT_EQ(bench.stored.health(), journal::HEALTH_UNKNOWN) << "its power alone does not make it good";
    bench.give(interlock_sight{});
    bench.settle();
    EXPECT_EQ(bench.stored.health(), journal::HEALTH_GOOD);
    EXPECT_EQ(bench.stored.detectors(0).verdict(), journal::Detector::DRY);
  }
}

}  // namespace
}  // namespace busbar::node::test
