#include <gtest/gtest.h>

#include "actors/plant/differential_pressure_logic.hpp"
#include "actors/plant/supervisor_logic.hpp"
#include "actors/plant/supply_temperature_logic.hpp"
#include "tests/bench/cooling/cooling_rig.hpp"

namespace busbar::plant {
namespace {

constexpr exchanger_model nameplate;
constexpr exchanger_duty full_load{475, 56, 27};

TEST(exchanger, the_factor_on_its_nameplate_is_what_the_temperature_says) {
  for (const double factor : {0.6, 0.85, 1.0, 1.3}) {
    const double out = coolant_out_c(nameplate, full_load, 420.0, factor);
    EXPECT_NEAR(ua_factor_for(nameplate, full_load, 420.0, out), factor, 0.01);
  }
}

TEST(exchanger, the_opening_counts_what_was_learned_of_valve_and_exchanger) {
  for (const exchanger_learned learned :
       {exchanger_learned{1.0, 1.0}, exchanger_learned{0.85, 1.2}, exchanger_learned{1.2, 0.85}}) {
    const double opening = opening_for(nameplate, full_load, 40.0, learned);
    EXPECT_NEAR(coolant_out_c(nameplate, full_load, opening, learned), 40.0, 0.01);
  }
}

supply_temperature_state settled(double ua_factor, double kv_factor, double load, bool with_facility_flow) {
  sim::physics::plant_design design;
  design.exchanger.ua_kw_per_k *= ua_factor;
  design.facility_valve.kv_max *= kv_factor;
  bench::cooling_rig rig(design, {}, load);
  rig.facility_flow_known = with_facility_flow;
  rig.run(1500);
  return rig.supply_state();
}

TEST(supply_temperature, learns_valve_and_exchanger_where_facility_flow_is_measured) {
  const auto state = settled(0.85, 0.85, 0.6, true);
  EXPECT_NEAR(state.learned.ua, 0.85, 0.1);
  EXPECT_NEAR(state.learned.facility_flow, 0.87, 0.08);  // the exchanger's own resistance takes its part
}

TEST(supply_temperature, stays_with_the_nameplate_where_facility_flow_is_not_known) {
  const auto state = settled(0.85, 0.85, 0.6, false);
  EXPECT_EQ(state.learned.ua, 1.0);
  EXPECT_EQ(state.learned.facility_flow, 1.0);
}

TEST(supply_temperature, learns_little_of_an_exchanger_whose_outlet_hardly_depends_on_it) {
  const auto state = settled(1.0, 1.0, 0.1, true);
  EXPECT_NEAR(state.learned.ua, 1.0, 0.15);
}

TEST(differential_pressure, makes_ready_for_flow_that_is_asked_for_before_it_flows) {
  const differential_pressure_gains gains;
  differential_pressure_inputs inputs;
  inputs.pumps = {{true, good(0.5, {})}, {true, good(0.5, {})}, {true, good(0.5, {})}};
  const auto speed_after = [&](double asked) {
    differential_pressure_state state;
    differential_pressure_outputs out;
    for (int s = 0; s <= 20; ++s) {
      const instant now = std::chrono::seconds(s);
      for (pump_input& pump : inputs.pumps) pump.speed = good(s == 0 ? 0.5 : out.speed, now);
      inputs.dp_kpa = good(120.0, now);
      inputs.flow_lpm = good(150.0, now);
      inputs.asked_lpm = good(s < 20 ? 150.0 : asked, now);
      auto next = step(gains, std::move(state), inputs, now);
      state = std::move(next.state);
      out = next.outputs;
    }
    return out.speed;
  };
  EXPECT_GT(speed_after(450.0), speed_after(150.0) + 0.05);
}

TEST(supervisor, a_valve_that_only_jumps_is_no_reason_to_move_pressure) {
  const supervisor_gains gains;
  for (const double opening : {0.5, 0.99}) {
    supervisor_state state;
    supervisor_outputs out;
    double settled_kpa = 0;
    for (int s = 0; s < 600; ++s) {
      const instant now = std::chrono::seconds(s);
      const std::vector<rack_demand> racks = {{true, 80.0, good(opening, now), false, true}};
      auto next = step(gains, std::move(state), racks, 100.0, now);
      state = std::move(next.state);
      out = next.outputs;
      if (s == 300) settled_kpa = out.set_point_kpa;
    }
    EXPECT_EQ(out.set_point_kpa, settled_kpa) << opening;
  }
}

}  // namespace
}  // namespace busbar::plant
