// A thousand drawn racks hold every invariant; each planted defect (BUSBAR_MUTANT) is found by some of them.
#include <gtest/gtest.h>

#include "actors/core/mutant.hpp"
#include "tests/unit/interlock/trip_world.hpp"

namespace busbar::interlock::test {
namespace {

TEST(trip_seeds, a_thousand_racks_hold_every_invariant) {
  int leaks = 0;
  int restarts = 0;
  int faults = 0;
  int operations = 0;
  int stopped = 0;
  int all_at_once = 0;
  for (std::uint64_t seed = 1; seed <= 1'000; ++seed) {
    trip_world world(seed);
    const auto broken = world.run();
    ASSERT_FALSE(broken.has_value()) << *broken;
    leaks += world.leaked() ? 1 : 0;
    restarts += world.restarted() ? 1 : 0;
    faults += world.faulted() ? 1 : 0;
    operations += world.operated() ? 1 : 0;
    stopped += world.operation_stopped() ? 1 : 0;
    all_at_once += world.leaked() && world.restarted() && world.faulted() && world.operated() ? 1 : 0;
  }
  EXPECT_GT(leaks, 600) << "the draw has changed: too few leaks to prove anything";
  EXPECT_GT(restarts, 200);
  EXPECT_GT(faults, 600);
  EXPECT_GT(operations, 600);
  EXPECT_GT(stopped, 200) << "operations that a trip met while they ran";
  EXPECT_GT(all_at_once, 100) << "leak, sensor fault, restart and running operation in one world";
}

#ifdef BUSBAR_MUTANTS
class trip_mutants : public ::testing::TestWithParam<const char*> {
 protected:
  ~trip_mutants() override { core::switch_mutant(""); }
};

TEST_P(trip_mutants, is_found_by_a_seed) {
  core::switch_mutant(GetParam());
  std::optional<std::string> found;
  for (std::uint64_t seed = 1; seed <= 300 && !found; ++seed) found = trip_world(seed).run();
  EXPECT_TRUE(found.has_value()) << "no seed finds " << GetParam();
  if (found) RecordProperty("found_as", *found);
}

INSTANTIATE_TEST_SUITE_P(planted, trip_mutants,
                         ::testing::Values("trip_ignores_confirm_time", "trip_takes_rack_leak_for_a_tray",
                                           "trip_counts_one_leak_at_a_time", "trip_takes_every_tray_for_one",
                                           "trip_takes_unknown_for_a_leak", "trip_clears_its_latch_when_dry",
                                           "trip_takes_unknown_for_dry", "trip_closes_a_fast_valve_first",
                                           "trip_reverses_the_order", "trip_forgets_open_trips_at_restart",
                                           "trip_takes_an_answer_for_the_end", "trip_gives_up_at_a_refusal",
                                           "trip_waits_for_every_tray", "trip_never_repeats",
                                           "trip_keeps_a_bypass_for_ever", "trip_lets_a_host_come_on_again"),
                         [](const auto& row) { return std::string(row.param); });
#endif

}  // namespace
}  // namespace busbar::interlock::test
