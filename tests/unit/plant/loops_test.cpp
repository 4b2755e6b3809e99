#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "actors/plant/pi_logic.hpp"
#include "tests/bench/cooling/cooling_runs.hpp"

namespace busbar::plant {
namespace {

using bench::cooling_rig;
using sim::physics::plant_design;
using sim::physics::plant_sensor;
using sim::physics::rack_sensor;
using sim::physics::sensor_fault;
using std::chrono::seconds;
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

TEST(pi, recovers_from_saturation_without_windup) {
  const pi_gains gains{1.0, 5.0, 5.0, 0.0, 1.0, 1e9, 0.0};
  pi_state state;
  for (int s = 0; s < 600; ++s) pi_step(gains, state, 2.0, 0.0, 1.0);
  EXPECT_EQ(state.output, 1.0);
  EXPECT_LT(state.integral, 5.0);  // without back-calculation it would be 240
  int back = 0;
  while (state.output >= 1.0 && back < 100) {
    pi_step(gains, state, -0.5, 0.0, 1.0);
    ++back;
  }
  EXPECT_LE(back, 3);
}

TEST(pi, tracking_makes_the_next_output_the_present_one) {
  const pi_gains gains{0.7, 20.0, 20.0, 0.0, 1.0, 1e9, 0.0};
  pi_state state;
  pi_track(gains, state, 0.42, 0.3, 0.1);
  EXPECT_NEAR(pi_step(gains, state, 0.3, 0.1, 1e-6), 0.42, 1e-5);
}

TEST(pi, a_nan_moves_nothing) {
  const pi_gains gains;
  pi_state state;
  pi_track(gains, state, 0.42, 0.0, 0.0);
  for (const double bad : {nan, std::numeric_limits<double>::infinity()}) {
    EXPECT_EQ(pi_step(gains, state, bad, 0.0, 1.0), 0.42);
    EXPECT_EQ(pi_step(gains, state, 0.1, bad, 1.0), 0.42);
    EXPECT_EQ(pi_step(gains, state, 0.1, 0.0, bad), 0.42);
  }
  EXPECT_TRUE(std::isfinite(state.integral));
}

TEST(flow_map, follows_the_table_and_stays_at_its_ends) {
  const flow_map map;
  EXPECT_DOUBLE_EQ(map.lpm_per_kw(40), 0.9);
  EXPECT_DOUBLE_EQ(map.lpm_per_kw(42.5), 1.1);
  EXPECT_DOUBLE_EQ(map.lpm_per_kw(10), 0.4);
  EXPECT_DOUBLE_EQ(map.lpm_per_kw(60), 1.3);
}

struct rack_bench {
  rack_flow_gains gains;
  rack_flow_state state;
  instant now = seconds{0};
  rack_flow_inputs inputs;
  rack_flow_outputs out;
  rack_bench() { set(60, 40, 120, 54, 56, 0.6); }
  void set(double kw, double inlet, double dp, double flow, double back, double valve) {
    values = {kw, inlet, dp, flow, back, valve};
  }
  std::array<double, 6> values{};
  void second() {
    now += seconds{1};
    const auto value = [this](double v) { return std::isfinite(v) ? good(v, now) : measurement{}; };
    inputs.rack_kw = value(values[0]);
    inputs.inlet_c = value(values[1]);
    inputs.dp_kpa = value(values[2]);
    inputs.flow_lpm = value(values[3]);
    inputs.return_c = value(values[4]);
    inputs.valve = value(values[5]);
    auto next = step(gains, state, inputs, now);
    state = next.state;
    out = next.outputs;
  }
};

TEST(rack_flow, keeps_its_floor_while_any_gpu_is_on_or_not_known_to_be_off) {
  for (const std::optional<bool> on : {std::optional<bool>{true}, std::optional<bool>{}}) {
    rack_bench rack;
    rack.inputs.any_gpu_on = on;
    rack.values[0] = 0.0;
    for (int s = 0; s < 60; ++s) rack.second();
    EXPECT_GE(rack.out.target_lpm, 0.30 * rack.gains.rated_lpm - 1e-9);
    EXPECT_TRUE(rack.out.at_floor);
  }
}

TEST(rack_flow, holds_thirty_seconds_without_power_or_inlet_then_opens_to_its_fail_safe) {
  for (const std::size_t lost : {0u, 1u}) {
    rack_bench rack;
    for (int s = 0; s < 30; ++s) rack.second();
    const double held = rack.out.valve_command;
    rack.values[lost] = nan;
    for (int s = 1; s <= 60; ++s) {
      rack.second();
      ASSERT_TRUE(std::isfinite(rack.out.valve_command));
      if (s <= 30) {
        EXPECT_EQ(rack.out.mode, loop_mode::holding) << s;
        EXPECT_EQ(rack.out.valve_command, held) << s;
      } else {
        EXPECT_EQ(rack.out.mode, loop_mode::fail_safe) << s;
        EXPECT_EQ(rack.out.valve_command, rack.gains.fail_safe_opening) << s;
      }
    }
  }
}

TEST(rack_flow, follows_a_valve_in_manual_and_takes_over_where_it_is) {
  rack_bench rack;
  rack.inputs.automatic = false;
  rack.values[5] = 0.47;
  for (int s = 0; s < 30; ++s) rack.second();
  EXPECT_EQ(rack.out.mode, loop_mode::manual);
  rack.inputs.automatic = true;
  rack.second();
  EXPECT_NEAR(rack.out.valve_command, 0.47, 0.03);
}

TEST(rack_flow, starts_after_a_restart_from_the_position_it_reads) {
  rack_bench rack;
  rack.values[5] = 0.62;
  rack.values[3] = 54;
  rack.second();
  EXPECT_NEAR(rack.out.valve_command, 0.62, 0.03);
}

TEST(loops, every_sensor_dead_in_turn_leaves_finite_commands_within_limits) {
  for (const plant_sensor dead : {plant_sensor::supply, plant_sensor::return_, plant_sensor::flow,
                                  plant_sensor::dp, plant_sensor::facility_c, plant_sensor::facility_flow}) {
    cooling_rig rig(plant_design{}, {}, 0.6);
    rig.run(120);
    rig.plant.fault(dead, sensor_fault::dead);
    for (int s = 0; s < 120; ++s) {
      rig.step();
      for (const double each : {rig.supply.valve_command, rig.pressure.speed, rig.racks[0].valve_command}) {
        ASSERT_TRUE(std::isfinite(each)) << static_cast<int>(dead);
        EXPECT_GE(each, 0.0);
        EXPECT_LE(each, 1.0);
      }
      EXPECT_LT(rig.plant.rack(0).hottest_die_c, 105) << static_cast<int>(dead);
    }
  }
}

TEST(loops, supply_sensor_lost_is_held_thirty_seconds_then_the_valve_opens) {
  cooling_rig rig(plant_design{}, {}, 0.6);
  rig.run(300);
  const double held = rig.supply.valve_command;
  rig.plant.fault(plant_sensor::supply, sensor_fault::dead);
  for (int s = 0; s < 30; ++s) {
    rig.step();
    EXPECT_EQ(rig.supply.mode, loop_mode::holding) << s;
    EXPECT_EQ(rig.supply.valve_command, held) << s;
  }
  rig.run(3);
  EXPECT_EQ(rig.supply.mode, loop_mode::fail_safe);
  EXPECT_EQ(rig.supply.valve_command, rig.gains.supply.fail_safe_opening);
}

TEST(loops, t26_a_restart_in_operation_bumps_nothing) {
  cooling_rig rig(plant_design{}, {}, 0.6);
  rig.run(900);
  cooling_rig after(plant_design{}, {}, 0.6);
  after.adopt_pressure_set(rig.pressure_set_kpa());
  std::swap(after.plant, rig.plant);  // the same plant, loops that know nothing
  const double supply = after.plant.truth().supply_c;
  const double valve = after.plant.truth().facility_valve;
  after.step();
  EXPECT_NEAR(after.supply.valve_command, valve, 0.02);
  EXPECT_NEAR(after.pressure.speed, after.plant.truth().pump_speed[0], 0.02);
  for (int s = 0; s < 180; ++s) {
    after.step();
    EXPECT_NEAR(after.plant.truth().supply_c, supply, 1.0) << s;
  }
}

TEST(loops, manual_and_back_leaves_the_temperature_where_it_was) {
  cooling_rig rig(plant_design{}, {}, 0.6);
  rig.run(900);
  rig.automatic = false;
  rig.run(120);
  rig.automatic = true;
  for (int s = 0; s < 180; ++s) {
    rig.step();
    EXPECT_NEAR(rig.plant.truth().supply_c, rig.set_point_c, 1.0) << s;
  }
}

TEST(loops, t10_a_lost_pump_is_made_up_for_by_the_others_within_five_seconds) {
  const auto rows = bench::run_pump_loss(0);
  EXPECT_LE(bench::pump_recovery_s(rows), 5.0);
  EXPECT_LT(bench::pump_dip(rows), 0.25);
}

TEST(loops, t7_full_load_from_a_tenth_overshoots_by_little_and_settles) {
  const auto rows = bench::run_step(0, 0.1, 1.0);
  EXPECT_LE(bench::overshoot_c(rows), 1.5);
  EXPECT_LE(bench::settle_s(rows, 1.0), 90);
}

TEST(loops, t6_supply_temperature_is_steady) {
  EXPECT_LE(bench::steady_c(bench::run_steady(0, 0.5)), 0.3);
}

TEST(loops, t20_a_sticking_valve_is_left_at_rest) {
  EXPECT_LE(bench::stiction_swing(bench::run_stiction(0)), 0.01);
}

TEST(loops, t8_load_that_falls_away_never_brings_the_supply_near_the_dew_point) {
  const auto rows = bench::run_step(0, 1.0, 0.1);
  for (const auto& row : rows) EXPECT_GT(row.supply_error_c, -5.0);
}

struct pressure_bench {
  differential_pressure_gains gains;
  differential_pressure_state state;
  instant now = seconds{0};
  std::vector<std::optional<bool>> running{true, true, true};
  double dp = 120;
  double flow = 400;
  double speed = 0.7;
  differential_pressure_outputs out;
  void second() {
    now += seconds{1};
    differential_pressure_inputs inputs;
    inputs.dp_kpa = std::isfinite(dp) ? good(dp, now) : measurement{};
    inputs.flow_lpm = std::isfinite(flow) ? good(flow, now) : measurement{};
    for (const auto& each : running) inputs.pumps.push_back({each, good(speed, now)});
    auto next = step(gains, state, inputs, now);
    state = next.state;
    out = next.outputs;
    speed = out.speed;
  }
};

TEST(differential_pressure, steps_the_others_up_at_once_when_a_pump_is_lost) {
  pressure_bench cdu;
  for (int s = 0; s < 10; ++s) cdu.second();
  const double before = cdu.out.speed;
  cdu.running[1] = false;
  cdu.second();
  EXPECT_TRUE(cdu.out.stepped);
  EXPECT_GT(cdu.out.speed, before + 0.02);
  EXPECT_LE(cdu.out.speed, 1.0);
}

TEST(differential_pressure, without_a_flow_reading_steps_by_n_over_n_less_one) {
  pressure_bench cdu;
  cdu.flow = nan;
  cdu.speed = 0.5;
  for (int s = 0; s < 3; ++s) cdu.second();
  const double before = cdu.out.speed;
  cdu.running[1] = false;
  cdu.second();
  EXPECT_NEAR(cdu.out.speed, std::min(1.0, before * 1.5), 1e-9);
}

TEST(differential_pressure, a_pump_whose_state_is_not_known_causes_no_step) {
  pressure_bench cdu;
  for (int s = 0; s < 10; ++s) cdu.second();
  cdu.running[1] = std::nullopt;
  cdu.second();
  EXPECT_FALSE(cdu.out.stepped);
}

TEST(differential_pressure, holds_then_fails_safe_without_its_sensor) {
  pressure_bench cdu;
  for (int s = 0; s < 10; ++s) cdu.second();
  const double held = cdu.out.speed;
  cdu.dp = nan;
  for (int s = 1; s <= 30; ++s) {
    cdu.second();
    EXPECT_EQ(cdu.out.speed, held);
  }
  cdu.second();
  EXPECT_EQ(cdu.out.mode, loop_mode::fail_safe);
  EXPECT_EQ(cdu.out.speed, cdu.gains.fail_safe_speed);
}

TEST(supervisor, raises_pressure_for_the_widest_valve_and_lowers_it_only_on_full_knowledge) {
  supervisor_gains gains;
  const auto run = [&gains](double widest, bool other_known) {
    supervisor_state state;
    supervisor_outputs out;
    for (int s = 1; s <= 600; ++s) {
      const instant now = seconds{s};
      const std::vector<rack_demand> racks{{true, 110, good(widest, now), false},
                                           {true, 60, other_known ? good(0.4, now) : measurement{}, false}};
      auto next = step(gains, state, racks, 80, now);
      state = next.state;
      out = next.outputs;
    }
    return state.trim_kpa;
  };
  EXPECT_GT(run(0.97, true), 10);
  EXPECT_LT(run(0.5, true), 0);
  EXPECT_EQ(run(0.5, false), 0);
  EXPECT_EQ(run(0.85, true), 0);
}

TEST(supervisor, knowing_no_valve_at_all_ends_at_the_highest_pressure) {
  supervisor_gains gains;
  supervisor_state state;
  supervisor_outputs out;
  for (int s = 1; s <= 1200; ++s) {
    auto next = step(gains, state, {{true, 60, {}, false}}, 80, seconds{s});
    state = next.state;
    out = next.outputs;
  }
  EXPECT_EQ(out.mode, loop_mode::fail_safe);
  EXPECT_NEAR(out.set_point_kpa, gains.most_kpa, 1.0);
}

}  // namespace
}  // namespace busbar::plant
