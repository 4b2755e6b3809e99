// A rack's demand on its plant, and when the plant counts as lost.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actors/plant/demand_logic.hpp"

namespace busbar::plant {
namespace {

using ::testing::HasSubstr;

demand_inputs usual() {
  demand_inputs inputs;
  inputs.rack = "r01";
  inputs.flow_min_lpm = 60;
  inputs.power_w = 120'000;
  inputs.flow_lpm = 110;
  inputs.supply_c = 40;
  inputs.return_c = 55;
  return inputs;
}

TEST(demand, is_litres_a_kilowatt_by_the_inlet_times_measured_power) {
  EXPECT_NEAR(*demand_for(usual()).flow_lpm, 108, 0.1);
  demand_inputs warmer = usual();
  warmer.supply_c = 45;
  EXPECT_NEAR(*demand_for(warmer).flow_lpm, 156, 0.1);
}

TEST(demand, takes_the_heat_that_the_coolant_carries_where_power_is_not_measured) {
  demand_inputs inputs = usual();
  inputs.power_w.reset();
  EXPECT_NEAR(*demand_for(inputs).heat_kw, 0.0669 * 110 * 15, 0.1);
}

TEST(demand, says_no_flow_where_nothing_is_known_and_never_zero) {
  demand_inputs blind = usual();
  blind.power_w.reset();
  blind.return_c.reset();
  EXPECT_EQ(demand_for(blind).flow_lpm, std::nullopt);
  EXPECT_EQ(demand_for(blind).heat_kw, std::nullopt);
  demand_inputs no_inlet = usual();
  no_inlet.supply_c.reset();
  EXPECT_EQ(demand_for(no_inlet).flow_lpm, std::nullopt);
}

TEST(demand, never_falls_under_the_least_flow_of_the_manifest) {
  demand_inputs idle = usual();
  idle.power_w = 0;
  EXPECT_GT(*demand_for(idle).flow_lpm, 60);
}

TEST(demand, is_short_of_flow_only_where_the_valve_is_read_open) {
  demand_inputs inputs = usual();
  inputs.flow_lpm = 50;
  EXPECT_FALSE(demand_for(inputs).short_of_flow);
  inputs.valve_percent = 98;
  EXPECT_TRUE(demand_for(inputs).short_of_flow);
}

TEST(plant_link, is_lost_after_five_silent_seconds_and_back_with_the_first_answer) {
  link_state link;
  core::instant now{1'000'000'000'000, 0};
  EXPECT_EQ(why_lost(link, now), "");  // no plant is declared
  link.declared = true;
  link.since_ns = now.monotonic_ns;
  now.monotonic_ns += 4'000'000'000;
  EXPECT_EQ(why_lost(link, now), "");
  now.monotonic_ns += 2'000'000'000;
  take_answer(link, absl::UnavailableError("connection refused"), now);
  EXPECT_THAT(why_lost(link, now), HasSubstr("connection refused"));
  plant_view view;
  view.plant = "plant1";
  view.cdu = "cdu01";
  view.supply_set_point_c = 32;
  view.cooling_short = true;
  view.short_why = "every pump of cdu01 stands";
  take_answer(link, view, now);
  EXPECT_EQ(why_lost(link, now), "");
  EXPECT_THAT(why_short(link, now), HasSubstr("stands"));
  now.monotonic_ns += 6'000'000'000;
  EXPECT_THAT(why_lost(link, now), HasSubstr("32"));
  EXPECT_EQ(why_short(link, now), "");  // it is not known any more
}

}  // namespace
}  // namespace busbar::plant
