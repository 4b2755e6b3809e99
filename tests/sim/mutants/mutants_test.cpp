// Planted defects (BUSBAR_MUTANT), one at a time. Each is found by a scenario that holds without it: an
// invariant breaks, or the end is another than it has to be. A defect that no seed finds fails the test, and
// so does a scenario that fails without one.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <limits>
#include <set>
#include <string_view>

#include "actors/core/mutant.hpp"
#include "actors/rack/rack_rules.hpp"
#include "tests/sim/gate_scenarios.hpp"
#include "tests/sim/scenarios.hpp"
#include "tests/sim/trip_scenarios.hpp"

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
  if (auto what = bring_up_fails(world, "r01", "FIRMWARE_DIGEST")) return what;  // too few trays are left
  for (const char* const tray : {"r01/c01", "r01/c02", "r01/c03", "r01/c04"}) {
    if (world.watch->count(tray, "update_push UEFI") != 0) return "an image with another digest was pushed";
  }
  return std::nullopt;
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

// A closing of the gate within the first steps after the tray has begun to wait for its permit.
rack_story shut_at_once(std::size_t closing) {
  return [closing](rack_world& world) {
    sweep_point at{"r01/s01", world.sim.choose(8)};
    return shut_before_power_on(world, closings()[closing], at);
  };
}

std::size_t closing_named(std::string_view name) {
  for (std::size_t i = 0; i < closings().size(); ++i) {
    if (name == closings()[i].name) return i;
  }
  std::abort();
}

// A BMC that never comes back from its restart: the window ends all the same.
std::optional<std::string> a_bmc_stays_away(rack_world& world) {
  const std::string tray = "r01/c01";
  world.sim.limits.fault_per_mille = 1000;  // the condition decides
  world.sim.add_fault(
      "the BMC stays away", [&world, tray] { world.wire->go_dark(world.address_of(tray)); }, 1,
      [&world, tray] { return world.watch->count(tray, "manager_reset") > 0; });
  return bring_up_fails(world, tray, "FIRMWARE_ACTIVATION");
}

// After a restart the pin is all that tells one BMC from another at its address.
std::optional<std::string> another_certificate_after_a_restart(rack_world& world) {
  if (auto what = bring_up(world)) return what;
  world.fault("certificate_changed", "r01/c01");
  world.crash();
  if (auto what = world.run("node_retry", "r01/c01", {{"from", "discovered"}})) return what;
  const std::string seen = world.fault_of("r01/c01");
  return seen == "CERTIFICATE_CHANGED"
             ? std::nullopt
             : std::optional<std::string>("another certificate ended as '" + seen + "'");
}

world_options one_tray_at_a_time() {
  world_options options;
  options.change_spec = [](journal::RackSpec& spec) {
    journal::PowerSpec& power = *spec.mutable_manifest()->mutable_power();
    power.set_inrush_limit_a(power.inrush_per_tray_a());
    power.mutable_group_interval()->set_seconds(5);
    power.mutable_group_interval()->set_nanos(0);
    for (auto& [step, limit] : *spec.mutable_baseline()->mutable_deadlines()) limit.set_seconds(600);
  };
  return options;
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

const std::vector<planted>& of_power() {
  static const std::vector<planted> rows = {
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
      {"trip_import_as_reset", "every line of the interlock but a leak is taken for a reset", tripped_in_production},
      {"trip_open_ignored_by_bringup", "a rack is called something else than tripped, and brought up under the trip",
       tripped_in_production},
      {"accepted_taken_as_done", "2xx is taken as done", bring_up},
      {"off_taken_as_done", "2xx to a shutdown is taken as off", up_and_down},
  };
  return rows;
}

const std::vector<planted>& of_the_rest() {
  static const std::vector<planted> rows = {
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
      {"stale_permit_used", "a host is turned on by a look and a permit of long ago",
       shut_at_once(closing_named("the interlock dies")), 10},
      {"withdrawn_permit_used", "a host is turned on by a permit that was taken back",
       shut_at_once(closing_named("flow is lost behind a full disk")), 10},
      {"promises_not_counted", "power is promised twice", one_tray_over_the_budget, 3, power_for_three()},
      {"inrush_ignored", "more hosts are turned on at once than the inrush limit holds", bring_up, 3,
       one_tray_at_a_time()},
      {"blind_window_without_end", "a blind window has no end", a_bmc_stays_away, 3, patient_with_firmware()},
      {"changed_certificate_accepted", "another certificate is taken for the pinned one",
       another_certificate_after_a_restart},
      {"incomplete_inventory_passes", "an inventory with a part unread passes",
       troubled("half_page", "r01/c02", "r01/c02", "INVENTORY_INCOMPLETE", "Memory")},
      {"shelves_cut_first", "power is cut under hosts that are on", up_and_down},
  };
  return rows;
}

const std::vector<planted>& table() {
  static const std::vector<planted> all = [] {
    std::vector<planted> rows = of_power();
    rows.insert(rows.end(), of_the_rest().begin(), of_the_rest().end());
    return rows;
  }();
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

std::string text_of(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

std::string sources_under(const std::filesystem::path& folder) {
  std::string all;
  for (const auto& file : std::filesystem::recursive_directory_iterator(folder)) {
    const std::string extension = file.path().extension().string();
    if (extension == ".cpp" || extension == ".hpp") all += text_of(file.path());
  }
  return all;
}

// Hooks in the product's sources against the rows here; those of the interlock, which has no actor and no
// rack, are found where its logic is tested; those of the plant in plant_mutants_test.cpp.
TEST(planted_defects, have_a_row_for_every_hook_and_a_hook_for_every_row) {
  const std::filesystem::path root = BUSBAR_SOURCE_DIR;
  constexpr std::string_view hook = "BUSBAR_MUTANT(";
  const std::string elsewhere =
      sources_under(root / "tests/unit") + text_of(root / "tests/sim/mutants/plant_mutants_test.cpp");
  std::set<std::string> rows, hooks;
  for (const planted& one : table()) EXPECT_TRUE(rows.insert(one.mutant).second) << one.mutant << " twice";
  for (const char* const room : {"actors", "daemon", "storage"}) {
    const std::string text = sources_under(root / room);
    for (std::size_t at = text.find(hook); at != std::string::npos; at = text.find(hook, at + 1)) {
      const std::size_t begin = at + hook.size();
      hooks.insert(text.substr(begin, text.find(')', begin) - begin));
    }
  }
  hooks.erase("name");  // the macro's own definition
  EXPECT_GE(hooks.size(), 40U) << "the sources were not read";
  for (const std::string& name : hooks) {
    EXPECT_TRUE(rows.contains(name) || elsewhere.find('"' + name + '"') != std::string::npos)
        << "no row finds the hook " << name;
  }
  for (const std::string& name : rows) EXPECT_TRUE(hooks.contains(name)) << "no hook for the row " << name;
}

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
