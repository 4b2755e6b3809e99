#include "daemon/interlock/trip_logic.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "daemon/interlock/record_rules.hpp"
#include "tests/unit/interlock/trip_rig.hpp"

namespace busbar::interlock {
namespace {

using test::trip_rig;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using trip_logic = trip_rig;

TEST_F(trip_logic, turns_off_the_tray_that_leaks_and_no_other) {
  wet("r01/c02");
  EXPECT_THAT(commanded(), ElementsAre("r01/c02"));
  off("r01/c02");
  EXPECT_THAT(kinds(),
              ElementsAre(Latch::LEAK_SEEN, Latch::TRIP_OPENED, Latch::STEP_DONE, Latch::TRIP_CLOSED));
  run_ms(60'000);
  EXPECT_THAT(commanded(), ElementsAre("r01/c02"));
  EXPECT_EQ(of_.open.size(), 1U) << "done, and latched";
}

TEST_F(trip_logic, takes_two_leaking_trays_for_a_leak_of_the_rack_compute_trays_first_in_the_records_order) {
  wet("r01/c02");
  off("r01/c02");
  sent_.clear();
  wet("r01/s01");
  EXPECT_THAT(commanded(),
              ElementsAre("r01/c01", "r01/c02", "r01/c03", "r01/s01", "r01/m01/supply", "r01/m01/return"))
      << "the valves' stroke is 5 s: it starts with ForceOff";
}

TEST_F(trip_logic, cuts_the_shelves_when_every_tray_is_read_off) {
  wet("cdu01", "r01_rope");
  for (const char* tray : {"r01/c01", "r01/c02", "r01/c03"}) off(tray);
  EXPECT_EQ(count("r01/p01"), 0);
  off("r01/s01");
  EXPECT_EQ(count("r01/p01"), 1);
  EXPECT_EQ(count("r01/p02"), 1);
  off("r01/p01");
  off("r01/p02");
  closed("r01/m01/supply");
  EXPECT_FALSE(of_.open.begin()->second.closed);
  closed("r01/m01/return");
  EXPECT_TRUE(of_.open.begin()->second.closed);
}

TEST_F(trip_logic, cuts_the_shelves_after_two_seconds_whatever_the_trays_say) {
  wet("cdu01", "r01_pan");
  run_ms(1'999);
  EXPECT_EQ(count("r01/p01"), 0);
  run_ms(1);
  EXPECT_EQ(count("r01/p01"), 1);
}

TEST_F(trip_logic, takes_a_tray_as_off_when_every_shelf_is_read_off_and_its_bmc_is_silent) {
  wet("cdu01", "r01_rope");
  run_ms(2'000);
  off("r01/p01");
  off("r01/p02");
  run_ms(200);
  EXPECT_THAT(waits_for(of_, of_.open.begin()->second), ::testing::Contains("r01/c01 off"))
      << "its BMC still answers: something feeds it";
  for (const char* tray : {"r01/c01", "r01/c02", "r01/c03", "r01/s01"}) feed(reach_changed{tray, false});
  closed("r01/m01/supply");
  closed("r01/m01/return");
  EXPECT_TRUE(of_.open.begin()->second.closed);
}

TEST_F(trip_logic, starts_a_fast_valve_late_enough_to_be_at_most_40_percent_closed_at_the_cut) {
  use_stroke_ms(1'000);
  wet("cdu01", "r01_rope");
  run_ms(1'599);
  EXPECT_EQ(count("r01/m01/supply"), 0);
  run_ms(1);
  EXPECT_EQ(count("r01/m01/supply"), 1) << "400 of 1000 ms are left to the cut";
}

TEST_F(trip_logic, starts_a_fast_valve_at_the_cut_when_the_cut_comes_early) {
  use_stroke_ms(1'000);
  wet("cdu01", "r01_rope");
  for (const char* tray : {"r01/c01", "r01/c02", "r01/c03", "r01/s01"}) off(tray);
  EXPECT_EQ(count("r01/m01/supply"), 1);
  EXPECT_EQ(count("r01/p01"), 1);
}

TEST_F(trip_logic, leaves_the_valves_open_where_liquid_is_not_the_hazard) {
  coolant({.flow_lpm = 10, .supply_c = 30, .pressure_kpa = 200, .level_percent = 80});
  run_ms(1'000);
  coolant({.flow_lpm = 10, .supply_c = 30, .pressure_kpa = 200, .level_percent = 80});
  EXPECT_EQ(of_.open.begin()->second.cause, NO_FLOW);
  run_ms(10'000);
  EXPECT_EQ(count("r01/m01/supply"), 0);
  EXPECT_GE(count("r01/p01"), 1);
}

TEST_F(trip_logic, trips_on_flow_temperature_and_pressure_only_beyond_their_confirm_time) {
  const coolant_read good{.flow_lpm = 100, .supply_c = 30, .pressure_kpa = 200, .level_percent = 80};
  for (const auto& [cause, bad] : std::vector<std::pair<Cause, coolant_read>>{
           {NO_FLOW, {.flow_lpm = 49, .supply_c = 30, .pressure_kpa = 200, .level_percent = 80}},
           {OVER_TEMPERATURE, {.flow_lpm = 100, .supply_c = 51, .pressure_kpa = 200, .level_percent = 80}},
           {OVER_PRESSURE, {.flow_lpm = 100, .supply_c = 30, .pressure_kpa = 501, .level_percent = 80}}}) {
    restart_rig();
    coolant(bad);
    run_ms(999);
    coolant(bad);
    EXPECT_TRUE(of_.open.empty()) << name_of(cause);
    coolant(good);
    run_ms(5'000);
    coolant(bad);
    EXPECT_TRUE(of_.open.empty()) << "a dip of " << name_of(cause);
    run_ms(1'000);
    coolant(bad);
    ASSERT_EQ(of_.open.size(), 1U) << name_of(cause);
    EXPECT_EQ(of_.open.begin()->second.cause, cause);
  }
}

TEST_F(trip_logic, never_trips_on_a_coolant_value_that_is_unknown_or_not_limited) {
  for (int i = 0; i < 100; ++i) {
    coolant({});
    run_ms(250);
  }
  EXPECT_TRUE(of_.open.empty());
  of_.plan.flow_min_lpm.reset();
  for (int i = 0; i < 100; ++i) {
    coolant({.flow_lpm = 0, .supply_c = {}, .pressure_kpa = {}, .level_percent = {}});
    run_ms(250);
  }
  EXPECT_TRUE(of_.open.empty());
}

TEST_F(trip_logic, does_not_trip_a_dark_rack_for_missing_flow) {
  const coolant_read none{.flow_lpm = 0, .supply_c = 30, .pressure_kpa = 200, .level_percent = 80};
  coolant(none);
  for (const char* tray : {"r01/c01", "r01/c02", "r01/c03", "r01/s01"}) off(tray);
  run_ms(2'000);
  coolant(none);
  EXPECT_TRUE(of_.open.empty());
  feed(power_read{"r01/c02", power_seen::unknown});
  coolant(none);
  EXPECT_EQ(of_.open.size(), 1U) << "unknown counts as on";
}

// After a shutdown: no BMC has power to answer by, and no shelf feeds a host.
TEST_F(trip_logic, does_not_trip_a_rack_whose_shelves_are_read_off_and_whose_trays_are_silent) {
  const coolant_read none{.flow_lpm = 0, .supply_c = 30, .pressure_kpa = 200, .level_percent = 80};
  for (const char* tray : {"r01/c01", "r01/c02", "r01/c03", "r01/s01"}) feed(reach_changed{tray, false});
  off("r01/p01");
  off("r01/p02");
  coolant(none);
  run_ms(5'000);
  coolant(none);
  EXPECT_TRUE(of_.open.empty());
  feed(power_read{"r01/p02", power_seen::on});
  coolant(none);
  EXPECT_EQ(of_.open.size(), 1U) << "one shelf may feed a host that cannot be asked";
}

TEST_F(trip_logic, raises_a_suspected_leak_within_a_minute_of_a_slow_weep_and_trips_nothing) {
  // C-14: secondary pressure falls 18 % in 4 min, the level with it; every detector is dry.
  double pressure = 200;
  double level = 80;
  const auto second = [this, &pressure, &level](int i) {
    const double noise = (i * 37 % 11 - 5) * 0.1;  // kPa
    coolant({.flow_lpm = 100, .supply_c = 30, .pressure_kpa = pressure + noise, .level_percent = level});
    run_ms(1'000);
  };
  for (int i = 0; i < 300; ++i) second(i);
  EXPECT_FALSE(of_.suspected);
  int seconds = 0;
  for (; seconds < 60 && !of_.suspected; ++seconds) {
    pressure -= 200 * 0.18 / 240;
    level -= 0.5 / 60;
    second(seconds);
  }
  EXPECT_TRUE(of_.suspected);
  EXPECT_LT(seconds, 60);
  EXPECT_TRUE(of_.open.empty());
}

TEST_F(trip_logic, suspects_no_leak_when_pressure_or_level_falls_alone) {
  for (int i = 0; i < 120; ++i) {
    coolant({.flow_lpm = 100, .supply_c = 30, .pressure_kpa = 200 - i * 0.5, .level_percent = 80});
    run_ms(1'000);
    EXPECT_FALSE(of_.suspected);
  }
  restart_rig();
  for (int i = 0; i < 120; ++i) {
    coolant({.flow_lpm = 100, .supply_c = 30, .pressure_kpa = 200, .level_percent = 80 - i * 0.1});
    run_ms(1'000);
    EXPECT_FALSE(of_.suspected);
  }
}

TEST_F(trip_logic, an_answer_is_not_the_end_neither_a_good_one_nor_already_off) {
  wet("r01/c01");
  feed(command_ended{"r01/c01", 204});
  EXPECT_FALSE(of_.open.begin()->second.closed);
  run_ms(100);
  EXPECT_GE(reads_of("r01/c01"), 1);
  off("r01/c01");
  EXPECT_TRUE(of_.open.begin()->second.closed);
  for (const int refused : {400, 409}) {  // C-07: fencing stuck on "already off"
    restart_rig();
    wet("r01/c01");
    feed(command_ended{"r01/c01", refused});
    EXPECT_EQ(reads_of("r01/c01"), 1) << "read back at once";
    off("r01/c01");
    EXPECT_TRUE(of_.open.begin()->second.closed);
  }
}

TEST_F(trip_logic, repeats_a_command_that_has_no_effect_and_complains_while_it_goes_on) {
  wet("r01/c01");
  run_ms(1'000);
  EXPECT_EQ(count("r01/c01"), 2);
  run_ms(120'000);
  EXPECT_GE(count("r01/c01"), 20);
  EXPECT_THAT(alarms_, ::testing::Contains(HasSubstr("r01/c01 is not off after 2 commands")));
  off("r01/c01");
  const int before = count("r01/c01");
  run_ms(60'000);
  EXPECT_EQ(count("r01/c01"), before);
}

TEST_F(trip_logic, flapping_shorter_than_the_confirm_time_is_no_trip) {
  use_confirm_ms(500);
  for (int i = 0; i < 200; ++i) {
    read("r01/c01", "0_Manifold", DetectorReading::LEAK);
    run_ms(400);
    read("r01/c01", "0_Manifold", DetectorReading::DRY);
    run_ms(100);
  }
  EXPECT_TRUE(of_.open.empty());
  read("r01/c01", "0_Manifold", DetectorReading::LEAK);
  EXPECT_TRUE(asked_.empty());
  run_ms(500);
  EXPECT_THAT(asked_, ElementsAre("r01/c01")) << "asked again when the time is over";
  EXPECT_TRUE(of_.open.empty()) << "a time that has passed is no reading";
  read("r01/c01", "0_Manifold", DetectorReading::LEAK);
  EXPECT_EQ(of_.open.size(), 1U);
}

TEST_F(trip_logic, a_poll_that_began_within_the_confirm_time_confirms_nothing) {
  use_confirm_ms(500);
  read("r01/c01", "0_Manifold", DetectorReading::LEAK);
  run_ms(510);
  const std::map<std::string, reading> wet_now{
      {"0_Manifold", {DetectorReading::LEAK, "read in part before"}}};
  feed(sensors_read{"r01/c01", wet_now, 60 * ms_in_ns});
  EXPECT_TRUE(of_.open.empty());
  run_ms(60);
  feed(sensors_read{"r01/c01", wet_now, 60 * ms_in_ns});
  EXPECT_EQ(of_.open.size(), 1U);
}

TEST_F(trip_logic, unknown_neither_trips_nor_ends_what_was_seen) {
  use_confirm_ms(500);
  for (int i = 0; i < 100; ++i) {
    read("r01/c01", "0_Manifold", DetectorReading::UNKNOWN);
    run_ms(250);
  }
  EXPECT_TRUE(of_.open.empty());
  read("r01/c01", "0_Manifold", DetectorReading::LEAK);
  run_ms(250);
  read("r01/c01", "0_Manifold", DetectorReading::UNKNOWN);
  run_ms(250);
  read("r01/c01", "0_Manifold", DetectorReading::LEAK);
  EXPECT_EQ(of_.open.size(), 1U) << "a leak behind a bus that drops every other answer";
}

// C-09: what 0, a negative number, null and nothing mean is written down and held.
TEST(confirm_time, zero_and_nothing_are_at_once_and_a_negative_one_is_refused) {
  ArmingRecord record = test::trip_record();
  EXPECT_TRUE(check_record(record, "r01").ok());
  Confirm* row = record.mutable_devices(0)->add_confirm();
  row->set_detector("0_Manifold");
  for (const int zero_or_null : {0}) {  // null in YAML or JSON is a field not given, which proto3 reads as 0
    row->set_confirm_ms(zero_or_null);
    ASSERT_TRUE(check_record(record, "r01").ok());
    trips of;
    std::ignore = step(of, plan_changed{plan_of(record)}, 0);
    std::ignore = step(of, sensors_read{"r01/c01", {{"0_Manifold", {DetectorReading::LEAK, ""}}}}, 0);
    EXPECT_EQ(of.open.size(), 1U);
  }
  for (const int wrong : {-1, std::numeric_limits<int>::min(), 3001, std::numeric_limits<int>::max()}) {
    row->set_confirm_ms(wrong);
    EXPECT_TRUE(absl::IsInvalidArgument(check_record(record, "r01"))) << wrong;
  }
  record = test::trip_record();
  for (const double wrong :
       {0.0, -1.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    record.mutable_coolant()->set_flow_min_lpm(wrong);
    EXPECT_TRUE(absl::IsInvalidArgument(check_record(record, "r01"))) << wrong;
  }
  record = test::trip_record();
  record.mutable_coolant()->set_confirm_ms(-1);
  EXPECT_TRUE(absl::IsInvalidArgument(check_record(record, "r01")));
}

TEST_F(trip_logic, an_emergency_stop_takes_the_whole_rack_down_without_any_sensor) {
  feed(trip_asked{EMERGENCY_STOP, "r01", "uid 7: water under the rack"});
  EXPECT_THAT(commanded(),
              ElementsAre("r01/c01", "r01/c02", "r01/c03", "r01/s01", "r01/m01/supply", "r01/m01/return"));
  EXPECT_EQ(of_.open.begin()->second.cause, EMERGENCY_STOP);
}

TEST_F(trip_logic, a_trip_that_was_open_at_a_restart_is_carried_on_to_its_end) {
  wet("cdu01", "r01_rope");
  off("r01/c01");
  const std::vector<Latch> file = lines_;
  restart_rig();
  now_ns_ += 1'500 * ms_in_ns;
  feed(trips_restored{file, wall_ns_ + 1'500 * ms_in_ns});
  EXPECT_EQ(count("r01/c02"), 1);
  run_ms(500);
  EXPECT_EQ(count("r01/p01"), 1) << "the two seconds are those of the trip, not of the restart";
  for (const char* each : {"r01/c01", "r01/c02", "r01/c03", "r01/s01", "r01/p01", "r01/p02"}) off(each);
  closed("r01/m01/supply");
  closed("r01/m01/return");
  EXPECT_TRUE(of_.open.begin()->second.closed);
  EXPECT_EQ(lines_.back().kind(), Latch::TRIP_CLOSED);
  EXPECT_EQ(lines_.back().trip(), file[1].number());
}

TEST_F(trip_logic, a_leak_whose_trip_did_not_reach_the_disk_trips_after_the_restart) {
  wet("r01/c01");
  const std::vector<Latch> file(lines_.begin(), lines_.begin() + 1);
  ASSERT_EQ(file.front().kind(), Latch::LEAK_SEEN);
  restart_rig();
  feed(trips_restored{file, wall_ns_});
  EXPECT_THAT(commanded(), ElementsAre("r01/c01"));
}

TEST_F(trip_logic, a_closed_trip_stays_latched_over_a_restart_and_commands_nothing_again) {
  wet("r01/c01");
  off("r01/c01");
  const std::vector<Latch> file = lines_;
  restart_rig();
  feed(trips_restored{file, wall_ns_});
  run_ms(10'000);
  EXPECT_THAT(commanded(), IsEmpty());
  EXPECT_NE(trip_over(of_, "r01/c01"), nullptr);
  wet("r01/c01");
  EXPECT_THAT(commanded(), IsEmpty()) << "the same leak is latched already";
}

TEST_F(trip_logic, a_bypass_ends_by_itself_and_outlives_a_restart_by_no_second) {
  feed(bypass_set{"r01/c01", "0_Manifold", "uid 7", "broken", now_ns_ + 60 * s_in_ns,
                  wall_ns_ + 60 * s_in_ns});
  wet("r01/c01");
  EXPECT_TRUE(of_.open.empty());
  const std::vector<Latch> file = lines_;
  restart_rig();
  feed(trips_restored{file, wall_ns_ + 50 * s_in_ns});
  run_ms(9'999);
  EXPECT_TRUE(is_bypassed(of_, "r01/c01", "0_Manifold"));
  run_ms(1);
  EXPECT_FALSE(is_bypassed(of_, "r01/c01", "0_Manifold"));
  EXPECT_EQ(lines_.back().kind(), Latch::BYPASS_ENDED);
  wet("r01/c01");
  EXPECT_EQ(of_.open.size(), 1U);
}

TEST_F(trip_logic, a_wall_clock_that_was_set_back_prolongs_no_bypass) {
  feed(bypass_set{"r01/c01", "0_Manifold", "uid 7", "broken", now_ns_ + 60 * s_in_ns,
                  wall_ns_ + 60 * s_in_ns});
  const std::vector<Latch> file = lines_;
  restart_rig();
  feed(trips_restored{file, wall_ns_ - 86'400 * s_in_ns});
  run_ms(60'000);
  EXPECT_FALSE(is_bypassed(of_, "r01/c01", "0_Manifold"));
}

TEST_F(trip_logic, a_device_that_joins_a_tripped_rack_goes_down_with_it) {
  wet("cdu01", "r01_rope");
  ArmingRecord wider = test::trip_record();
  *wider.add_devices() = test::make_device("r01/c04");
  feed(plan_changed{plan_of(wider)});
  EXPECT_EQ(count("r01/c04"), 1);
}

TEST_F(trip_logic, waits_for_no_device_that_an_operator_took_out_of_the_record) {
  wet("r01/c02");
  ArmingRecord smaller = test::trip_record();
  smaller.mutable_devices()->DeleteSubrange(1, 1);
  feed(plan_changed{plan_of(smaller)});
  EXPECT_TRUE(of_.open.begin()->second.closed);
}

}  // namespace
}  // namespace busbar::interlock
