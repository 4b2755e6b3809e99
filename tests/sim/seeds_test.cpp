// Two hundred seeded days of a rack. BUSBAR_SEED=17 runs that one alone, BUSBAR_TRACE=1 with every message.
#include <gtest/gtest.h>

#include "tests/sim/scenarios.hpp"

namespace busbar::test_support {
namespace {

constexpr std::uint64_t seeds_of_an_entry = 25;

class two_hundred_days : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(two_hundred_days, hold_every_invariant) {
  const auto report = for_seeds(
      seeds_of_an_entry, [](simulation& sim) { return in_a_rack(sim, any_day); }, GetParam());
  EXPECT_TRUE(report.passed()) << report.describe();
}

INSTANTIATE_TEST_SUITE_P(from, two_hundred_days, ::testing::Values(1, 26, 51, 76, 101, 126, 151, 176),
                         [](const auto& one) { return "seed_" + std::to_string(one.param); });

}  // namespace
}  // namespace busbar::test_support
