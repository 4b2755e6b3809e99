// Seeded days of a plant. BUSBAR_SEED=17 runs that one alone, BUSBAR_TRACE=1 with every message.
#include <gtest/gtest.h>

#include "tests/sim/plant_scenarios.hpp"

namespace busbar::test_support {
namespace {

TEST(plant_days, hold_every_invariant) {
  const auto report = for_seeds(24, [](simulation& sim) { return in_a_plant(sim, any_day_of_a_plant); });
  EXPECT_TRUE(report.passed()) << report.describe();
}

TEST(plant_days, racks_are_told_of_their_cdu_while_the_plant_lives) {
  const auto report = for_seeds(2, [](simulation& sim) {
    return in_a_plant(sim, [](plant_world& world) -> std::optional<std::string> {
      if (auto what = world.pass(std::chrono::seconds(5))) return what;
      if (!world.heard || world.heard->cdu != "cdu01" || !world.heard->supply_set_point_c)
        return "racks are not answered";
      world.unit.how.silent = true;
      if (auto what = world.pass(std::chrono::seconds(15))) return what;
      if (world.heard->health != journal::HEALTH_UNKNOWN) return "a CDU that is not read is shown as known";
      return world.heard->reading_age_ns > 5'000'000'000
                 ? std::nullopt
                 : std::optional<std::string>("old readings without their age");
    });
  });
  EXPECT_TRUE(report.passed()) << report.describe();
}

}  // namespace
}  // namespace busbar::test_support
