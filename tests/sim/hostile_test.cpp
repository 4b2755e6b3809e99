#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>

#include "tests/sim/hostile_scenarios.hpp"

namespace busbar::test_support {
namespace {

constexpr std::uint64_t seeds_of_an_entry = 25;

class hostile_days : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(hostile_days, end_every_operation_truthfully) {
  const auto report = for_seeds(
      seeds_of_an_entry, [](simulation& sim) { return in_a_rack(sim, hostile_rack); }, GetParam());
  EXPECT_TRUE(report.passed()) << report.describe();
}

INSTANTIATE_TEST_SUITE_P(from, hostile_days, ::testing::Values(1, 26, 51, 76),
                         [](const auto& one) { return "seed_" + std::to_string(one.param); });

// Commits of one bring-up, each a moment at which the daemon dies once: every third, evenly, in three
// entries; with BUSBAR_EVERY_COMMIT=1 every one.
class every_commit : public ::testing::TestWithParam<std::uint64_t> {};

constexpr std::uint64_t entries = 3;
constexpr std::uint64_t sampled = 3;
constexpr std::uint64_t seed_of_the_day = 11;

TEST_P(every_commit, survives_a_crash_right_after_it) {
  std::uint64_t commits = 0;
  {
    simulation sim(seed_of_the_day);
    const auto story = [&commits](rack_world& world) {
      return crash_after_commit(world, UINT64_MAX, commits);
    };
    ASSERT_EQ(in_a_rack(sim, story), std::nullopt);
  }
  ASSERT_GT(commits, 100U);
  std::uint64_t crashes = 0;
  const std::uint64_t stride = std::getenv("BUSBAR_EVERY_COMMIT") != nullptr ? entries : entries * sampled;
  for (std::uint64_t commit = 1 + GetParam() * (stride / entries); commit < commits; commit += stride) {
    simulation sim(seed_of_the_day);
    std::uint64_t in_all = 0;
    std::uint64_t lives = 0;
    const auto story = [commit, &in_all, &lives](rack_world& world) {
      auto what = crash_after_commit(world, commit, in_all);
      lives = world.lives();
      return what;
    };
    const auto what = in_a_rack(sim, story);
    ASSERT_EQ(what, std::nullopt) << "crash after commit " << commit << " of " << commits << ": "
                                  << what.value_or("") << "\n"
                                  << sim.describe();
    ASSERT_EQ(lives, 2U) << "no crash after commit " << commit;
    ++crashes;
  }
  std::cout << crashes << " crashes in a bring-up of " << commits << " commits\n";
}

INSTANTIATE_TEST_SUITE_P(part, every_commit, ::testing::Range<std::uint64_t>(0, entries));

}  // namespace
}  // namespace busbar::test_support
