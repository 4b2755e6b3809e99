#include <gtest/gtest.h>

#include <cmath>

#include "daemon/sim/physics/control_valve.hpp"
#include "daemon/sim/physics/fluid.hpp"
#include "daemon/sim/physics/heat.hpp"
#include "daemon/sim/physics/hydraulics.hpp"
#include "daemon/sim/physics/load_pattern.hpp"
#include "daemon/sim/physics/pump.hpp"
#include "daemon/sim/physics/sensor.hpp"

namespace busbar::sim::physics {
namespace {

TEST(fluid, agrees_with_the_published_table_of_pg25) {
  const struct {
    double c, cp, density;
  } table[] = {{20, 3.91, 1023.7}, {25, 3.92, 1021.5}, {30, 3.94, 1019.2},
               {35, 3.95, 1016.8}, {40, 3.96, 1014.3}, {45, 3.97, 1011.6}};
  for (const auto& row : table) {
    EXPECT_NEAR(density_kg_per_m3(row.c), row.density, 0.25) << row.c;
    EXPECT_NEAR(heat_capacity_kj_per_kg_k(row.c), row.cp, 0.011) << row.c;
  }
  EXPECT_NEAR(viscosity_mpa_s(20), 2.20, 0.03);
  EXPECT_NEAR(viscosity_mpa_s(45), 1.20, 0.03);
  EXPECT_NEAR(vapour_pressure_kpa(45), 9.6, 0.1);
}

TEST(fluid, one_litre_a_minute_carries_0_0669_kw_a_kelvin) {
  for (const double c : {30.0, 37.0, 45.0}) {
    EXPECT_NEAR(mass_flow_kg_per_s(1, c) * heat_capacity_kj_per_kg_k(c), 0.0669, 0.0003) << c;
  }
}

TEST(fluid, temperature_of_enthalpy_is_the_inverse) {
  for (double c = -5; c < 110; c += 7.3) EXPECT_NEAR(temperature_of_enthalpy(enthalpy_kj_per_kg(c)), c, 1e-9);
}

TEST(control_valve, equal_percentage_gives_equal_ratios_for_equal_steps) {
  const valve_trim trim{characteristic::equal_percentage, 10, 40, 1e-4};
  EXPECT_NEAR(trim.kv(0.7) / trim.kv(0.5), trim.kv(0.9) / trim.kv(0.7), 1e-9);
  EXPECT_NEAR(trim.kv(1.0), 10, 1e-9);
  EXPECT_NEAR(trim.kv(0.0), 10e-4, 1e-12);
}

TEST(control_valve, passes_172_lpm_at_30_kpa_with_a_kv_of_19) {
  const valve_trim trim{characteristic::linear, 19, 40, 1e-4};
  EXPECT_NEAR(trim.drop_kpa(172, 1.0, 1014), 30, 0.5);
}

TEST(actuator, takes_its_stroke_from_end_to_end) {
  actuator motor({15, 0.01, 0.02, fail_action::in_place}, 0.0);
  motor.command(1.0);
  double seconds = 0;
  while (motor.position() < 1.0 && seconds < 60) {
    motor.advance(0.01);
    seconds += 0.01;
  }
  EXPECT_NEAR(seconds, 15.0, 0.5);
}

TEST(actuator, a_reversal_within_the_stiction_moves_nothing_and_beyond_it_jumps) {
  actuator motor({15, 0.01, 0.05, fail_action::in_place}, 0.2);
  motor.command(0.6);
  for (int i = 0; i < 3000; ++i) motor.advance(0.01);
  const double before = motor.position();
  motor.command(0.56);
  for (int i = 0; i < 300; ++i) motor.advance(0.01);
  EXPECT_EQ(motor.position(), before);
  motor.command(0.545);
  for (int i = 0; i < 300; ++i) motor.advance(0.01);
  EXPECT_NEAR(before - motor.position(), 0.045,
              0.002);  // jump of stiction - dead band, then it follows the motor
}

TEST(actuator, a_jammed_valve_stays_whatever_is_commanded) {
  actuator motor({15, 0.01, 0.02, fail_action::in_place}, 0.5);
  motor.jam(true);
  motor.command(0.0);
  for (int i = 0; i < 3000; ++i) motor.advance(0.01);
  EXPECT_EQ(motor.position(), 0.5);
}

TEST(actuator, goes_to_its_fail_position_when_power_is_gone) {
  for (const auto& [action, wanted] :
       {std::pair{fail_action::open, 1.0}, {fail_action::closed, 0.0}, {fail_action::in_place, 0.5}}) {
    actuator motor({15, 0.01, 0.02, action}, 0.5);
    motor.lose_power();
    for (int i = 0; i < 3000; ++i) motor.advance(0.01);
    EXPECT_NEAR(motor.position(), wanted, 1e-9);
  }
}

TEST(pump, follows_the_affinity_laws) {
  const suction inlet{250, 40, 0};
  const pump full({}, 1.0);
  const pump half({}, 0.5);
  EXPECT_NEAR(half.shutoff_kpa(inlet), full.shutoff_kpa(inlet) / 4, 1e-9);
  EXPECT_NEAR(half.flow_lpm(50, inlet), full.flow_lpm(200, inlet) / 2, 1e-9);
  EXPECT_NEAR(half.shaft_kw(100, 50), full.shaft_kw(200, 200) / 8, 1e-9);
}

TEST(pump, draws_what_a_published_cdu_of_1690_lpm_at_205_kpa_draws) {
  pump_design design;
  design.best_lpm = 1690;
  const pump large(design, 1.0);
  EXPECT_NEAR(large.electric_kw(1690, 205), 8.4, 0.1);
}

TEST(pump, slews_at_its_rate_and_coasts_down_after_a_failure) {
  pump each({}, 0.5);
  each.command(0.9);
  each.advance(1.0);
  EXPECT_NEAR(each.speed(), 0.7, 1e-9);
  each.fail();
  for (int i = 0; i < 500; ++i) each.advance(0.01);
  EXPECT_EQ(each.speed(), 0.0);
  EXPECT_EQ(each.flow_lpm(10, {250, 40, 0}), 0.0);
}

TEST(pump, loses_head_to_cavitation_and_to_air) {
  const pump full({}, 1.0);
  const double sound = full.shutoff_kpa({250, 45, 0});
  EXPECT_LT(full.shutoff_kpa({25, 45, 0}), 0.7 * sound);
  EXPECT_EQ(full.shutoff_kpa({10, 45, 0}), 0.0);
  EXPECT_NEAR(full.shutoff_kpa({250, 45, 0.1}), 0.75 * sound, 1e-6);
}

TEST(resistance, flow_is_the_inverse_of_drop_from_any_guess) {
  const resistance pipe{0.004, 0.002};
  for (const double lpm : {0.01, 1.0, 37.0, 400.0}) {
    for (const double guess : {0.0, 0.5 * lpm, lpm, 50 * lpm}) {
      EXPECT_NEAR(pipe.flow_lpm(pipe.drop_kpa(lpm), guess), lpm, 1e-5 * lpm) << lpm << ' ' << guess;
    }
  }
  EXPECT_EQ(pipe.flow_lpm(0, 5), 0.0);
}

TEST(expansion_vessel, pressure_falls_as_coolant_is_lost_and_rises_as_it_warms) {
  expansion_vessel vessel({24, 12, 250, 700});
  vessel.lose(0.5);
  EXPECT_NEAR(vessel.pressure_kpa(), 250.0 * 12 / 12.5, 1e-9);
  EXPECT_NEAR(vessel.level(), 1 - 12.5 / 24, 1e-9);
  vessel.expand_to(1.0);
  EXPECT_GT(vessel.pressure_kpa(), 250.0);
}

TEST(leak, loses_what_its_hole_passes_and_wets_the_detector_after_its_delay) {
  leak hole({leak_area_mm2(60, 200, 1014), 5, 5, true});
  double lost_l = 0;
  double wet_at_s = 0;
  for (int i = 0; i < 600; ++i) {
    lost_l += hole.advance(0.1, 200, 50, 1014);
    if (wet_at_s == 0 && hole.detector_wet()) wet_at_s = 0.1 * i;
  }
  EXPECT_NEAR(lost_l, 0.060, 1e-6);
  EXPECT_NEAR(wet_at_s, 10.0, 0.3);  // 5 ml at 1 ml/s, then 5 s of wicking
}

TEST(exchanger, effectiveness_has_its_known_limits) {
  EXPECT_NEAR(counterflow_effectiveness(1e3, 0.5), 1.0, 1e-9);
  EXPECT_NEAR(counterflow_effectiveness(2.0, 1.0), 2.0 / 3, 1e-6);
  EXPECT_NEAR(counterflow_effectiveness(1.5, 0.0), 1 - std::exp(-1.5), 1e-9);
}

TEST(exchanger, holds_a_four_kelvin_approach_at_rating) {
  const exchanger_design unit{95, 475, 500, 0};
  const double kw = exchanged_kw(unit, 475, 56.6, 570, 36);
  EXPECT_NEAR(56.6 - kw / (475 * 0.0669), 40, 0.7);
}

TEST(cells, carry_a_front_after_mass_over_flow) {
  cell_row hose(8.0, 4, 30);
  double out = 30;
  for (int i = 0; i < 300; ++i)
    out = temperature_of_enthalpy(hose.advance(0.1, 1.0, enthalpy_kj_per_kg(40), 0));
  EXPECT_GT(out, 39.9);
  cell_row same(8.0, 4, 30);
  for (int i = 0; i < 80; ++i) same.advance(0.1, 1.0, enthalpy_kj_per_kg(40), 0);
  EXPECT_NEAR(same.outlet_c(), 35.7, 1.0);  // half way after 8 kg at 1 kg/s
}

TEST(cells, keep_heat_even_when_a_step_passes_more_than_a_cell) {
  cell_row hose(1.0, 2, 30);
  const double before = hose.stored_kj();
  const double left = hose.advance(1.0, 3.0, enthalpy_kj_per_kg(40), 5.0);
  EXPECT_NEAR(hose.stored_kj() - before, 3.0 * (enthalpy_kj_per_kg(40) - left) + 5.0, 1e-9);
}

TEST(die, settles_at_thirty_kelvin_a_kilowatt_and_warms_without_flow) {
  const die_design path;
  die_on_plate die(40);
  for (int i = 0; i < 3000; ++i) die.advance(path, 0.1, 1.2, 40, 1.0);
  EXPECT_NEAR(die.die_c(), 40 + 1.2 * 30, 0.5);
  const double before = die.die_c();
  for (int i = 0; i < 100; ++i) die.advance(path, 0.1, 1.2, 76, 0.0);
  EXPECT_GT(die.die_c(), before + 10);  // more than 1 K/s over 10 s
}

TEST(sensor, lags_by_its_time_constant_and_a_dead_one_is_no_number) {
  sensor each({2.0, 0.0, 0.0}, 0, 1);
  for (int i = 0; i < 20; ++i) each.advance(0.1, 10);
  EXPECT_NEAR(each.sample(), 6.32, 0.01);
  each.fault(sensor_fault::frozen);
  each.advance(5, 20);
  EXPECT_NEAR(each.sample(), 6.32, 0.01);
  each.fault(sensor_fault::dead);
  EXPECT_TRUE(std::isnan(each.sample()));
}

TEST(load, the_day_has_a_mean_of_sixty_percent) {
  for (const std::uint64_t seed : {1u, 7u, 99u}) {
    double sum = 0;
    for (int s = 0; s < 86400; s += 10) sum += load_share(load_pattern::day, s, seed);
    EXPECT_NEAR(sum / 8640, 0.60, 0.01);
  }
}

TEST(load, training_dips_by_30_to_60_percent_and_every_pattern_stays_within_full) {
  double least = 1;
  for (int i = 0; i < 5000; ++i)
    least = std::min(least, load_share(load_pattern::training, 30 + i * 0.02, 4));
  EXPECT_GT(least, 0.3);
  EXPECT_LT(least, 0.7);
  for (const load_pattern each :
       {load_pattern::idle, load_pattern::full, load_pattern::training, load_pattern::inference,
        load_pattern::agentic, load_pattern::idle_full_idle, load_pattern::day}) {
    for (double s = 0; s < 4000; s += 3.7) {
      const double share = load_share(each, s, 5);
      EXPECT_GE(share, 0.0) << name_of(each);
      EXPECT_LE(share, 1.0) << name_of(each);
      EXPECT_EQ(share, load_share(each, s, 5)) << name_of(each);
    }
  }
}

}  // namespace
}  // namespace busbar::sim::physics
