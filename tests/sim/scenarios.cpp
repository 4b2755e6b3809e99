#include "tests/sim/scenarios.hpp"

#include "actors/node/node_logic.hpp"

#include <cstdlib>
#include <iostream>
#include <iterator>

namespace busbar::test_support {
namespace {

using namespace std::chrono_literals;
using mishap = site_wire::mishap;

// A bring-up takes about this many steps of the explorer; crashes fall anywhere within.
constexpr std::uint64_t steps_of_a_bring_up = 6'500;
// And about this long; most of it the flow's 10 s.
constexpr std::uint64_t ms_of_a_bring_up = 16'500;

std::chrono::milliseconds some_time(rack_world& world) {
  return std::chrono::milliseconds(world.sim.choose(ms_of_a_bring_up));
}

void strike(rack_world& world, const char* kind, const std::string& target) {
  world.fault(kind, target, some_time(world));
}

template <std::size_t N>
const char* one_of(rack_world& world, const char* const (&words)[N]) {
  return words[world.sim.choose(N)];
}

void spoil(rack_world& world, const std::string& tray, mishap what, const char* part) {
  world.wire->spoil_next_act(world.address_of(tray), what, part);
}

constexpr const char* acts[] = {
    "/Accounts", "/UpdateService", "Manager.Reset", "ComputerSystem.Reset", "/Bios", ""};
constexpr const char* detectors[] = {"0_ColdPlate", "0_Manifold", "1_ColdPlate", "1_Manifold"};

const rack_trouble trouble_rows[] = {
    {"an answer is lost",
     [](rack_world& w, const std::string& t) { spoil(w, t, mishap::answer_lost, one_of(w, acts)); }, true},
    {"a request is lost",
     [](rack_world& w, const std::string& t) { spoil(w, t, mishap::request_lost, one_of(w, acts)); }, true},
    {"a BMC is slow", [](rack_world& w, const std::string& t) { w.fault("slow_bmc", t, some_time(w), 8s); },
     true},
    {"a BMC answers 500 now and then",
     [](rack_world& w, const std::string& t) { w.fault("error_5xx", t, some_time(w), 6s, 0.2); }, true},
    {"bodies end in the middle for a while",
     [](rack_world& w, const std::string& t) { w.fault("half_page", t, some_time(w), 3s); }, true},
    {"a task vanishes", [](rack_world& w, const std::string& t) { w.fault("task_vanishes", t); }, true},
    {"ForceOff is late", [](rack_world& w, const std::string& t) { w.fault("off_ignored", t); }, true},
    {"the present state answers 400", [](rack_world& w, const std::string& t) { w.fault("already_400", t); },
     true},
    {"a password change is demanded",
     [](rack_world& w, const std::string& t) { w.fault("change_required", t); }, true},
    {"the CDU loses its pumps for a while",
     [](rack_world& w, const std::string&) { w.fault("pump", "cdu01", some_time(w), 12s, 2); }, true},
    {"an agent dies",
     [](rack_world& w, const std::string& t) {
       w.sim.devices().after(some_time(w), [&w, t] { w.agents->kill(t); });
     },
     true},
    {"a leak", [](rack_world& w, const std::string& t) { strike(w, "leak", t + "/" + one_of(w, detectors)); },
     true},
    {"a detector contradicts itself",
     [](rack_world& w, const std::string& t) { strike(w, "detector_fault", t + "/" + one_of(w, detectors)); },
     true},
    {"a GPU is slow", [](rack_world& w, const std::string& t) { w.fault("slow_gpu", t + "/gpu1"); }, true},
    {"another serial", [](rack_world& w, const std::string& t) { w.fault("wrong_serial", t); }, true},
    {"no serial", [](rack_world& w, const std::string& t) { w.fault("na_serial", t); }, true},
    {"another slot", [](rack_world& w, const std::string& t) { w.fault("wrong_slot", t); }, true},
    {"another Busbar's account", [](rack_world& w, const std::string& t) { w.fault("foreign_owner", t); },
     true},
    {"the factory password is refused",
     [](rack_world& w, const std::string& t) { w.fault("factory_refused", t); }, true},
    {"a GPU is missing", [](rack_world& w, const std::string& t) { w.fault("missing_gpu", t + "/gpu2"); },
     true},
    {"a NIC runs 8 lanes", [](rack_world& w, const std::string& t) { w.fault("pcie_degraded", t + "/nic3"); },
     true},
    {"firmware stays as it was",
     [](rack_world& w, const std::string& t) { w.fault("firmware_unchanged", t + "/UEFI"); }, true},
    {"firmware is refused",
     [](rack_world& w, const std::string& t) { w.fault("firmware_refused", t + "/NIC_0"); }, true},
    {"BIOS is read-only", [](rack_world& w, const std::string& t) { w.fault("config_read_only", t); }, true},
    {"the agent is silent", [](rack_world& w, const std::string& t) { w.fault("agent_silent", t); }, true},
    {"the agent shows another serial",
     [](rack_world& w, const std::string& t) { w.fault("wrong_agent_serial", t); }, true},
    {"a row is missing",
     [](rack_world& w, const std::string& t) {
       w.agents->drop_one_row(t, w.sim.choose(2) == 0 ? "hbm" : "all_gather");
     },
     true},
    {"a row is no number",
     [](rack_world& w, const std::string& t) {
       w.agents->spoil_one_row(t, w.sim.choose(2) == 0 ? "h2d" : "all_reduce");
     },
     true},
    {"a link is down", [](rack_world& w, const std::string& t) { w.fault("link_down", t + "/gpu1/nvlink3"); },
     false},
    {"the rack's rope is wet", [](rack_world& w, const std::string&) { w.fault("leak", "cdu01/r01_rope"); },
     false},
};

}  // namespace

const std::vector<rack_trouble>& troubles() {
  static const std::vector<rack_trouble> all(std::begin(trouble_rows), std::end(trouble_rows));
  return all;
}

std::optional<std::string> in_a_rack(simulation& sim, const rack_story& story, const world_options& options) {
  rack_world world(sim, options);
  sim.limits.steps = 3'000'000;
  sim.limits.time = std::chrono::minutes(30);
  sim.limits.fault_per_mille = 0;
  auto what = world.run("manifest_apply", "r01");
  if (!what.has_value() && world.ended().state != "SUCCEEDED")
    what = "the manifest was not applied: " + world.ended().fault;
  if (!what.has_value()) what = story(world);
  if (!what.has_value()) what = world.check_at_rest();
  if (std::getenv("BUSBAR_SIM_DESCRIBE") != nullptr) {
    std::cerr << "seed " << sim.seed() << ", "
              << (sim.now() - virtual_scheduler::start_of_time).count() / 1'000'000
              << " ms: " << what.value_or("holds") << "\n"
              << world.describe();
  }
  return what;
}

std::optional<std::string> bring_up(rack_world& world) {
  if (auto what = world.run("rack_bringup", "r01")) return what;
  if (world.ended().state != "SUCCEEDED")
    return "the bring-up ended as " + world.ended().state + " " + world.ended().fault + "\n" +
           world.describe();
  if (world.rack()->state() != "production")
    return "the bring-up succeeded and the rack is " + world.rack()->state();
  for (const auto& [name, entry] : *world.state()->nodes) {
    if (entry.object->step() != journal::PRODUCTION) return name + " is not in production";
  }
  return std::nullopt;
}

std::optional<std::string> shut_down(rack_world& world) {
  if (auto what = world.run("rack_shutdown", "r01")) return what;
  if (world.ended().state != "SUCCEEDED")
    return "the shutdown ended as " + world.ended().state + " " + world.ended().fault + "\n" +
           world.describe();
  for (const auto& [name, entry] : *world.state()->nodes) {
    if (!node::is_switched(*entry.object)) continue;
    if (entry.object->power().observed() != journal::POWER_OFF) return name + " was not read back off";
  }
  return std::nullopt;
}

std::optional<std::string> bring_up_fails(rack_world& world, const std::string& member,
                                          const std::string& fault) {
  if (auto what = world.run("rack_bringup", "r01")) return what;
  if (world.ended().state != "FAILED")
    return "the bring-up ended as " + world.ended().state + "\n" + world.describe();
  const std::string seen = member == "r01" ? world.rack()->failure().fault() : world.fault_of(member);
  if (seen != fault) return member + " failed with '" + seen + "', not " + fault + "\n" + world.describe();
  return std::nullopt;
}

std::optional<std::string> bring_up_through_crashes(rack_world& world) {
  const std::uint64_t crashes = 1 + world.sim.choose(3);
  for (std::uint64_t i = 0; i < crashes; ++i)
    world.crash_at_step(world.steps() + world.sim.choose(steps_of_a_bring_up));
  return bring_up(world);
}

std::optional<std::string> any_day(rack_world& world) {
  const std::uint64_t day = world.sim.seed() % 4;  // 0: plain, 1: crashes, 2: trouble, 3: trouble and crashes
  if (day == 0) {
    if (auto what = bring_up(world)) return what;
  } else if (day == 1) {
    if (auto what = bring_up_through_crashes(world)) return what;
  } else {
    const rack_trouble& first = troubles()[world.sim.choose(troubles().size())];
    const std::string tray = "r01/c0" + std::to_string(1 + world.sim.choose(4));
    world.sim.note(std::string("trouble: ") + first.name + " at " + tray);
    first.strike(world, tray);
    if (day == 3) world.crash_at_step(world.steps() + world.sim.choose(steps_of_a_bring_up));
    if (auto what = world.run("rack_bringup", "r01"))
      return std::string(first.name) + " at " + tray + ": " + *what;
    if (!first.survivable && world.rack()->step() == journal::RACK_PRODUCTION)
      return std::string("production in spite of: ") + first.name;
  }
  if (world.sim.choose(4) != 0) return std::nullopt;
  world.clear_faults();
  if (auto what = world.run("rack_shutdown", "r01")) return "on the way down: " + *what;
  return std::nullopt;
}

}  // namespace busbar::test_support
