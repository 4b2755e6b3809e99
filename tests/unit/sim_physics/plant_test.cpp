#include <gtest/gtest.h>

#include <cmath>

#include "daemon/sim/physics/cooling_plant.hpp"
#include "daemon/sim/physics/fluid.hpp"
#include "daemon/sim/physics/load_pattern.hpp"

namespace busbar::sim::physics {
namespace {

cooling_plant settled(plant_design design, double load) {
  cooling_plant plant(design);
  plant.place(0.8, 0.6, 0.75);
  for (int rack = 0; rack < design.racks; ++rack) plant.set_load(static_cast<std::size_t>(rack), load);
  plant.advance(600);
  return plant;
}

plant_design whole_racks() {
  plant_design design;
  design.racks = 2;
  design.trays_per_rack = 27;
  design.dies_per_tray = 4;
  return design;
}

TEST(plant, heat_balance_closes_while_everything_changes) {
  cooling_plant plant(whole_racks());
  plant.place(0.8, 0.6, 0.75);
  for (int second = 0; second < 900; ++second) {
    for (std::size_t rack = 0; rack < 2; ++rack) {
      plant.set_load(rack, load_share(load_pattern::agentic, second, rack));
      plant.set_rack_valve(rack, 0.5 + 0.4 * std::sin(0.05 * second));
    }
    plant.set_facility_valve(0.5 + 0.3 * std::sin(0.02 * second));
    if (second == 300) plant.fail_pump(0);
    if (second == 600) plant.trap_air(0.1);
    plant.advance(1);
    EXPECT_LT(plant.heat_balance_error(), 1e-3) << second;
  }
}

TEST(plant, at_rest_power_equals_flow_times_rise_on_both_sides) {
  const cooling_plant plant = settled(whole_racks(), 0.9);
  double racks_kw = 0;
  for (std::size_t index = 0; index < 2; ++index) {
    const rack_truth rack = plant.rack(index);
    const double mean = 0.5 * (rack.inlet_c + rack.return_c);
    const double carried = mass_flow_kg_per_s(rack.flow_lpm, rack.inlet_c) * heat_capacity_kj_per_kg_k(mean) *
                           (rack.return_c - rack.inlet_c);
    EXPECT_NEAR(carried / rack.kw, 1.0, 1e-3);
    racks_kw += rack.kw;
  }
  const plant_truth truth = plant.truth();
  EXPECT_GT(truth.exchanged_kw, racks_kw);  // the pumps' heat leaves that way too
  EXPECT_NEAR(truth.exchanged_kw / racks_kw, 1.0, 0.03);
}

TEST(plant, one_rack_that_opens_takes_flow_from_the_others_and_pressure_falls) {
  cooling_plant plant = settled({}, 0.5);
  const double before = plant.truth().dp_kpa;
  const double neighbour = plant.rack(1).flow_lpm;
  plant.set_rack_valve(0, 1.0);
  plant.advance(20);
  EXPECT_LT(plant.truth().dp_kpa, before);
  EXPECT_LT(plant.rack(1).flow_lpm, neighbour);
  EXPECT_NEAR(
      plant.truth().flow_lpm,
      plant.rack(0).flow_lpm + plant.rack(1).flow_lpm + plant.rack(2).flow_lpm + plant.rack(3).flow_lpm,
      1e-3);
}

TEST(plant, a_lost_pump_lowers_pressure_and_its_check_valve_lets_nothing_back) {
  cooling_plant plant = settled({}, 0.5);
  const double before = plant.truth().dp_kpa;
  plant.fail_pump(1);
  plant.advance(5);
  EXPECT_LT(plant.truth().dp_kpa, 0.97 * before);
  EXPECT_GT(plant.truth().dp_kpa, 0.5 * before);
}

TEST(plant, without_any_flow_dies_warm_by_more_than_a_kelvin_a_second) {
  cooling_plant plant = settled({}, 1.0);
  const double before = plant.rack(0).hottest_die_c;
  for (std::size_t pump = 0; pump < 3; ++pump) plant.fail_pump(pump);
  plant.advance(15);
  EXPECT_GT(plant.rack(0).hottest_die_c, before + 15);
  EXPECT_LT(plant.heat_balance_error(), 1e-3);
}

TEST(plant, a_clogging_filter_lowers_the_flow_at_the_same_speed) {
  cooling_plant plant = settled({}, 0.5);
  const double before = plant.truth().flow_lpm;
  plant.clog_filter(60);
  plant.advance(180);
  EXPECT_LT(plant.truth().flow_lpm, 0.9 * before);
}

TEST(plant, a_slow_leak_lowers_pressure_and_level_long_before_its_detector_is_wet) {
  cooling_plant plant = settled({}, 0.5);
  const plant_truth before = plant.truth();
  plant.open_leak({leak_area_mm2(500, 150, 1014), 3600, 5, true});
  plant.advance(240);
  const plant_truth after = plant.truth();
  EXPECT_LT(after.system_kpa, 0.9 * before.system_kpa);
  EXPECT_LT(after.vessel_level, before.vessel_level - 0.04);
  EXPECT_FALSE(after.leak_detector_wet);
}

TEST(plant, an_obstructed_tray_runs_hotter_than_its_neighbours_do) {
  plant_design design = whole_racks();
  cooling_plant plant(design);
  plant.place(0.8, 0.6, 0.75);
  plant.set_load(0, 1.0);
  plant.advance(300);
  const double before = plant.rack(0).hottest_die_c;
  plant.obstruct_tray(0, 3, 0.4);
  plant.advance(300);
  EXPECT_GT(plant.rack(0).hottest_die_c, before + 5);
}

TEST(plant, the_same_seed_gives_the_same_readings_and_a_drawn_plant_differs) {
  cooling_plant one = settled({}, 0.5);
  cooling_plant two = settled({}, 0.5);
  EXPECT_EQ(one.sample().supply_c, two.sample().supply_c);
  const plant_design drawn = drawn_around({}, 0.2, 7);
  EXPECT_EQ(drawn.rack_kw, drawn_around({}, 0.2, 7).rack_kw);
  EXPECT_NE(drawn.rack_kw, plant_design{}.rack_kw);
  EXPECT_NEAR(drawn.rack_kw, plant_design{}.rack_kw, 0.2 * plant_design{}.rack_kw);
}

}  // namespace
}  // namespace busbar::sim::physics
