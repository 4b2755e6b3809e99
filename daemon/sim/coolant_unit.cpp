#include "daemon/sim/coolant_unit.hpp"

#include <algorithm>
#include <utility>

namespace busbar::sim {

namespace {
constexpr std::string_view first_detector = "r01_rope";
constexpr std::string_view detector_names[] = {"rope", "pan"};
}  // namespace

coolant_unit::coolant_unit(device_identity identity, environment& around,
                           std::shared_ptr<const resource_tree> tree, const std::string& factory_password,
                           const std::string& reader_password)
    : device(std::move(identity), around, std::move(tree), false, factory_password) {
  control().accounts()["reader"] = {reader_password, "ReadOnly", false, 0, instant{0}};
}

double coolant_unit::working_pumps(instant now) const {
  const fault* const stopped = find_fault(fault_kind::pump, now);
  const double all = static_cast<double>(around().pumps());
  return stopped == nullptr ? all : std::max(0.0, all - stopped->severity);
}

std::vector<std::string> coolant_unit::detectors() const {
  std::vector<std::string> names;
  for (const std::string& rack : around().racks()) {
    for (const std::string_view each : detector_names) {
      names.push_back(rack + "_" + std::string(each));
    }
  }
  return names;
}

std::string coolant_unit::detector_word(std::string_view detector, instant now) const {
  return find_fault(fault_kind::leak, detector, first_detector, now) != nullptr ||
                 find_fault(fault_kind::detector_fault, detector, first_detector, now) != nullptr
             ? "Critical"
             : "OK";
}

json coolant_unit::rack_value(std::string_view name, std::string_view rack, instant now) const {
  const rack_coolant coolant = around().coolant(number_in(rack).value_or(1));
  const std::string point = std::string(name) + std::string(rack);
  if (name == "rack_flow") {
    return noisy(coolant.flow_lpm, 0.2, point, now);
  }
  if (name == "rack_supply") {
    return noisy(coolant.supply_c, 0.03, point, now);
  }
  if (name == "rack_return") {
    return noisy(coolant.return_c, 0.03, point, now);
  }
  if (name == "rack_dp") {
    return noisy(coolant.dp_kpa, 0.1, point, now);
  }
  return name == "rack_heat" ? json(noisy(coolant.removed_kw, 0.05, point, now)) : json(nullptr);
}

json coolant_unit::groups(instant now) const {
  json list = json::array();
  for (const std::string& rack : around().racks()) {
    json detectors = json::array();
    for (const std::string_view each : detector_names) {
      const std::string id = rack + "_" + std::string(each);
      detectors.push_back(
          {{"DataSourceUri", "/redfish/v1/ThermalEquipment/CDUs/1/LeakDetection/LeakDetectors/" + id},
           {"DeviceName", "Rack " + rack + " " + std::string(each)},
           {"DetectorState", detector_word(id, now)}});
    }
    list.push_back({{"GroupName", rack}, {"Detectors", detectors}});
  }
  return list;
}

json coolant_unit::value(const value_name& name, instant now) const {
  const std::string_view first = name.arguments.empty() ? std::string_view() : name.arguments.front();
  if (name.name.starts_with("rack_")) {
    return rack_value(name.name, first, now);
  }
  if (name.name == "detector_state" || name.name == "detector_health") {
    return detector_word(first, now);
  }
  if (name.name == "detector_status") {
    return find_fault(fault_kind::detector_fault, first, first_detector, now) != nullptr ? "Degraded"
                                                                                         : "Enabled";
  }
  if (name.name == "leak_groups") {
    return groups(now);
  }
  if (name.name == "leak_health") {
    return faulty(fault_kind::leak, now) ? "Critical" : "OK";
  }
  if (name.name == "cdu_health") {
    return working_pumps(now) < static_cast<double>(around().pumps()) ? "Warning" : "OK";
  }
  if (name.name == "pump_speed" || name.name == "pump_health") {
    const bool stopped = as_number(first).value_or(1) > working_pumps(now);
    return name.name == "pump_health"
               ? json(stopped ? "Critical" : "OK")
               : json(stopped ? 0.0 : noisy(around().pump_speed_percent(), 0.1, first, now));
  }
  if (name.name == "facility_flow") {
    return noisy(around().facility_flow_lpm(), 0.5, name.name, now);
  }
  if (name.name == "facility_supply") {
    return noisy(around().facility_supply_c(), 0.03, name.name, now);
  }
  if (name.name == "facility_return") {
    return noisy(around().facility_return_c(), 0.03, name.name, now);
  }
  return device::value(name, now);
}

json coolant_unit::truth(instant now) const {
  json result = device::truth(now);
  result["working_pumps"] = working_pumps(now);
  for (const std::string& rack : around().racks()) {
    const rack_coolant coolant = around().coolant(number_in(rack).value_or(1));
    result["racks"][rack] = {{"flow_lpm", coolant.flow_lpm},
                             {"dp_kpa", coolant.dp_kpa},
                             {"supply_c", coolant.supply_c},
                             {"return_c", coolant.return_c},
                             {"removed_kw", coolant.removed_kw}};
    for (const std::string_view each : detector_names) {
      const std::string id = rack + "_" + std::string(each);
      result["detectors"][id] =
          find_fault(fault_kind::leak, id, first_detector, now) != nullptr ? "wet" : "dry";
    }
  }
  return result;
}

}  // namespace busbar::sim
