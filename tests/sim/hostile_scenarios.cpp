#include "tests/sim/hostile_scenarios.hpp"

#include <iterator>
#include <memory>

namespace busbar::test_support {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

constexpr std::uint64_t ms_of_a_bring_up = 16'500;
// An operation's end is written a commit after its deadline, or once a full disk takes it.
constexpr std::int64_t late_end_ns = 60'000'000'000;

milliseconds between(rack_world& world, std::uint64_t least_ms, std::uint64_t most_ms) {
  return milliseconds(least_ms + world.sim.choose(most_ms - least_ms));
}
milliseconds some_time(rack_world& world) {
  return between(world, 0, ms_of_a_bring_up);
}

void restart_bmc(rack_world& world, const std::string& tray) {
  const milliseconds back = between(world, 500, 8'000);
  world.sim.devices().after(some_time(world), [&world, tray, back] {
    world.sim.note("the BMC of " + tray + " restarts");
    world.wire->go_dark(world.address_of(tray));
    world.sim.devices().after(back, [&world, tray] { world.wire->come_back(world.address_of(tray)); });
  });
}

void full_disk(rack_world& world, const std::string&) {
  const milliseconds free = between(world, 500, 12'000);
  world.sim.devices().after(some_time(world), [&world, free] {
    world.sim.note("the disk is full");
    world.fill_disk(true);
    world.sim.devices().after(free, [&world] { world.fill_disk(false); });
  });
}

void silent_interlock(rack_world& world, const std::string&) {
  const milliseconds back = between(world, 500, 9'000);
  world.sim.devices().after(some_time(world), [&world, back] {
    world.silence_interlock(true);
    world.sim.devices().after(back, [&world] { world.silence_interlock(false); });
  });
}

struct hostility {
  const char* name;
  void (*strike)(rack_world&, const std::string& tray);
};

const hostility rows[] = {
    {"late replies",
     [](rack_world& w, const std::string& t) {
       w.fault("slow_bmc", t, some_time(w), between(w, 1'000, 9'000));
     }},
    {"5xx",
     [](rack_world& w, const std::string& t) {
       w.fault("error_5xx", t, some_time(w), between(w, 1'000, 8'000), 0.3);
     }},
    {"no session is free",
     [](rack_world& w, const std::string& t) {
       w.fault("session_cap", t, some_time(w), between(w, 500, 6'000));
     }},
    {"its BMC restarts", restart_bmc},
    {"a detector is unknown",
     [](rack_world& w, const std::string& t) {
       w.fault("detector_fault", t + "/0_Manifold", some_time(w), between(w, 500, 9'000));
     }},
    {"its agent is silent",
     [](rack_world& w, const std::string& t) { w.fault("agent_silent", t, some_time(w)); }},
    {"its agent dies",
     [](rack_world& w, const std::string& t) {
       w.sim.devices().after(some_time(w), [&w, t] { w.agents->kill(t); });
     }},
    {"the store is read-only", full_disk},
    {"the interlock is silent", silent_interlock},
    {"bodies end in the middle",
     [](rack_world& w, const std::string& t) {
       w.fault("half_page", t, some_time(w), between(w, 500, 4'000));
     }},
    {"numbers are strings",
     [](rack_world& w, const std::string& t) {
       w.fault("string_for_number", t, some_time(w), between(w, 500, 6'000));
     }},
    {"the CDU's numbers are strings",
     [](rack_world& w, const std::string&) {
       w.fault("string_for_number", "cdu01", some_time(w), between(w, 500, 9'000));
     }},
    {"states are words of no schema",
     [](rack_world& w, const std::string& t) {
       w.fault("unknown_enum", t, some_time(w), between(w, 500, 6'000));
     }},
    {"the pumps stand",
     [](rack_world& w, const std::string&) {
       w.fault("pump", "cdu01", some_time(w), between(w, 500, 12'000), 2);
     }},
    {"a row is missing", [](rack_world& w, const std::string& t) { w.agents->drop_one_row(t, "hbm"); }},
    {"an answer is lost",
     [](rack_world& w, const std::string& t) {
       w.wire->spoil_next_act(w.address_of(t), site_wire::mishap::answer_lost);
     }},
};

// Held against what is stored: rows, deadline, and what may be called passed.
std::optional<std::string> operation_is_truthful(const rack_world& world) {
  const auto operation = world.state()->operation(world.ended().id);
  if (operation == nullptr) return "the operation " + world.ended().id + " is not stored";
  if (operation->ended_wall_ns() > operation->deadline_wall_ns() + late_end_ns)
    return operation->id() + " ended after its deadline";
  for (const auto& [name, entry] : *world.state()->nodes) {
    const journal::Node& member = *entry.object;
    const journal::ComponentResult* row = nullptr;
    for (const journal::ComponentResult& each : operation->components()) {
      if (each.target() == name) row = &each;
    }
    if (row == nullptr) return operation->id() + " has no row for " + name;
    if (row->state() == "RUNNING" || row->state() == "PENDING" || row->state().empty())
      return operation->id() + " has ended, and the row of " + name + " is '" + row->state() + "'";
    if (row->state() == "SUCCEEDED" && (member.has_failure() || member.step() != journal::PRODUCTION))
      return operation->id() + " calls " + name + " SUCCEEDED at " + journal::NodeStep_Name(member.step());
    if (row->state() == "FAILED" && row->fault().empty() && row->message().empty())
      return operation->id() + " failed for " + name + " and nobody says why";
  }
  if (operation->state() == "FAILED" && operation->fault().empty())
    return operation->id() + " failed and nobody says why";
  return std::nullopt;
}

}  // namespace

std::optional<std::string> hostile_rack(rack_world& world) {
  const std::uint64_t troubles_at_once = 3 + world.sim.choose(4);
  std::string struck;
  for (std::uint64_t i = 0; i < troubles_at_once; ++i) {
    const hostility& what = rows[world.sim.choose(std::size(rows))];
    const std::string tray = "r01/c0" + std::to_string(1 + world.sim.choose(4));
    world.sim.note(std::string("hostile: ") + what.name + " at " + tray);
    struck += std::string(struck.empty() ? "" : ", ") + what.name + " at " + tray;
    what.strike(world, tray);
  }
  auto what = world.run("rack_bringup", "r01");
  if (!what.has_value() && world.ended().state == "REFUSED") what = "refused: " + world.ended().fault;
  if (!what.has_value()) what = operation_is_truthful(world);
  if (!what.has_value()) what = world.pass(30s);  // what still lasts passes; what ended stays ended
  if (what.has_value()) return struck + ": " + *what + "\n" + world.describe();
  return std::nullopt;
}

std::optional<std::string> crash_after_commit(rack_world& world, std::uint64_t commit,
                                              std::uint64_t& commits) {
  const std::uint64_t before = world.revision();
  world.sim.limits.fault_per_mille = 1000;  // possible() decides
  world.sim.add_fault(
      "crash", [&world] { world.crash(); }, 1,
      [&world, before, commit] { return world.revision() - before >= commit; });
  auto what = bring_up(world);
  commits = world.revision() - before;
  return what;
}

}  // namespace busbar::test_support
