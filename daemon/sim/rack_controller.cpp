#include "daemon/sim/rack_controller.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "daemon/sim/redfish_reply.hpp"

namespace busbar::sim {

namespace {

constexpr std::array<std::string_view, 2> valve_names = {"supply", "return"};
constexpr std::string_view connectors_path = "/redfish/v1/Chassis/Rack_0/ThermalSubsystem/CoolantConnectors/";
constexpr std::string_view action = "/Actions/CoolantConnector.ValveControl";

std::size_t index_of(std::string_view name) {
  return name == valve_names[0] ? 0 : 1;
}

}  // namespace

rack_controller::rack_controller(device_identity identity, environment& around,
                                 std::shared_ptr<const resource_tree> tree,
                                 const std::string& factory_password)
    : device(std::move(identity), around, std::move(tree), false, factory_password) {}

double rack_controller::open_percent(std::size_t valve, instant now) const {
  const isolation_valve& of = valves_.at(valve);
  const double stroke_s = std::chrono::duration<double>(around().timings().valve_stroke).count();
  const double moved = 100.0 * std::chrono::duration<double>(now - of.since).count() / stroke_s;
  const double whole = of.to_percent - of.from_percent;
  return of.from_percent + std::copysign(std::min(std::abs(whole), moved), whole);
}

json rack_controller::value(const value_name& name, instant now) const {
  if (name.name.starts_with("valve_") && !name.arguments.empty()) {
    const std::size_t index = index_of(name.arguments[0]);
    const isolation_valve& of = valves_.at(index);
    if (name.name == "valve_open") {
      return std::round(open_percent(index, now) * 10.0) / 10.0;
    }
    const bool closed = of.to_percent <= 0;
    if (name.name == "valve_health") {
      return closed && of.reason == "LeakDetected" ? "Critical" : "OK";
    }
    return closed ? "Disabled" : "Enabled";
  }
  return device::value(name, now);
}

device::action_reply rack_controller::post(const std::string& path, const json& body, instant now,
                                           request_note& note) {
  if (!path.starts_with(connectors_path) || !path.ends_with(action)) {
    return std::nullopt;
  }
  const std::string name =
      path.substr(connectors_path.size(), path.size() - connectors_path.size() - action.size());
  if (std::find(valve_names.begin(), valve_names.end(), name) == valve_names.end()) {
    return not_found(path);
  }
  const std::string state = body.value("ValveState", "");
  const std::string reason = body.value("ValveStateReason", "Normal");
  note.act = "valve";
  note.argument = name + " " + (state.empty() ? "unchanged" : state);
  if ((!state.empty() && state != "Open" && state != "Closed") ||
      (reason != "Normal" && reason != "NotInUse" && reason != "LeakDetected")) {
    return error_reply(400, "ActionParameterValueNotInList",
                       "ValveState or ValveStateReason is no such word.");
  }
  isolation_valve& of = valves_.at(index_of(name));
  of.reason = reason;
  const double wanted = state.empty() ? of.to_percent : state == "Open" ? 100.0 : 0.0;
  if (wanted != of.to_percent) {
    of.from_percent = open_percent(index_of(name), now);
    of.to_percent = wanted;
    of.since = now;
  }
  return empty_reply(204);
}

json rack_controller::truth(instant now) const {
  json result = device::truth(now);
  for (std::size_t index = 0; index < valve_names.size(); ++index) {
    result["valves"][std::string(valve_names[index])] = {{"open_percent", open_percent(index, now)},
                                                         {"reason", valves_[index].reason}};
  }
  return result;
}

}  // namespace busbar::sim
