#include "tests/sim/trip_scenarios.hpp"

#include "actors/node/node_logic.hpp"

namespace busbar::test_support {

using namespace std::chrono_literals;

namespace {

std::uint64_t told(const rack_world& world, const std::string& type) {
  std::uint64_t count = 0;
  for (const auto& event : world.events()) {
    if (event->object() == "r01" && event->type() == type) ++count;
  }
  return count;
}

}  // namespace

std::optional<std::string> is_down(rack_world& world) {
  if (world.rack()->state() != "emergency_off") return "the rack is " + world.rack()->state() + "\n" + world.describe();
  if (world.rack()->failure().fault() != "TRIP_OPEN") return "the rack failed with " + world.rack()->failure().fault();
  for (const auto& [name, entry] : *world.state()->nodes) {
    const journal::Node& node = *entry.object;
    if (!node::is_switched(node) || node.power().on_count() == 0) continue;
    if (node.step() > journal::CREDENTIALED) return name + " is still " + journal::NodeStep_Name(node.step());
    if (node.power().observed() != journal::POWER_OFF)
      return name + " is shown " + journal::PowerState_Name(node.power().observed()) + "\n" + world.describe();
  }
  if (told(world, "trip_opened") != 1 || told(world, "trip_closed") != 1) return std::string("its story is not told once");
  return std::nullopt;
}

std::optional<std::string> up_again(rack_world& world) {
  if (auto what = world.run("rack_bringup", "r01")) return what;
  if (world.ended().state != "REFUSED" || world.ended().fault.find("leak reset r01") == std::string::npos)
    return "under an open trip a bring-up was " + world.ended().state + " " + world.ended().fault;
  if (!world.interlock.reset_trip("r01")) return std::string("the trip could not be reset");
  if (auto what = world.pass(2s)) return what;
  return bring_up(world);
}

std::optional<std::string> tripped_in_production(rack_world& world) {
  if (auto what = bring_up(world)) return what;
  world.trip("r01", interlock::NO_FLOW, "80.0, limit 120.0");
  if (auto what = world.pass(10s)) return what;
  if (auto what = is_down(world)) return what;
  for (const char* const again : {"reset ForceRestart", "reset On"}) world.watch->allow(again, 99);
  return up_again(world);
}

}  // namespace busbar::test_support
