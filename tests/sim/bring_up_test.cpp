#include <gtest/gtest.h>

#include "tests/sim/scenarios.hpp"

namespace busbar::test_support {
namespace {

using namespace std::chrono_literals;

exploration_report over(std::uint64_t seeds, const rack_story& story, const world_options& options = {}) {
  return for_seeds(seeds, [&story, &options](simulation& sim) { return in_a_rack(sim, story, options); });
}

TEST(bring_up, takes_a_dark_rack_to_production_and_down_again) {
  const auto report = over(3, [](rack_world& world) {
    auto what = bring_up(world);
    return what.has_value() ? what : shut_down(world);
  });
  EXPECT_TRUE(report.passed()) << report.describe();
}

TEST(bring_up, is_the_same_for_the_same_seed) {
  const auto digest = [] {
    simulation sim(7);
    EXPECT_EQ(in_a_rack(sim, bring_up_through_crashes), std::nullopt);
    return sim.trace_digest();
  };
  EXPECT_EQ(digest(), digest());
}

TEST(bring_up, does_each_dangerous_act_once_through_crashes) {
  const auto report = over(6, bring_up_through_crashes);
  EXPECT_TRUE(report.passed()) << report.describe();
}

TEST(bring_up, goes_through_crashes_on_rocksdb_too) {
  world_options options;
  options.on_disk = true;
  const auto report = over(3, bring_up_through_crashes, options);
  EXPECT_TRUE(report.passed()) << report.describe();
}

// Every member is at its goal when the fabric is read: none has work, and none has a session after a restart.
TEST(bring_up, reads_the_fabric_after_a_restart_that_found_nothing_to_do) {
  const auto report = over(3, [](rack_world& world) -> std::optional<std::string> {
    world.sim.limits.fault_per_mille = 1000;
    world.sim.add_fault(
        "crash", [&world] { world.crash(); }, 1,
        [&world] {
          if (world.rack()->step() != journal::POWERED) return false;
          for (const auto& [name, entry] : *world.state()->nodes) {
            if (entry.object->step() < journal::CONFIGURED) return false;
          }
          return true;
        });
    if (auto what = bring_up(world)) return what;
    return world.lives() == 2 ? std::nullopt : std::optional<std::string>("it did not crash");
  });
  EXPECT_TRUE(report.passed()) << report.describe();
}

// The failed host is on: its links count on the switch side and nowhere else.
TEST(bring_up, leaves_a_failed_tray_out_and_says_so) {
  const auto report = over(2, [](rack_world& world) -> std::optional<std::string> {
    world.fault("missing_gpu", "r01/c03/gpu1");
    if (auto what = bring_up_fails(world, "r01/c03", "INVENTORY_MISSING")) return what;
    if (world.rack()->state() != "degraded")
      return "three of four trays are left, and the rack is " + world.rack()->state();
    return std::nullopt;
  });
  EXPECT_TRUE(report.passed()) << report.describe();
}

// A verdict whose evidence the disk does not take is tried again after a while, not at once and for ever.
TEST(bring_up, waits_for_room_on_the_disk_with_a_verdict_at_hand) {
  const auto report = over(3, [](rack_world& world) -> std::optional<std::string> {
    std::uint64_t steps_when_full = 0, steps_when_free = 0;
    world.sim.limits.fault_per_mille = 1000;
    const auto fill = [&world, &steps_when_full, &steps_when_free] {
      steps_when_full = world.steps();
      world.fill_disk(true);
      world.sim.devices().after(3s, [&world, &steps_when_free] {
        steps_when_free = world.steps();
        world.fill_disk(false);
      });
    };
    world.sim.add_fault("full disk", fill, 1, [&world] {
      return world.node("r01/c01")->waits_for() == "the judgement of the node suite";
    });
    if (auto what = bring_up(world)) return what;
    if (steps_when_free == 0) return "the disk was never full";
    if (steps_when_free - steps_when_full > 3000)
      return "it was busy with " + std::to_string(steps_when_free - steps_when_full) + " steps";
    return std::nullopt;
  });
  EXPECT_TRUE(report.passed()) << report.describe();
}

TEST(bring_up, waits_for_flow_and_turns_nothing_on_without_it) {
  const auto report = over(2, [](rack_world& world) -> std::optional<std::string> {
    world.fault("pump", "cdu01", {}, {}, 2);
    if (auto what = bring_up_fails(world, "r01", "POWER_FLOW_NOT_PROVEN")) return what;
    if (world.watch->power_ons() != 1) return "more than the shelf was turned on";
    return std::nullopt;
  });
  EXPECT_TRUE(report.passed()) << report.describe();
}

TEST(bring_up, takes_no_rack_with_one_row_missing) {
  const auto report = over(2, [](rack_world& world) {
    world.agents->drop_one_row("r01/c02", "all_gather");
    return bring_up_fails(world, "r01", "SUITE_INCOMPLETE");
  });
  EXPECT_TRUE(report.passed()) << report.describe();
}

}  // namespace
}  // namespace busbar::test_support
