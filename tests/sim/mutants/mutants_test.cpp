// Planted defects (BUSBAR_MUTANT), one at a time. Each is found by a scenario that holds without it: an
// invariant breaks, or the end is another than it has to be. A defect that no seed finds fails the test, and
// so does a scenario that fails without one.
#include <gtest/gtest.h>

#include <cmath>
#include <iostream>
#include <limits>

#include "actors/core/mutant.hpp"
#include "actors/rack/rack_rules.hpp"
#include "tests/sim/scenarios.hpp"

namespace busbar::test_support {
namespace {

using namespace std::chrono_literals;
using mishap = site_wire::mishap;

#ifdef BUSBAR_MUTANTS

struct planted {
  const char* mutant;
  const char* what;  // that must never be done
  rack_story story;
  std::uint64_t seeds = 3;  // within which it must be found
  world_options options = {};
};

world_options with_blind_interlock() {
  world_options options;
  options.interlock_sees = false;
  return options;
}

std::optional<std::string> up_and_down(rack_world& world) {
  auto what = bring_up(world);
  return what.has_value() ? what : shut_down(world);
}

// A leak that the tray itself shows once its permit is held, dried up again; then an operator retries.
std::optional<std::string> leak_then_retry(rack_world& world, bool crash_between) {
  world.fault("leak", "r01/c02/0_Manifold");
  if (auto what = bring_up_fails(world, "r01/c02", "POWER_LEAK_LATCHED")) return what;
  world.clear_faults();
  if (crash_between) world.crash();
  if (auto what = world.run("node_retry", "r01/c02")) return what;
  return world.node("r01/c02")->leak_latched()
             ? std::nullopt
             : std::optional<std::string>("the latch is gone and nobody reset it");
}

std::optional<std::string> mended_after_the_run(rack_world& world) {
  world.fault("missing_gpu", "r01/c04/gpu0");
  if (auto what = bring_up_fails(world, "r01/c04", "INVENTORY_MISSING")) return what;
  world.clear_faults();
  return world.run("node_retry", "r01/c04");
}

std::optional<std::string> crash_during_a_retry(rack_world& world) {
  world.fault("missing_gpu", "r01/c04/gpu0");
  if (auto what = bring_up_fails(world, "r01/c04", "INVENTORY_MISSING")) return what;
  world.clear_faults();
  world.crash_at_step(world.steps() + 1 + world.sim.choose(400));
  return world.run("node_retry", "r01/c04");
}

std::optional<std::string> retried_with_a_wrong_password(rack_world& world) {
  world.fault("factory_refused", "r01/c01");
  if (auto what = world.run("rack_bringup", "r01")) return what;
  for (int again = 0; again < 5; ++again) {
    if (auto what = world.run("node_retry", "r01/c01")) return what;
  }
  return std::nullopt;
}

std::optional<std::string> push_with_a_wrong_digest(rack_world& world) {
  if (auto what = bring_up_fails(world, "r01/c01", "FIRMWARE_DIGEST")) return what;
  return world.watch->count("r01/c01", "update_push UEFI") == 0
             ? std::nullopt
             : std::optional<std::string>("an image with another digest was pushed");
}

world_options with_a_wrong_digest() {
  world_options options;
  options.change_spec = [](journal::RackSpec& spec) {
    for (auto& row : *(*spec.mutable_baseline()->mutable_firmware())["compute_tray"].mutable_rows()) {
      if (row.component() == "UEFI") row.set_sha256(std::string(64, '0'));
    }
  };
  return options;
}

world_options with_a_stranger_at_c01() {
  world_options options;
  options.change_leases = [](std::string leases) {
    const std::string mac = "02:18:01:00:00:01";
    for (std::size_t at = leases.find(mac); at != std::string::npos; at = leases.find(mac, at + 1))
      leases.replace(at, mac.size(), "02:18:09:00:00:77");
    return leases;
  };
  return options;
}

std::optional<std::string> stranger_is_left_alone(rack_world& world) {
  if (auto what = world.run("rack_bringup", "r01")) return what;
  if (world.node("r01/c01")->step() >= journal::DISCOVERED)
    return "a BMC with a MAC of no row was taken for r01/c01";
  return std::nullopt;
}

rack_story troubled(const char* kind, const char* target, const char* member, const char* fault,
                    const char* value = "") {
  return [kind, target, member, fault, value](rack_world& world) {
    world.fault(kind, target, {}, {}, {}, value);
    return bring_up_fails(world, member, fault);
  };
}

rack_story spoilt(mishap what, const char* part) {
  return [what, part](rack_world& world) {
    for (const char* const tray : {"r01/c01", "r01/c02", "r01/c03", "r01/c04"})
      world.wire->spoil_next_act(world.address_of(tray), what, part);
    return bring_up(world);
  };
}

// An upload is given ten minutes before its answer counts as lost.
world_options patient_with_firmware() {
  world_options options;
  options.change_spec = [](journal::RackSpec& spec) {
    (*spec.mutable_baseline()->mutable_deadlines())["firmware"].set_seconds(1000);
  };
  return options;
}

std::optional<std::string> an_answer_to_a_push_is_lost(rack_world& world) {
  world.wire->spoil_next_act(world.address_of("r01/c01"), mishap::answer_lost, "/UpdateService");
  return bring_up(world);
}

std::optional<std::string> a_bios_write_that_is_only_pretended(rack_world& world) {
  for (int write = 0; write < 3; ++write)
    world.wire->spoil_next_act(world.address_of("r01/c01"), mishap::pretended, "/Bios");
  world.watch->allow("reset ForceRestart",
                     2);  // for the firmware, and once more for the setting that did not take
  return bring_up_fails(world, "r01/c01", "CONFIG_DRIFT");
}

std::optional<std::string> a_row_is_missing(rack_world& world, const char* test, const char* of) {
  world.agents->drop_one_row("r01/c03", test);
  return bring_up_fails(world, of, "SUITE_INCOMPLETE");
}

std::optional<std::string> no_flow_and_no_reading(rack_world& world) {
  world.fault("pump", "cdu01", {}, {}, 2);
  world.fault("string_for_number", "cdu01");
  return bring_up_fails(world, "r01", "POWER_FLOW_NOT_PROVEN");
}

std::optional<std::string> interlock_lost(rack_world& world) {
  world.interlock.lose("r01/c02", "its connection is gone");
  return bring_up_fails(world, "r01/c02", "POWER_INTERLOCK_NOT_ARMED");
}

// The rule itself: no wire of the simulator carries a value that is not a number.
std::optional<std::string> not_a_number(rack_world& world) {
  journal::CoolingSpec limits = world.rack()->spec().manifest().cooling();
  devices::cooling_facts facts;
  facts.flow_lpm = std::numeric_limits<double>::quiet_NaN();
  facts.dp_kpa = 60;
  rack::cooling_state state;
  for (std::int64_t second = 1; second <= 20; ++second)
    rack::take_cooling(state, limits, facts, {second * 1'000'000'000, 0});
  if (rack::flow_not_proven(state, limits, {20'000'000'000, 0}).has_value()) return std::nullopt;
  return "a flow that is not a number is called proven";
}

const std::vector<planted>& table() {
  static const std::vector<planted> all = {
      {"unknown_read_as_dry", "an unknown detector is taken for dry",
       troubled("detector_fault", "r01/c02/0_ColdPlate", "r01/c02", "POWER_DETECTOR_UNKNOWN"), 3,
       with_blind_interlock()},
      {"detectors_not_read", "a host is turned on without a look at its detectors", bring_up},
      {"rack_detector_unknown_read_as_dry", "an unknown rope is taken for dry",
       troubled("unknown_enum", "cdu01", "r01", "DEADLINE", "LeakDetectors")},
      {"flow_not_asked", "a host is turned on without flow",
       troubled("pump", "cdu01", "r01", "POWER_FLOW_NOT_PROVEN", "")},
      {"flow_soak_skipped", "a first drop of flow is taken for flow", bring_up},
      {"unknown_flow_is_enough", "no reading is taken for flow", no_flow_and_no_reading},
      {"nan_passes", "NaN passes a limit", not_a_number},
      {"gate_ignored", "a host is turned on past the interlock", interlock_lost, 3, with_blind_interlock()},
      {"latch_ignored", "a host is turned on with a leak latched",
       [](rack_world& world) { return leak_then_retry(world, false); }, 3, with_blind_interlock()},
      {"latch_cleared_by_restart", "a restart forgets a leak",
       [](rack_world& world) { return leak_then_retry(world, true); }, 3, with_blind_interlock()},
      {"accepted_taken_as_done", "2xx is taken as done", bring_up},
      {"off_taken_as_done", "2xx to a shutdown is taken as off", up_and_down},
      {"update_taken_as_done", "an update that said done is believed",
       troubled("firmware_unchanged", "r01/c01/UEFI", "r01/c01", "FIRMWARE_UNCHANGED")},
      {"wrong_digest_pushed", "an image with another digest is pushed", push_with_a_wrong_digest, 3,
       with_a_wrong_digest()},
      {"push_repeated", "firmware is pushed again after a lost answer", an_answer_to_a_push_is_lost, 6,
       patient_with_firmware()},
      {"password_change_repeated", "a password is changed again after a lost answer",
       spoilt(mishap::answer_lost, "/Accounts/"), 6},
      {"answered_before_sync", "a commit is answered before it is on disk", bring_up, 25},
      {"acted_before_durable", "an act comes before its intent is on disk", bring_up, 10},
      {"intent_dropped_at_restart", "a restart forgets what was begun", bring_up_through_crashes, 25},
      {"operation_forgotten_at_restart", "a restart forgets an operation", crash_during_a_retry, 10},
      {"operation_end_forgotten", "an operation never ends", bring_up},
      {"second_owner_admitted", "a BMC of another Busbar is taken over",
       troubled("foreign_owner", "r01/c02", "r01/c02", "OWNED_ELSEWHERE")},
      {"wrong_serial_accepted", "another tray is taken for the declared one",
       troubled("wrong_serial", "r01/c02", "r01/c02", "IDENTITY_SERIAL_MISMATCH")},
      {"unmatched_bmc_admitted", "a BMC of no row is logged in to", stranger_is_left_alone, 3,
       with_a_stranger_at_c01()},
      {"login_storm", "a wrong password is tried until the BMC locks", retried_with_a_wrong_password},
      {"missing_part_passes", "a missing GPU passes inspection",
       troubled("missing_gpu", "r01/c02/gpu1", "r01/c02", "INVENTORY_MISSING")},
      {"drift_ignored", "a setting that did not take passes", a_bios_write_that_is_only_pretended},
      {"fabric_assumed", "the fabric is not read",
       troubled("link_down", "r01/c02/gpu1/nvlink3", "r01", "NVLINK_LINK_COUNT")},
      {"rack_suite_always_passes", "a gate that did not pass lets the rack through",
       [](rack_world& world) { return a_row_is_missing(world, "all_gather", "r01"); }},
      {"seventeen_rows_of_eighteen", "17 rows of 18 are a PASS",
       [](rack_world& world) { return a_row_is_missing(world, "all_reduce", "r01"); }},
      {"incomplete_node_suite_passes", "a node passes with a row missing",
       [](rack_world& world) { return a_row_is_missing(world, "hbm", "r01/c03"); }},
      {"member_outside_the_run_admitted", "a tray that was not judged joins production",
       mended_after_the_run},
      {"shelves_cut_first", "power is cut under hosts that are on", up_and_down},
  };
  return all;
}

class planted_defect : public ::testing::TestWithParam<std::size_t> {
 protected:
  void TearDown() override { core::switch_mutant(""); }
};

TEST_P(planted_defect, is_found_by_a_scenario_that_holds_without_it) {
  const planted& one = table()[GetParam()];
  const auto run = [&one](simulation& sim) { return in_a_rack(sim, one.story, one.options); };
  const auto sound = for_seeds(1, run);
  ASSERT_TRUE(sound.passed()) << "without the defect: " << sound.describe();
  core::switch_mutant(one.mutant);
  const auto report = for_seeds(one.seeds, run);
  core::switch_mutant("");
  ASSERT_TRUE(report.failure.has_value())
      << "nothing found " << one.mutant << ": " << one.what << ", in " << one.seeds << " seeds";
  std::cout << one.mutant << " (" << one.what << ") found by seed " << report.failure->seed << ": "
            << report.failure->what.substr(0, report.failure->what.find('\n')) << '\n';
}

INSTANTIATE_TEST_SUITE_P(mutants, planted_defect, ::testing::Range<std::size_t>(0, table().size()),
                         [](const auto& one) { return std::string(table()[one.param].mutant); });

TEST(planted_defects, are_at_least_twenty) {
  EXPECT_GE(table().size(), 20U);
}

#else

TEST(planted_defects, are_not_in_this_build) {
  EXPECT_FALSE(core::mutant_is_on("unknown_read_as_dry"));
}

#endif

}  // namespace
}  // namespace busbar::test_support
