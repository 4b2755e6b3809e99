// A trip of the interlock against whatever the rack is doing, through restarts of busbard: what is touched ends with that reason,
// nothing is turned on under it, and once a person has reset it a bring-up goes to production again.
#include <gtest/gtest.h>

#include "tests/sim/trip_scenarios.hpp"

namespace busbar::test_support {
namespace {

using namespace std::chrono_literals;

exploration_report over(std::uint64_t seeds, const rack_story& story) {
  return for_seeds(seeds, [&story](simulation& sim) { return in_a_rack(sim, story); });
}

TEST(trip, takes_a_rack_out_of_production_and_a_person_and_a_bring_up_bring_it_back) {
  const auto report = over(3, tripped_in_production);
  EXPECT_TRUE(report.passed()) << report.describe();
}

TEST(trip, at_any_moment_of_a_bring_up_ends_it_with_its_name) {
  const auto report = over(6, [](rack_world& world) -> std::optional<std::string> {
    const auto when = std::chrono::milliseconds(2000 + world.sim.choose(14'000));
    world.sim.devices().after(when, [&world] { world.trip("r01", interlock::LEAK, "rope"); });
    if (auto what = world.run("rack_bringup", "r01")) return what;
    if (world.ended().state == "SUCCEEDED") return std::nullopt;  // it came too late to touch it
    if (world.ended().fault != "TRIP_OPEN") return "it ended with " + world.ended().fault + "\n" + world.describe();
    const auto ons = world.watch->power_ons();
    if (auto what = world.pass(15s)) return what;
    if (world.watch->power_ons() != ons) return std::string("something was turned on under an open trip");
    return is_down(world);
  });
  EXPECT_TRUE(report.passed()) << report.describe();
}

TEST(trip, is_told_once_and_stays_known_through_restarts_of_the_daemon_in_its_middle) {
  const auto report = over(6, [](rack_world& world) -> std::optional<std::string> {
    if (auto what = bring_up(world)) return what;
    world.trip("r01", interlock::LEAK, "rope");
    world.crash_at_step(world.steps() + 1 + world.sim.choose(60));
    if (auto what = world.pass(15s)) return what;
    if (world.lives() != 2) return std::string("it did not crash");
    return is_down(world);
  });
  EXPECT_TRUE(report.passed()) << report.describe();
}

TEST(trip, by_a_wet_rope_while_firmware_is_pushed_leaves_a_rack_that_comes_up_again) {
  const auto report = over(2, [](rack_world& world) -> std::optional<std::string> {
    world.sim.limits.fault_per_mille = 1000;
    world.sim.add_fault(
        "rope", [&world] { world.fault("leak", "cdu01/r01_rope"); }, 1, [&world] {
          for (const auto& [name, entry] : *world.state()->nodes) {
            for (const auto& row : entry.object->firmware()) {
              if (row.state() == journal::FirmwareProgress::PUSHING) return true;
            }
          }
          return false;
        });
    if (auto what = world.run("rack_bringup", "r01")) return what;
    if (world.ended().fault != "TRIP_OPEN") return "it ended with " + world.ended().fault + "\n" + world.describe();
    if (auto what = world.pass(15s)) return what;
    if (auto what = is_down(world)) return what;
    world.clear_faults();
    if (auto what = world.pass(3s)) return what;
    for (const char* const again : {"reset ForceRestart", "reset On", "update_push", "manager_reset"})
      world.watch->allow(again, 99);
    return up_again(world);
  });
  EXPECT_TRUE(report.passed()) << report.describe();
}

TEST(trip, of_one_tray_leaves_the_others_in_production) {
  const auto report = over(2, [](rack_world& world) -> std::optional<std::string> {
    if (auto what = bring_up(world)) return what;
    world.trip("r01/c02", interlock::EMERGENCY_STOP, "uid 0: smoke");
    if (auto what = world.pass(10s)) return what;
    if (world.fault_of("r01/c02") != "TRIP_OPEN") return "it failed with " + world.fault_of("r01/c02");
    if (world.rack()->state() != "degraded") return "the rack is " + world.rack()->state();
    for (const char* const other : {"r01/c01", "r01/c03", "r01/s01", "r01/p01"}) {
      if (world.node(other)->step() != journal::PRODUCTION) return std::string(other) + " left production";
    }
    if (auto what = world.run("node_retry", "r01/c02")) return what;
    const auto ended = world.ended();
    if (auto what = world.pass(1s)) return what;  // the refusal is written after it is answered
    return ended.state == "REFUSED" ? std::nullopt
                                            : std::optional<std::string>("a retry under its trip was " + ended.state);
  });
  EXPECT_TRUE(report.passed()) << report.describe();
}

}  // namespace
}  // namespace busbar::test_support
