#include "daemon/sim/rack_controller.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include "daemon/sim/redfish_reply.hpp"

namespace busbar::sim {

namespace {

constexpr std::array<rack_valve, 3> all_valves = {rack_valve::supply, rack_valve::return_, rack_valve::flow};
constexpr std::string_view connectors_path = "/redfish/v1/Chassis/Rack_0/ThermalSubsystem/CoolantConnectors/";
constexpr std::string_view flow_control_path = "/redfish/v1/Chassis/Rack_0/Controls/flow";
constexpr std::string_view action = "/Actions/CoolantConnector.ValveControl";

std::optional<std::size_t> index_of(std::string_view name) {
  for (std::size_t index = 0; index < all_valves.size(); ++index) {
    if (name_of(all_valves.at(index)) == name) {
      return index;
    }
  }
  return std::nullopt;
}

double percent(double share) {
  return std::round(share * 1000.0) / 10.0;
}

json reading(double value) {
  return std::isfinite(value) ? json(std::round(value * 1e3) / 1e3) : json(nullptr);
}

}  // namespace

rack_controller::rack_controller(device_identity identity, environment& around,
                                 std::shared_ptr<const resource_tree> tree,
                                 const std::string& factory_password)
    : device(std::move(identity), around, std::move(tree), false, factory_password) {}

json rack_controller::valve_value(std::string_view name, std::string_view valve) const {
  const auto index = index_of(valve);
  if (!index) {
    return nullptr;
  }
  const rack_valve which = all_valves.at(*index);
  const coolant_side& loop = around().loop();
  const double commanded = loop.commanded(rack(), which);
  if (name == "valve_open") {
    return percent(loop.shown_position(rack(), which));
  }
  if (name == "valve_set") {
    return percent(commanded);
  }
  if (name == "valve_health") {
    return commanded <= 0 && reasons_.at(*index) == "LeakDetected" ? "Critical" : "OK";
  }
  return commanded <= 0 ? "Disabled" : "Enabled";
}

json rack_controller::value(const value_name& name, instant now) const {
  if (name.name.starts_with("valve_") && !name.arguments.empty()) {
    return valve_value(name.name, name.arguments[0]);
  }
  const rack_coolant shown = around().shown_coolant(identity().rack);
  const std::pair<std::string_view, double> rows[] = {{"rack_flow", shown.flow_lpm},
                                                      {"rack_supply", shown.supply_c},
                                                      {"rack_return", shown.return_c},
                                                      {"rack_dp", shown.dp_kpa}};
  for (const auto& [key, each] : rows) {
    if (key == name.name) {
      return reading(each);
    }
  }
  return device::value(name, now);
}

device::action_reply rack_controller::post(const std::string& path, const json& body, instant,
                                           request_note& note) {
  if (!path.starts_with(connectors_path) || !path.ends_with(action)) {
    return std::nullopt;
  }
  const std::string name =
      path.substr(connectors_path.size(), path.size() - connectors_path.size() - action.size());
  const auto index = index_of(name);
  if (!index) {
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
  reasons_.at(*index) = reason;
  if (!state.empty()) {
    around().loop().command(rack(), all_valves.at(*index), state == "Open" ? 1.0 : 0.0);
  }
  return empty_reply(204);
}

device::action_reply rack_controller::patch(const std::string& path, const json& body, instant,
                                            request_note& note) {
  if (path != flow_control_path) {
    return std::nullopt;
  }
  const auto wanted = body.find("SetPoint");
  if (wanted == body.end() || body.size() != 1) {
    return error_reply(400, "PropertyNotWritable", "Only SetPoint is writable here.");
  }
  note.act = "valve";
  note.argument = "flow " + wanted->dump();
  if (!wanted->is_number()) {
    return error_reply(400, "PropertyValueTypeError", "SetPoint is a number.");
  }
  const double opening = wanted->get<double>();
  if (!(opening >= 0 && opening <= 100)) {
    return error_reply(400, "PropertyValueOutOfRange", "SetPoint must be from 0 to 100.");
  }
  around().loop().command(rack(), rack_valve::flow, opening / 100.0);
  return empty_reply(204);
}

json rack_controller::valves_truth() const {
  json valves = json::object();
  for (std::size_t index = 0; index < all_valves.size(); ++index) {
    const rack_valve which = all_valves.at(index);
    valves[std::string(name_of(which))] = {
        {"open_percent", 100.0 * around().loop().position(rack(), which)},
        {"commanded_percent", 100.0 * around().loop().commanded(rack(), which)},
        {"says_percent", 100.0 * around().loop().shown_position(rack(), which)},
        {"reason", reasons_.at(index)}};
  }
  return valves;
}

json rack_controller::truth(instant now) const {
  json result = device::truth(now);
  result["valves"] = valves_truth();
  return result;
}

json rack_controller::save() const {
  json saved = device::save();
  for (std::size_t index = 0; index < all_valves.size(); ++index) {
    saved["valves"].push_back({{"commanded", around().loop().commanded(rack(), all_valves.at(index))},
                               {"reason", reasons_.at(index)}});
  }
  return saved;
}

void rack_controller::load(const json& saved) {
  device::load(saved);
  for (std::size_t index = 0; saved.contains("valves") && index < all_valves.size(); ++index) {
    const json& of = saved.at("valves").at(index);
    around().loop().command(rack(), all_valves.at(index), of.at("commanded").get<double>());
    of.at("reason").get_to(reasons_.at(index));
  }
}

}  // namespace busbar::sim
