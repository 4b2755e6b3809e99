// The gate shuts between a permit and the power-on it is for, at every step of the explorer between the two.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <iostream>

#include "tests/sim/gate_scenarios.hpp"

namespace busbar::test_support {
namespace {

// So many points of a window are tried, evenly spread; a window of fewer steps is tried whole.
constexpr std::uint64_t points_of_a_window = 12;
constexpr std::uint64_t seeds_of_a_sweep = 2;

std::optional<std::string> at_one_step(std::uint64_t seed, const closing& how, sweep_point& at) {
  simulation sim(seed);
  auto what = in_a_rack(sim, [&how, &at](rack_world& world) { return shut_before_power_on(world, how, at); });
  if (!what.has_value()) return std::nullopt;
  return "seed " + std::to_string(seed) + ", step " + std::to_string(at.offset) + " of the window of " +
         at.tray + ": " + *what + "\n" + sim.describe();
}

class a_gate_that_shuts : public ::testing::TestWithParam<std::size_t> {};

void sweep(const closing& how, const char* tray, std::uint64_t seed, std::uint64_t& struck) {
  sweep_point whole{tray, UINT64_MAX};
  ASSERT_EQ(at_one_step(seed, how, whole), std::nullopt);
  ASSERT_GT(whole.window, 2U) << "no window between permit and power-on was seen";
  const std::uint64_t stride = std::max<std::uint64_t>(1, whole.window / points_of_a_window);
  for (std::uint64_t offset = 0; offset < whole.window; offset += stride) {
    sweep_point at{tray, offset};
    const auto what = at_one_step(seed, how, at);
    ASSERT_EQ(what, std::nullopt) << how.name << ": " << what.value_or("");
    ASSERT_TRUE(at.struck) << how.name << " did not strike at step " << offset;
    ++struck;
  }
}

TEST_P(a_gate_that_shuts, before_the_power_on_lets_nothing_past) {
  const closing& how = closings()[GetParam()];
  std::uint64_t struck = 0;
  for (std::uint64_t seed = 1; seed <= seeds_of_a_sweep; ++seed) {
    for (const char* const tray : {"r01/s01", "r01/c02"}) {
      ASSERT_NO_FATAL_FAILURE(sweep(how, tray, 10 * GetParam() + seed, struck));
    }
  }
  std::cout << how.name << ": " << struck << " points\n";
}

INSTANTIATE_TEST_SUITE_P(by, a_gate_that_shuts, ::testing::Range<std::size_t>(0, closings().size()),
                         [](const auto& one) {
                           std::string name = closings()[one.param].name;
                           std::replace_if(
                               name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; },
                               '_');
                           return name;
                         });

// Two permits given at one moment are two draws.
TEST(power_budget, is_not_promised_twice) {
  const world_options options = power_for_three();
  const auto report =
      for_seeds(5, [&options](simulation& sim) { return in_a_rack(sim, one_tray_over_the_budget, options); });
  EXPECT_TRUE(report.passed()) << report.describe();
}

}  // namespace
}  // namespace busbar::test_support
