#include "daemon/sim/coolant_unit.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "daemon/sim/redfish_reply.hpp"

namespace busbar::sim {

namespace {

constexpr std::string_view first_detector = "r01_rope";
constexpr std::string_view detector_names[] = {"rope", "pan"};
constexpr std::string_view unit_path = "/redfish/v1/ThermalEquipment/CDUs/1";
constexpr std::string_view controls_path = "/redfish/v1/Chassis/CDU_1/Controls/";
constexpr std::string_view detectors_path =
    "/redfish/v1/ThermalEquipment/CDUs/1/LeakDetection/LeakDetectors/";
constexpr double atmosphere_kpa = 101.3;
constexpr double full_speed_rpm = 4200.0;
constexpr double speed_tolerance_percent = 2.0;

// A dead sensor gives null.
json reading(double value) {
  return std::isfinite(value) ? json(std::round(value * 1e3) / 1e3) : json(nullptr);
}

double dew_point_c(double air_c, double humidity_percent) {
  const double gamma = std::log(humidity_percent / 100.0) + 17.62 * air_c / (243.12 + air_c);
  return 243.12 * gamma / (17.62 - gamma);
}

}  // namespace

coolant_unit::coolant_unit(device_identity identity, environment& around,
                           std::shared_ptr<const resource_tree> tree, const std::string& factory_password,
                           const std::string& reader_password)
    : device(std::move(identity), around, std::move(tree), false, factory_password),
      announced_pumps_(static_cast<double>(cdu_pumps)) {
  control().accounts()["reader"] = {reader_password, "ReadOnly", false, 0, instant{0}};
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

std::vector<std::string> coolant_unit::sensors() const {
  return coolant_side::sensor_names(static_cast<int>(around().racks().size()));
}

bool coolant_unit::wet(std::string_view detector, instant now) const {
  const fault* const burst = find_fault(fault_kind::burst, detector, first_detector, now);
  return find_fault(fault_kind::leak, detector, first_detector, now) != nullptr ||
         (burst != nullptr && now >= burst->from + wetting_delay);
}

std::string coolant_unit::detector_word(std::string_view detector, instant now) const {
  return wet(detector, now) ||
                 find_fault(fault_kind::detector_fault, detector, first_detector, now) != nullptr
             ? "Critical"
             : "OK";
}

json coolant_unit::rack_value(std::string_view name, std::string_view rack) const {
  const rack_coolant coolant = around().shown_coolant(number_in(rack).value_or(1));
  if (name == "rack_flow") {
    return reading(coolant.flow_lpm);
  }
  if (name == "rack_supply") {
    return reading(coolant.supply_c);
  }
  if (name == "rack_return") {
    return reading(coolant.return_c);
  }
  if (name == "rack_dp") {
    return reading(coolant.dp_kpa);
  }
  return name == "rack_heat" ? reading(coolant.removed_kw) : json(nullptr);
}

json coolant_unit::groups(instant now) const {
  json list = json::array();
  for (const std::string& rack : around().racks()) {
    json detectors = json::array();
    for (const std::string_view each : detector_names) {
      const std::string id = rack + "_" + std::string(each);
      detectors.push_back({{"DataSourceUri", std::string(detectors_path) + id},
                           {"DeviceName", "Rack " + rack + " " + std::string(each)},
                           {"DetectorState", detector_word(id, now)}});
    }
    list.push_back({{"GroupName", rack}, {"Detectors", detectors}});
  }
  return list;
}

json coolant_unit::control_value(std::string_view name, std::string_view control, instant now) const {
  const cdu_point* const point = around().loop().controller().find(control);
  if (point == nullptr) {
    return nullptr;
  }
  if (name == "control_set") {
    return reading(point->set);
  }
  if (name == "control_mode") {
    return point->held_until && *point->held_until > now ? "Override" : "Automatic";
  }
  if (name == "control_default") {
    return point->direct ? json(nullptr) : json(point->usual);
  }
  const std::pair<std::string_view, json> rows[] = {
      {"control_type", point->type},
      {"control_unit", point->unit},
      {"control_least", point->least},
      {"control_most", point->most},
      {"control_how", point->direct ? "Direct" : "Programmable"}};
  for (const auto& [key, each] : rows) {
    if (key == name) {
      return each;
    }
  }
  return nullptr;
}

json coolant_unit::pump_value(std::string_view name, std::size_t pump) const {
  const physics::plant_shown& shown = around().loop().shown();
  const double percent = 100.0 * shown.pump_speed.at(pump);
  if (name == "pump_speed") {
    return reading(percent);
  }
  if (name == "pump_rpm") {
    return std::round(percent / 100.0 * full_speed_rpm);
  }
  if (name == "pump_state") {
    return around().loop().controller().pump_enabled(pump) ? "Enabled" : "Disabled";
  }
  if (name == "pump_health") {
    const bool asked = around().loop().controller().pump_speed(pump) > 0;
    return asked && !around().loop().pump_works(pump) && percent < speed_tolerance_percent ? "Critical"
           : asked && !around().loop().pump_works(pump)                                    ? "Warning"
                                                                                           : "OK";
  }
  return nullptr;
}

json coolant_unit::plant_value(std::string_view name) const {
  const coolant_side& loop = around().loop();
  const physics::plant_shown& shown = loop.shown();
  const physics::plant_truth truth = loop.plant().truth();
  const double return_kpa = shown.system_kpa - atmosphere_kpa;
  const double level = 100.0 * shown.vessel_level;
  const double filter = truth.filter_kpa;
  const std::pair<std::string_view, double> rows[] = {
      {"facility_flow", shown.facility_flow_lpm},
      {"facility_supply", shown.facility_c},
      {"facility_return", truth.facility_return_c},
      {"facility_valve", 100.0 * shown.facility_valve},
      {"loop_flow", shown.flow_lpm},
      {"loop_supply", shown.supply_c},
      {"loop_return", shown.return_c},
      {"loop_dp", shown.dp_kpa},
      {"return_pressure", return_kpa},
      {"supply_pressure", return_kpa + shown.dp_kpa},
      {"level", std::isfinite(level) ? std::clamp(level, 0.0, 100.0) : level},
      {"filter_dp", filter},
      {"cdu_watts", 1000.0 * truth.pump_kw + 120.0},
      {"room_c", loop.room_c()},
      {"room_humidity", loop.room_humidity_percent()},
      {"room_dew_point", dew_point_c(loop.room_c(), loop.room_humidity_percent())}};
  for (const auto& [key, value] : rows) {
    if (key == name) {
      return reading(value);
    }
  }
  if (name == "level_health" || name == "filter_health") {
    const physics::plant_design& made = loop.plant().design();
    const double clean = made.filter.clean_kpa_per_lpm2 * truth.flow_lpm * truth.flow_lpm;
    const bool bad = name == "level_health" ? !(level > 20.0) : clean > 0 && filter > 2.0 * clean;
    const bool poor = name == "level_health" ? !(level > 50.0) : clean > 0 && filter > 1.5 * clean;
    return bad ? "Critical" : poor ? "Warning" : "OK";
  }
  return nullptr;
}

json coolant_unit::value(const value_name& name, instant now) const {
  const std::string_view first = name.arguments.empty() ? std::string_view() : name.arguments.front();
  if (name.name.starts_with("rack_")) {
    return rack_value(name.name, first);
  }
  if (name.name.starts_with("control_")) {
    return control_value(name.name, first, now);
  }
  if (name.name.starts_with("pump_")) {
    const auto pump = static_cast<std::size_t>(as_number(first).value_or(1) - 1);
    return pump < cdu_pumps ? pump_value(name.name, pump) : json(nullptr);
  }
  if (name.name == "override_timeout") {
    return std::chrono::duration_cast<std::chrono::seconds>(around().loop().controller().override_timeout())
        .count();
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
    const auto all = detectors();
    return std::any_of(all.begin(), all.end(),
                       [this, now](const std::string& each) { return wet(each, now); })
               ? "Critical"
               : "OK";
  }
  if (name.name == "cdu_health") {
    return around().loop().working_pumps() < static_cast<double>(cdu_pumps) ? "Warning" : "OK";
  }
  if (name.name == "cdu_state") {
    return around().loop().controller().enabled() ? "Enabled" : "Disabled";
  }
  if (json of_plant = plant_value(name.name); !of_plant.is_null()) {
    return of_plant;
  }
  return device::value(name, now);
}

device::action_reply coolant_unit::post(const std::string& path, const json& body, instant,
                                        request_note& note) {
  const std::string unit_action = std::string(unit_path) + "/Actions/CoolingUnit.SetMode";
  const std::string pumps = std::string(unit_path) + "/Pumps/";
  const bool of_pump = path.starts_with(pumps) && path.ends_with("/Actions/Pump.SetMode");
  if (path != unit_action && !of_pump) {
    return std::nullopt;
  }
  const auto mode = body.find("Mode");
  const std::string wanted = mode != body.end() && mode->is_string() ? mode->get<std::string>() : "";
  note.act = of_pump ? "pump_mode" : "cdu_mode";
  note.argument = wanted;
  if (wanted != "Enabled" && wanted != "Disabled") {
    return error_reply(400, "ActionParameterValueNotInList", "Mode is Enabled or Disabled.");
  }
  cdu_controller& unit = around().loop().controller();
  if (!of_pump) {
    unit.enable(wanted == "Enabled");
    return empty_reply(204);
  }
  const auto pump = number_in(path.substr(pumps.size()));
  if (!pump || *pump < 1 || *pump > static_cast<int>(cdu_pumps)) {
    return not_found(path);
  }
  note.argument = std::to_string(*pump) + " " + wanted;
  unit.enable_pump(static_cast<std::size_t>(*pump - 1), wanted == "Enabled");
  return empty_reply(204);
}

device::action_reply coolant_unit::patch(const std::string& path, const json& body, instant now,
                                         request_note& note) {
  if (!path.starts_with(controls_path) || tree().find(path) == nullptr) {
    return std::nullopt;
  }
  const std::string control = path.substr(controls_path.size());
  note.act = "control";
  note.argument = control;
  for (const char* const each : {"SetPoint", "ControlMode"}) {
    if (body.contains(each)) {
      note.argument +=
          " " + (body.at(each).is_string() ? body.at(each).get<std::string>() : body.at(each).dump());
    }
  }
  return set_control(control, body, now);
}

http_reply coolant_unit::set_control(const std::string& control, const json& body, instant now) {
  cdu_controller& unit = around().loop().controller();
  const auto answer = [](const absl::Status& done) {
    if (done.ok()) {
      return empty_reply(204);
    }
    return error_reply(
        400,
        done.code() == absl::StatusCode::kOutOfRange ? "PropertyValueOutOfRange" : "PropertyValueConflict",
        std::string(done.message()) + ".");
  };
  for (const auto& [key, unused] : body.items()) {
    if (key != "SetPoint" && key != "ControlMode" && key != "Oem") {
      return error_reply(400, "PropertyNotWritable", "The property " + key + " is a read only property.");
    }
  }
  std::optional<double> value;
  if (const auto wanted = body.find("SetPoint"); wanted != body.end()) {
    if (!wanted->is_number()) {
      return error_reply(400, "PropertyValueTypeError", "SetPoint is a number.");
    }
    value = wanted->get<double>();
  }
  if (const auto oem = body.find("Oem"); oem != body.end()) {
    const json seconds =
        oem->is_object()
            ? oem->value("BusbarLaboratories", json::object()).value("OverrideTimeoutSeconds", json())
            : json();
    if (!seconds.is_number()) {
      return error_reply(400, "PropertyValueTypeError", "OverrideTimeoutSeconds is a number.");
    }
    const double wanted = std::clamp(seconds.get<double>(), 0.0, 1e6);
    const absl::Status set =
        unit.set_override_timeout(std::chrono::duration_cast<instant>(std::chrono::duration<double>(wanted)));
    if (!set.ok() || body.size() == 1) {
      return answer(set);
    }
  }
  const json mode = body.value("ControlMode", json(nullptr));
  if (mode == "Override") {
    return answer(unit.take(control, value, now));
  }
  if (mode == "Automatic") {
    const absl::Status released = unit.release(control);
    return answer(value && released.ok() ? unit.set(control, *value, now) : released);
  }
  if (!mode.is_null()) {
    return error_reply(400, "PropertyValueNotInList", "ControlMode is Automatic or Override here.");
  }
  return value ? answer(unit.set(control, *value, now))
               : error_reply(400, "PropertyMissing", "SetPoint or ControlMode is wanted.");
}

void coolant_unit::faults_changed(instant now) {
  device::faults_changed(now);
  const double pumps = around().loop().working_pumps();
  if (pumps != announced_pumps_) {
    const bool lost = pumps < announced_pumps_;
    around().event(*this, lost ? "Environmental.1.1.PumpFailed" : "Environmental.1.1.PumpRestored",
                   lost ? "A pump stands still." : "A pump runs again.", std::string(unit_path) + "/Pumps");
    announced_pumps_ = pumps;
  }
  for (const std::string& each : detectors()) {
    if (!wet(each, now)) {
      announced_wet_.erase(each);
    } else if (announced_wet_.insert(each).second) {
      around().event(*this, "Environmental.1.0.LeakDetectedCritical", "Leak at " + each + ".",
                     std::string(detectors_path) + each);
    }
  }
}

json coolant_unit::truth(instant now) const {
  json result = device::truth(now);
  const coolant_side& loop = around().loop();
  const physics::plant_truth truth = loop.plant().truth();
  result["working_pumps"] = loop.working_pumps();
  for (std::size_t pump = 0; pump < cdu_pumps; ++pump) {
    result["pumps"][std::to_string(pump + 1)] = {
        {"speed_percent", 100.0 * truth.pump_speed.at(pump)},
        {"works", loop.pump_works(pump)},
        {"mode", control_value("control_mode", "pump_" + std::to_string(pump + 1), now)}};
  }
  result["supply_c"] = truth.supply_c;
  result["return_c"] = truth.return_c;
  result["flow_lpm"] = truth.flow_lpm;
  result["dp_kpa"] = truth.dp_kpa;
  result["system_kpa"] = truth.system_kpa - atmosphere_kpa;
  result["level_percent"] = 100.0 * truth.vessel_level;
  result["leak_ml_per_min"] = truth.leak_ml_per_min;
  result["filter_kpa"] = truth.filter_kpa;
  result["pump_kw"] = truth.pump_kw;
  result["facility"] = {{"flow_lpm", truth.facility_flow_lpm},
                        {"return_c", truth.facility_return_c},
                        {"valve_percent", 100.0 * truth.facility_valve}};
  for (const cdu_point& each : loop.controller().points()) {
    result["set_points"][each.name] = each.set;
  }
  for (const std::string& rack : around().racks()) {
    const rack_coolant coolant = around().coolant(number_in(rack).value_or(1));
    result["racks"][rack] = {{"flow_lpm", coolant.flow_lpm},
                             {"dp_kpa", coolant.dp_kpa},
                             {"supply_c", coolant.supply_c},
                             {"return_c", coolant.return_c},
                             {"removed_kw", coolant.removed_kw}};
    for (const std::string_view each : detector_names) {
      const std::string id = rack + "_" + std::string(each);
      result["detectors"][id] = wet(id, now) ? "wet" : "dry";
    }
  }
  return result;
}

json coolant_unit::save() const {
  json saved = device::save();
  saved["controller"] = around().loop().controller().save();
  return saved;
}

void coolant_unit::load(const json& saved) {
  device::load(saved);
  if (saved.contains("controller")) around().loop().controller().load(saved.at("controller"));
}

}  // namespace busbar::sim
