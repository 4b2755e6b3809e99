// The CDU in the words of its register map: what Modbus reads and writes.
#include <cmath>
#include <limits>
#include <utility>

#include "daemon/sim/coolant_unit.hpp"

namespace busbar::sim {

namespace {

constexpr double none = std::numeric_limits<double>::quiet_NaN();
constexpr std::string_view duties[] = {"pump_1", "pump_2", "facility_valve"};  // bits of override_mask

bool is_duty(std::string_view point, std::string_view& of) {
  for (const std::string_view each : duties) {
    if (point == std::string(each) + "_duty") {
      of = each;
      return true;
    }
  }
  return false;
}

}  // namespace

double coolant_unit::register_value(std::string_view point, instant now) const {
  const coolant_side& loop = around().loop();
  const cdu_controller& unit = loop.controller();
  if (std::string_view duty; is_duty(point, duty)) {
    return unit.find(duty)->set;
  }
  if (point.ends_with("_set")) {
    const cdu_point* const found = unit.find(point.substr(0, point.size() - 4));
    return found == nullptr ? none : found->set;
  }
  if (point == "override_timeout") {
    return std::chrono::duration<double>(unit.override_timeout()).count();
  }
  if (point == "override_mask") {
    double mask = 0;
    for (std::size_t bit = 0; bit < std::size(duties); ++bit) {
      const auto until = unit.find(duties[bit])->held_until;
      mask += until && *until > now ? static_cast<double>(1U << bit) : 0.0;
    }
    return mask;
  }
  if (point == "unit_on") {
    return unit.enabled() ? 1.0 : 0.0;
  }
  if (point == "alarms") {
    return alarm_bits(now);
  }
  if (point == "leaks" || point == "leak_detector_faults") {
    return detector_bits(point == "leaks", now);
  }
  return measured_register(point);
}

double coolant_unit::measured_register(std::string_view point) const {
  static constexpr std::pair<std::string_view, std::string_view> values[] = {
      {"supply_temperature", "loop_supply"},
      {"return_temperature", "loop_return"},
      {"flow", "loop_flow"},
      {"differential_pressure", "loop_dp"},
      {"return_pressure", "return_pressure"},
      {"level", "level"},
      {"filter_pressure", "filter_dp"},
      {"facility_supply_temperature", "facility_supply"},
      {"facility_return_temperature", "facility_return"},
      {"facility_flow", "facility_flow"},
      {"facility_valve_position", "facility_valve"},
      {"pump_power", "cdu_watts"},
      {"room_temperature", "room_c"},
      {"room_humidity", "room_humidity"}};
  const auto number = [](const json& shown) { return shown.is_number() ? shown.get<double>() : none; };
  for (const auto& [name, value] : values) {
    if (name == point) {
      return number(plant_value(value));
    }
  }
  if (point.starts_with("pump_") && point.ends_with("_speed")) {
    const auto pump = static_cast<std::size_t>(number_in(point).value_or(1) - 1);
    return pump < cdu_pumps ? number(pump_value("pump_speed", pump)) : none;
  }
  // r01_flow, r01_supply_temperature
  const std::size_t bar = point.find('_');
  if (!point.starts_with("r") || bar == std::string_view::npos) {
    return none;
  }
  const int rack = as_number(point.substr(1, bar - 1)).value_or(0);
  if (rack < 1 || rack > static_cast<int>(around().racks().size())) {
    return none;
  }
  const std::string_view what = point.substr(bar + 1);
  return number(rack_value(what == "flow"                 ? "rack_flow"
                           : what == "supply_temperature" ? "rack_supply"
                           : what == "return_temperature" ? "rack_return"
                                                          : "",
                           point.substr(0, bar)));
}

double coolant_unit::alarm_bits(instant now) const {
  const value_name filter{.name = "filter_health", .arguments = {}};
  const value_name level{.name = "level_health", .arguments = {}};
  const bool raised[] = {pump_value("pump_health", 0) != "OK",
                         pump_value("pump_health", 1) != "OK",
                         value(filter, now) != "OK",
                         value(level, now) != "OK",
                         !(around().loop().shown().flow_lpm > 1.0),
                         !around().loop().controller().enabled()};
  unsigned bits = 0;
  for (std::size_t bit = 0; bit < std::size(raised); ++bit) {
    bits |= raised[bit] ? 1U << bit : 0U;
  }
  return bits;
}

double coolant_unit::detector_bits(bool leaks, instant now) const {
  unsigned bits = 0;
  unsigned bit = 0;
  for (const std::string& each : detectors()) {
    const bool raised = leaks ? detector_word(each, now) == "Critical"
                              : find_fault(fault_kind::detector_fault, each, "r01_rope", now) != nullptr;
    bits |= raised && bit < 16 ? 1U << bit : 0U;
    ++bit;
  }
  return bits;
}

absl::Status coolant_unit::set_register(std::string_view point, double value, instant now) {
  cdu_controller& unit = around().loop().controller();
  if (std::string_view duty; is_duty(point, duty)) {
    return unit.take(duty, value, now);
  }
  if (point.ends_with("_set")) {
    return unit.set(point.substr(0, point.size() - 4), value, now);
  }
  if (point == "override_timeout") {
    return unit.set_override_timeout(
        std::chrono::duration_cast<instant>(std::chrono::duration<double>(value)));
  }
  if (point == "override_mask") {
    const auto mask = static_cast<unsigned>(value);
    for (std::size_t bit = 0; bit < std::size(duties); ++bit) {
      const absl::Status done =
          (mask & (1U << bit)) != 0 ? unit.take(duties[bit], std::nullopt, now) : unit.release(duties[bit]);
      if (!done.ok()) return done;
    }
    return absl::OkStatus();
  }
  if (point == "unit_on") {
    unit.enable(value != 0);
    return absl::OkStatus();
  }
  return absl::NotFoundError(std::string(point) + " is not writable");
}

}  // namespace busbar::sim
