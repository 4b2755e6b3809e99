#include "tests/sim/gate_scenarios.hpp"

#include <iterator>

namespace busbar::test_support {
namespace {

using namespace std::chrono_literals;

constexpr auto shut_for = 12s;
constexpr auto full_for = 9s;

std::string detector_of(const std::string& tray) {
  return tray + (tray.find("/s") == std::string::npos ? "/0_ColdPlate" : "/leakage1");
}

void nothing_but_faults(rack_world& world, const std::string&) {
  world.clear_faults();
}

const closing rows[] = {
    {"the interlock dies",
     [](rack_world& w, const std::string&) {
       w.silence_interlock(true);
       w.interlock.die();
     },
     [](rack_world& w, const std::string&) { w.silence_interlock(false); }, true},
    {"the interlock's heartbeat stops", [](rack_world& w, const std::string&) { w.silence_interlock(true); },
     [](rack_world& w, const std::string&) { w.silence_interlock(false); }, true},
    {"flow is lost", [](rack_world& w, const std::string&) { w.fault("pump", "cdu01", {}, {}, 2); },
     nothing_but_faults, true},
    {"flow falls below its minimum",
     [](rack_world& w, const std::string&) { w.fault("pump", "cdu01", {}, {}, 1); }, nothing_but_faults,
     true},
    {"a detector of the tray is wet",
     [](rack_world& w, const std::string& tray) { w.fault("leak", detector_of(tray)); }, nothing_but_faults,
     false},
    {"a detector of the tray is unknown",
     [](rack_world& w, const std::string& tray) { w.fault("detector_fault", detector_of(tray)); },
     nothing_but_faults, true},
    {"another tray is latched",
     [](rack_world& w, const std::string& tray) {
       w.fault("leak", detector_of(tray == "r01/c03" ? "r01/c04" : "r01/c03"));
     },
     nothing_but_faults, false},
    {"the rack's rope is wet", [](rack_world& w, const std::string&) { w.fault("leak", "cdu01/r01_rope"); },
     [](rack_world& w, const std::string&) {  // it trips the rack: a person resets it once it is dry
       w.clear_faults();
       w.sim.devices().after(3s, [&w] { w.interlock.reset_trip("r01"); });
       for (const char* const again : {"reset ForceRestart", "reset On", "update_push", "manager_reset"})
         w.watch->allow(again, 99);
     },
     true},
    {"flow is lost behind a full disk",
     [](rack_world& w, const std::string&) {
       w.fault("pump", "cdu01", {}, {}, 2);
       w.fill_disk(true);
       w.sim.devices().after(full_for, [&w] { w.fill_disk(false); });
     },
     nothing_but_faults, true},
};

// From the moment that the tray is acknowledged to wait for its permit until its power-on leaves.
bool waits_for_power(const rack_world& world, const std::string& tray) {
  if (world.watch->count(tray, "sent \"On\"") != 0) return false;
  const auto node = world.node(tray);
  return node != nullptr && (node->waits_for() == "the rack's permit to power on" ||
                             node->waits_for() == "the BMC to take the power-on");
}

std::optional<std::string> end_is_named(const rack_world& world) {
  if (world.ended().state == "SUCCEEDED") return std::nullopt;
  if (world.ended().state != "FAILED") return "the bring-up ended as " + world.ended().state;
  return world.ended().fault.empty() ? std::optional<std::string>("the bring-up failed and nobody says why")
                                     : std::nullopt;
}

std::optional<std::string> goes_on(rack_world& world) {
  if (auto what = world.pass(30s)) return what;
  for (int round = 0; round < 2; ++round) {
    std::vector<std::string> failed;
    for (const auto& [name, entry] : *world.state()->nodes) {
      if (entry.object->has_failure()) failed.push_back(name);
    }
    for (const std::string& name : failed) {
      if (auto what = world.run("node_retry", name)) return what;
    }
  }
  return bring_up(world);
}

}  // namespace

const std::vector<closing>& closings() {
  static const std::vector<closing> all(std::begin(rows), std::end(rows));
  return all;
}

world_options power_for_three() {
  world_options options;
  options.change_spec = [](journal::RackSpec& spec) {
    spec.mutable_manifest()->mutable_power()->set_rack_limit_kw(23.0);
    (*spec.mutable_baseline()->mutable_deadlines())["powered"].set_seconds(300);  // past the tray's own
  };
  return options;
}

std::optional<std::string> one_tray_over_the_budget(rack_world& world) {
  if (auto what = world.run("rack_bringup", "r01")) return what;
  if (world.ended().state != "FAILED") return "four trays were brought up on power for three";
  std::size_t refused = 0;
  for (const auto& [name, entry] : *world.state()->nodes)
    refused += entry.object->failure().fault() == "POWER_OVER_BUDGET" ? 1 : 0;
  if (refused == 1 && world.rack()->state() == "degraded") return std::nullopt;
  return std::to_string(refused) + " trays were refused for the budget, and the rack is " +
         world.rack()->state() + "\n" + world.describe();
}

std::optional<std::string> shut_before_power_on(rack_world& world, const closing& how, sweep_point& at) {
  const auto strike = [&world, &how, &at] {
    at.struck = true;
    how.shut(world, at.tray);
    world.sim.devices().after(shut_for, [&world, &how, &at] { how.open(world, at.tray); });
  };
  const auto possible = [&world, &at] {
    if (at.struck || !waits_for_power(world, at.tray)) return false;
    return at.window++ >= at.offset;
  };
  world.sim.limits.fault_per_mille = 1000;  // possible() decides
  world.sim.add_fault(how.name, strike, 1, possible);
  if (auto what = world.run("rack_bringup", "r01")) return what;
  if (auto what = end_is_named(world)) return *what + "\n" + world.describe();
  if (!at.struck)
    return world.ended().state == "SUCCEEDED" ? std::nullopt
                                              : std::optional<std::string>("nothing happened, and it failed");
  if (!how.goes_on || world.ended().state == "SUCCEEDED") return std::nullopt;
  return goes_on(world);
}

}  // namespace busbar::test_support
