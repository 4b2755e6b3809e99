#include <gtest/gtest.h>

#include <cmath>

#include "daemon/sim/physics/loop.hpp"
#include "daemon/sim/physics/noise.hpp"

namespace busbar::sim::physics {
namespace {

loop one_rack(int trays) {
  loop made(loop::design{});
  made.add_rack();
  for (int each = 0; each < trays; ++each) {
    made.add_branch(0, 0.9, 6.97);
  }
  return made;
}

TEST(physics, heat_balance_closes_within_a_thousandth_while_load_and_pumps_change) {
  loop coolant = one_rack(18);
  for (int step = 0; step < 2000; ++step) {
    for (std::size_t tray = 0; tray < 18; ++tray) {
      coolant.set_power(0, tray, 0.5 + 6.0 * uniform(static_cast<std::uint64_t>(step) * 18 + tray));
    }
    coolant.set_working_pumps(step % 500 < 400 ? 2 : 1);
    coolant.advance(0.73);
  }
  EXPECT_LT(coolant.imbalance(), 1e-3);
  EXPECT_LT(coolant.imbalance(), 1e-9);  // exact by construction, but for rounding
}

TEST(physics, settled_rise_is_power_over_flow_times_the_coolant_constant) {
  loop coolant = one_rack(1);
  coolant.set_power(0, 0, 6.5);
  coolant.advance(300);
  EXPECT_NEAR(coolant.at(0, 0).rise_k(), 6.5 / (0.0669 * coolant.at(0, 0).flow_lpm()), 1e-6);
  EXPECT_NEAR(coolant.rack(0).removed_kw, 6.5, 1e-6);
}

TEST(physics, outlet_follows_with_a_lag_of_ten_seconds) {
  loop coolant = one_rack(1);
  coolant.set_power(0, 0, 6.5);
  coolant.advance(10);
  const double settled = 6.5 / (0.0669 * coolant.at(0, 0).flow_lpm());
  EXPECT_NEAR(coolant.at(0, 0).rise_k() / settled, 1.0 - std::exp(-1.0), 0.01);
}

TEST(physics, one_step_equals_many_small_ones) {
  loop once = one_rack(3);
  loop often = one_rack(3);
  for (std::size_t tray = 0; tray < 3; ++tray) {
    once.set_power(0, tray, 5.0);
    often.set_power(0, tray, 5.0);
  }
  once.advance(100);
  for (int step = 0; step < 1000; ++step) {
    often.advance(0.1);
  }
  EXPECT_NEAR(once.rack(0).return_c, often.rack(0).return_c, 1e-9);
}

TEST(physics, a_stopped_pump_lowers_flow_and_pressure) {
  loop coolant = one_rack(18);
  const double before = coolant.rack(0).flow_lpm;
  coolant.set_working_pumps(1);
  coolant.advance(30);
  EXPECT_NEAR(coolant.dp_kpa(), 15.0, 0.1);
  EXPECT_NEAR(coolant.rack(0).flow_lpm, before / 2, 0.5);
}

TEST(physics, without_flow_heat_stays_in_the_plates) {
  loop coolant = one_rack(1);
  coolant.set_working_pumps(0);
  coolant.advance(60);
  coolant.set_power(0, 0, 1.5);
  coolant.advance(10);
  const double warm = coolant.at(0, 0).rise_k();
  coolant.advance(10);
  EXPECT_GT(coolant.at(0, 0).rise_k(), 1.9 * warm);
  EXPECT_LT(coolant.imbalance(), 1e-9);
}

TEST(physics, a_burning_die_settles_at_inlet_plus_three_hundredths_of_a_kelvin_a_watt) {
  die gpu(32);
  gpu.advance(200, 32, 1400, 1.0);
  EXPECT_NEAR(gpu.temperature_c(), 32 + 0.03 * 1400, 0.01);
}

TEST(physics, noise_is_the_same_for_the_same_seed_and_has_unit_deviation) {
  double sum = 0;
  double squares = 0;
  for (std::uint64_t key = 0; key < 20000; ++key) {
    const double drawn = gaussian(key);
    sum += drawn;
    squares += drawn * drawn;
  }
  EXPECT_NEAR(sum / 20000, 0, 0.03);
  EXPECT_NEAR(squares / 20000, 1, 0.05);
  EXPECT_EQ(gaussian(42), gaussian(42));
  EXPECT_NE(hash_of("a", 1), hash_of("a", 2));
}

}  // namespace
}  // namespace busbar::sim::physics
