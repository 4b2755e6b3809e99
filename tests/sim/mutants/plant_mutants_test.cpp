// Planted defects of the plant (BUSBAR_MUTANT), one at a time: each is found by a story that holds without
// it.
#include <gtest/gtest.h>

#include <iostream>

#include "actors/core/mutant.hpp"
#include "tests/sim/plant_scenarios.hpp"

namespace busbar::test_support {
namespace {

#ifdef BUSBAR_MUTANTS

struct planted_in_plant {
  const char* mutant;
  const char* what;  // that must never be done
  plant_story story;
  std::uint64_t seeds;
};

const std::vector<planted_in_plant>& rows() {
  static const std::vector<planted_in_plant> all = {
      {"plant_setpoint_assumed_proven", "a set-point is proven because the CDU said OK",
       override_that_is_not_taken, 2},
      {"plant_lease_never_lapses", "an override lasts for ever", override_that_lapses, 2},
      {"plant_bump_at_restart", "a restart moves the set-points at once", restarts_on_the_way, 2},
      {"plant_silent_rack_needs_nothing", "a rack that is not heard gets no water", a_rack_falls_silent, 2},
  };
  return all;
}

class planted_plant_defect : public ::testing::TestWithParam<std::size_t> {};

TEST_P(planted_plant_defect, is_found_by_a_story_that_holds_without_it) {
  const planted_in_plant& one = rows()[GetParam()];
  const auto run = [&one](simulation& sim) { return in_a_plant(sim, one.story); };
  const auto sound = for_seeds(one.seeds, run);
  ASSERT_TRUE(sound.passed()) << "without the defect: " << sound.describe();
  core::switch_mutant(one.mutant);
  const auto report = for_seeds(one.seeds, run);
  core::switch_mutant("");
  ASSERT_TRUE(report.failure.has_value()) << "nothing found " << one.mutant << ": " << one.what;
  std::cout << one.mutant << " (" << one.what << ") found by seed " << report.failure->seed << ": "
            << report.failure->what.substr(0, report.failure->what.find('\n')) << '\n';
}

INSTANTIATE_TEST_SUITE_P(mutants, planted_plant_defect, ::testing::Range<std::size_t>(0, rows().size()),
                         [](const auto& one) { return std::string(rows()[one.param].mutant); });

#endif

}  // namespace
}  // namespace busbar::test_support
