// Which member steps open which rack step (bringup.md, section 2, row by row), and what a failed member does
// to the rack.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/unit/rack/rack_bench.hpp"

namespace busbar::rack::test {
namespace {

using journal::RackStep;

TEST(guards, standby_needs_every_shelf_the_cdu_dry_detectors_and_the_interlock) {
  rack_bench bench;
  bench.bring_up();
  EXPECT_EQ(bench.goal(slot('p', 1)), journal::CREDENTIALED);
  EXPECT_EQ(bench.goal(slot('c', 1)), journal::DECLARED);
  for (unsigned i = 1; i <= 8; ++i) {
    EXPECT_EQ(bench.state.rack.step(), journal::PLANNED);
    bench.change(slot('p', i), [](journal::Node& node) { node.set_step(journal::CREDENTIALED); });
  }
  EXPECT_EQ(bench.state.rack.step(), journal::PLANNED);
  EXPECT_EQ(bench.state.rack.waits_for(), "the interlock's first heartbeat");
  bench.arm([](interlock::Status& status) { status.set_armed_rack(false); });
  EXPECT_EQ(bench.state.rack.step(), journal::PLANNED);
  bench.arm();
  EXPECT_EQ(bench.state.rack.step(), journal::PLANNED);
  EXPECT_NE(bench.state.rack.waits_for().find("were not read"), std::string::npos);
  bench.cool();
  EXPECT_EQ(bench.state.rack.step(), journal::STANDBY);
}

TEST(guards, an_open_latch_keeps_the_rack_from_standby) {
  rack_bench bench;
  bench.bring_up();
  bench.change_all(journal::POWER_SHELF, [](journal::Node& node) { node.set_step(journal::CREDENTIALED); });
  bench.cool();
  bench.arm([](interlock::Status& status) { status.add_latches()->set_device("r01/c03"); });
  EXPECT_EQ(bench.state.rack.step(), journal::PLANNED);
}

TEST(guards, unknown_or_wet_rack_detectors_keep_the_rack_from_standby) {
  for (const auto verdict : {journal::Detector::UNKNOWN, journal::Detector::LEAK}) {
    rack_bench bench;
    bench.bring_up();
    bench.arm();
    bench.change_all(journal::POWER_SHELF, [](journal::Node& node) { node.set_step(journal::CREDENTIALED); });
    devices::cooling_facts facts;
    facts.flow_lpm = 200;
    facts.dp_kpa = 60;
    facts.detectors = {{"rope", journal::Detector::DRY, "", std::nullopt},
                       {"pan", verdict, "", std::nullopt}};
    bench.give(cooling_read{facts});
    EXPECT_EQ(bench.state.rack.step(), journal::PLANNED);
    facts.detectors.clear();
    bench.give(cooling_read{facts});
    EXPECT_EQ(bench.state.rack.step(), journal::PLANNED) << "no detector shown is not dry";
  }
}

TEST(guards, ingested_needs_every_tray_that_has_not_failed) {
  rack_bench bench;
  bench.reach(journal::STANDBY);
  bench.change_all(journal::SWITCH_TRAY, [](journal::Node& node) { node.set_step(journal::CREDENTIALED); });
  for (unsigned i = 1; i <= 17; ++i)
    bench.change(slot('c', i), [](journal::Node& node) { node.set_step(journal::CREDENTIALED); });
  EXPECT_EQ(bench.state.rack.step(), journal::STANDBY);
  EXPECT_EQ(bench.state.rack.waits_for(), "17 of 18 compute trays credentialed");
  bench.break_member(slot('c', 18), core::fault::IDENTITY_SERIAL_MISMATCH);
  EXPECT_EQ(bench.state.rack.step(), journal::INGESTED);
  EXPECT_EQ(bench.state.rack.ceiling(), "degraded");
}

TEST(guards, cooled_needs_flow_and_pressure_in_band_for_ten_seconds) {
  rack_bench bench;
  bench.reach(journal::INGESTED);
  ASSERT_EQ(bench.state.rack.step(), journal::INGESTED);
  for (int second = 0; second < 9; ++second) {
    bench.wait_ns(1'000'000'000);
    bench.cool();
    EXPECT_EQ(bench.state.rack.step(), journal::INGESTED);
  }
  bench.cool(119.9);  // one reading out of band begins it anew
  for (int second = 0; second < 9; ++second) {
    bench.wait_ns(1'000'000'000);
    bench.cool();
    EXPECT_EQ(bench.state.rack.step(), journal::INGESTED);
  }
  bench.wait_ns(1'000'000'000);
  bench.cool();
  bench.wait_ns(1'000'000'000);
  bench.cool();
  EXPECT_EQ(bench.state.rack.step(), journal::COOLED);
}

TEST(guards, powered_needs_every_tray_read_on_and_staged) {
  rack_bench bench;
  bench.reach(journal::COOLED);
  bench.change_all(journal::SWITCH_TRAY, [](journal::Node& node) { node.set_step(journal::STAGED); });
  bench.change_all(journal::COMPUTE_TRAY, [](journal::Node& node) { node.set_step(journal::STAGED); });
  EXPECT_EQ(bench.state.rack.step(), journal::COOLED) << "a step alone is no reading";
  bench.raise_all(journal::STAGED);
  EXPECT_EQ(bench.state.rack.step(), journal::POWERED);
}

TEST(guards, nvlink_ready_needs_all_switch_trays_configured_and_the_fabric_read) {
  rack_bench bench;
  bench.reach(journal::POWERED);
  bench.raise_all(journal::CONFIGURED);
  EXPECT_EQ(bench.state.rack.step(), journal::POWERED);
  EXPECT_EQ(bench.effects_of<ask_nvlink>().size(), 27U);
  EXPECT_EQ(bench.goal(slot('c', 1)), journal::CONFIGURED) << "no suite before the fabric";
  bench.answer_fabric();
  EXPECT_EQ(bench.state.rack.step(), journal::NVLINK_READY);
  EXPECT_EQ(bench.goal(slot('c', 1)), journal::VALIDATED);
}

TEST(guards, a_failed_switch_tray_cordons_the_rack) {
  rack_bench bench;
  bench.reach(journal::POWERED);
  bench.break_member(slot('s', 4));
  EXPECT_EQ(bench.state.rack.state(), "cordoned");
  EXPECT_EQ(bench.operation_state(), "FAILED");
}

TEST(guards, production_is_reached_by_eighteen_of_eighteen) {
  rack_bench bench;
  bench.reach(journal::RACK_PRODUCTION);
  EXPECT_EQ(bench.state.rack.step(), journal::RACK_PRODUCTION);
  EXPECT_EQ(bench.goal(slot('c', 18)), journal::PRODUCTION);
  EXPECT_EQ(bench.operation_state(), "");
  bench.raise_all(journal::PRODUCTION);
  bench.change_all(journal::POWER_SHELF, [](journal::Node& node) { node.set_step(journal::PRODUCTION); });
  EXPECT_EQ(bench.operation_state(), "SUCCEEDED");
  EXPECT_EQ(bench.state.rack.state(), "production");
  EXPECT_EQ(bench.state.rack.gates().at("rack"), "passed");
  EXPECT_EQ(bench.wake_at_ns, core::never_ns);
}

TEST(guards, sixteen_or_seventeen_of_eighteen_are_degraded_and_the_operation_has_failed) {
  for (unsigned broken = 1; broken <= 2; ++broken) {
    rack_bench bench;
    for (unsigned i = 0; i < broken; ++i) bench.break_member(slot('c', 18 - i));
    bench.reach(journal::RACK_PRODUCTION);
    EXPECT_EQ(bench.state.rack.suite().members_size(), 18 - static_cast<int>(broken));
    bench.raise_all(journal::PRODUCTION);
    bench.change_all(journal::POWER_SHELF, [](journal::Node& node) { node.set_step(journal::PRODUCTION); });
    EXPECT_EQ(bench.state.rack.state(), "degraded");
    EXPECT_EQ(bench.operation_state(), "FAILED");
    std::map<std::string, std::string> rows;
    for (const auto& row : bench.effects_of<core::component_update>()) rows[row.target] = row.state;
    EXPECT_EQ(rows.at(slot('c', 18)), "FAILED");
    EXPECT_EQ(rows.at(slot('c', 1)), "SUCCEEDED");
  }
}

TEST(guards, fewer_than_the_minimum_are_cordoned) {
  rack_bench bench;
  bench.reach(journal::POWERED);
  for (unsigned i = 1; i <= 3; ++i) bench.break_member(slot('c', i));
  EXPECT_EQ(bench.state.rack.state(), "cordoned");
  EXPECT_EQ(bench.state.rack.failure().fault(), "INVENTORY_MISSING");
  EXPECT_EQ(bench.operation_state(), "FAILED");
}

TEST(guards, a_rack_in_production_is_lowered_when_members_fail_and_raised_only_by_a_bring_up) {
  rack_bench bench;
  bench.reach(journal::RACK_PRODUCTION);
  bench.raise_all(journal::PRODUCTION);
  bench.change_all(journal::POWER_SHELF, [](journal::Node& node) { node.set_step(journal::PRODUCTION); });
  bench.break_member(slot('c', 1));
  EXPECT_EQ(bench.state.rack.state(), "degraded");
  bench.change(slot('c', 1), [](journal::Node& node) { node.clear_failure(); });
  EXPECT_EQ(bench.state.rack.state(), "degraded");
  EXPECT_EQ(bench.count_told("state_lowered"), 1U);
}

TEST(guards, a_gate_that_is_not_required_is_shown_so_and_never_as_passed) {
  rack_bench bench;
  bench.spec().mutable_manifest()->clear_gates();
  bench.spec().mutable_manifest()->add_gates("node");
  bench.reach(journal::NODE_VALIDATED);
  EXPECT_EQ(bench.state.rack.step(), journal::RACK_PRODUCTION);
  EXPECT_EQ(bench.state.rack.gates().at("rack"), "NOT_REQUIRED");
  EXPECT_EQ(bench.state.rack.suite().verdict(), journal::SuiteResult::NOT_REQUIRED);
  EXPECT_TRUE(bench.effects_of<run_rack_test>().empty());
}

TEST(guards, every_late_step_has_a_named_failure) {
  for (int at = journal::PLANNED; at <= journal::NODE_VALIDATED; ++at) {
    rack_bench bench;
    bench.reach(static_cast<RackStep>(at));
    ASSERT_EQ(bench.state.rack.step(), at);
    ASSERT_NE(bench.wake_at_ns, core::never_ns);
    for (int i = 0; i < 30 && !bench.state.rack.has_failure(); ++i) {
      if (bench.state.run.judging) bench.wait_ns(10'000'000'000'000);
      bench.wait_ns(std::max<std::int64_t>(0, bench.state.run.deadline_ns == core::never_ns
                                                  ? 0
                                                  : bench.state.run.deadline_ns - bench.now.monotonic_ns));
      bench.give(wake{});
    }
    ASSERT_TRUE(bench.state.rack.has_failure()) << at;
    EXPECT_TRUE(core::fault_named(bench.state.rack.failure().fault()).has_value());
    EXPECT_EQ(bench.operation_state(), "FAILED");
    EXPECT_EQ(bench.wake_at_ns, core::never_ns) << "a failed rack wakes for nothing";
  }
}

// ---- cooling
// ------------------------------------------------------------------------------------------------------------------

TEST(cooling, nothing_but_a_fresh_number_in_band_is_proven) {
  journal::CoolingSpec limits;
  limits.set_flow_min_lpm(120);
  limits.set_dp_min_kpa(20);
  limits.set_dp_max_kpa(120);
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  const auto proven = [&limits](std::optional<double> flow, std::optional<double> dp, std::int64_t age_ns) {
    cooling_state state;
    core::instant now{1'000'000'000, 0};
    devices::cooling_facts facts;
    facts.flow_lpm = flow;
    facts.dp_kpa = dp;
    for (int second = 0; second <= 11; ++second) {
      now.monotonic_ns += 1'000'000'000;
      take_cooling(state, limits, facts, now);
    }
    now.monotonic_ns += age_ns;
    return !flow_not_proven(state, limits, now).has_value();
  };
  EXPECT_TRUE(proven(120, 20, 0));
  EXPECT_TRUE(proven(500, 120, 3'000'000'000));
  EXPECT_FALSE(proven(std::nullopt, 60, 0));
  EXPECT_FALSE(proven(200, std::nullopt, 0));
  EXPECT_FALSE(proven(nan, 60, 0));
  EXPECT_FALSE(proven(200, nan, 0));
  EXPECT_FALSE(proven(inf, 60, 0));
  EXPECT_FALSE(proven(119.9, 60, 0));
  EXPECT_FALSE(proven(200, 19.9, 0));
  EXPECT_FALSE(proven(200, 120.1, 0));
  EXPECT_FALSE(proven(200, 60, 4'000'000'001)) << "a stale reading says nothing";
}

TEST(cooling, a_gap_in_the_readings_begins_the_soak_anew) {
  journal::CoolingSpec limits;
  limits.set_flow_min_lpm(120);
  limits.set_dp_max_kpa(120);
  devices::cooling_facts facts;
  facts.flow_lpm = 200;
  facts.dp_kpa = 60;
  cooling_state state;
  core::instant now{1'000'000'000, 0};
  take_cooling(state, limits, facts, now);
  now.monotonic_ns += 20'000'000'000;
  take_cooling(state, limits, facts, now);
  EXPECT_TRUE(flow_not_proven(state, limits, now).has_value());
  take_cooling(state, limits, core::make_fault(core::fault::BMC_UNREACHABLE, "x"), now);
  EXPECT_TRUE(flow_not_proven(state, limits, now).has_value());
}

TEST(cooling, readings_out_of_band_are_told_once) {
  rack_bench bench;
  bench.reach(journal::STANDBY);
  bench.cool(80.0);
  const std::size_t told = bench.count_told("condition_set");
  for (int i = 0; i < 50; ++i) {
    bench.wait_ns(1'000'000'000);
    bench.cool(80.0 + i * 0.4);
    EXPECT_FALSE(bench.durable) << "a reading is no state";
  }
  EXPECT_EQ(bench.count_told("condition_set"), told);
}

}  // namespace
}  // namespace busbar::rack::test
