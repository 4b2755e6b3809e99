#include "daemon/interlock/trip_plan.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "daemon/interlock/record_rules.hpp"

namespace busbar::interlock {
namespace {

// Stable within a kind: first those that the order names, as it names them, then the rest of the record.
std::vector<const ArmedDevice*> in_order(const ArmingRecord& record, std::string_view kind) {
  std::vector<const ArmedDevice*> found;
  const auto take = [&found, kind](const ArmedDevice& device) {
    const bool known = std::find(found.begin(), found.end(), &device) != found.end();
    if (device.kind() == kind && !known) found.push_back(&device);
  };
  for (const std::string& name : record.order()) {
    for (const ArmedDevice& device : record.devices()) {
      if (device.name() == name) take(device);
    }
  }
  for (const ArmedDevice& device : record.devices()) take(device);
  return found;
}

bool has_kind(const trip_plan& plan, target_kind kind) {
  return std::any_of(plan.targets.begin(), plan.targets.end(),
                     [kind](const trip_target& each) { return each.kind == kind; });
}

void add_valves(const ArmedDevice& controller, trip_plan& plan) {
  for (const Valve& valve : controller.valves()) {
    plan.targets.push_back({controller.name() + "/" + valve.name(), controller.name(), valve.name(),
                            target_kind::valve, std::int64_t{valve.stroke_ms()} * ms_in_ns});
  }
}

}  // namespace

bool is_tray(const ArmedDevice& device) {
  // A record of before there were other kinds named trays only, not always with their kind.
  return device.kind().empty() || device.kind() == "compute_tray" || device.kind() == "switch_tray";
}

bool is_rack_sensor(const ArmedDevice& device) {
  return device.kind() == "cdu" || device.kind() == "rack_controller";
}

trip_plan plan_of(const ArmingRecord& record) {
  trip_plan plan;
  plan.rack = record.rack();
  const limits set = limits_of(record);
  plan.cut_after_ns = set.cut_after_ms * ms_in_ns;
  plan.repeat_after_ns = set.repeat_after_ms * ms_in_ns;
  for (const std::string_view kind : {"compute_tray", "", "switch_tray"}) {
    for (const ArmedDevice* each : in_order(record, kind))
      plan.targets.push_back({each->name(), each->name(), {}, target_kind::tray, 0});
  }
  for (const ArmedDevice* each : in_order(record, "rack_controller")) add_valves(*each, plan);
  for (const ArmedDevice* each : in_order(record, "power_shelf"))
    plan.targets.push_back({each->name(), each->name(), {}, target_kind::shelf, 0});
  for (const ArmedDevice& device : record.devices()) {
    if (is_rack_sensor(device)) plan.rack_sensors.insert(device.name());
    for (const Confirm& row : device.confirm())
      plan.confirm_ns[device.name()][row.detector()] = std::int64_t{row.confirm_ms()} * ms_in_ns;
  }
  const CoolantLimits& coolant = record.coolant();
  if (coolant.has_flow_min_lpm()) plan.flow_min_lpm = coolant.flow_min_lpm();
  if (coolant.has_supply_max_c()) plan.supply_max_c = coolant.supply_max_c();
  if (coolant.has_pressure_max_kpa()) plan.pressure_max_kpa = coolant.pressure_max_kpa();
  if (coolant.has_confirm_ms()) plan.coolant_confirm_ns = std::int64_t{coolant.confirm_ms()} * ms_in_ns;
  return plan;
}

Status::Trips extent_of(const trip_plan& plan) {
  const bool trays = has_kind(plan, target_kind::tray);
  const bool shelves = has_kind(plan, target_kind::shelf);
  const bool valves = has_kind(plan, target_kind::valve);
  if (!trays && !shelves && !valves) return Status::NONE;
  if (trays && shelves && valves) return Status::FULL;
  return shelves || valves ? Status::PARTIAL : Status::TRAYS;
}

std::string describe(const trip_plan& plan) {
  if (extent_of(plan) == Status::NONE) return "trips: nothing, the record names no device to command";
  std::string can;
  std::string cannot;
  const auto add = [](std::string& list, std::string_view what) {
    list += (list.empty() ? "" : ", ") + std::string(what);
  };
  add(has_kind(plan, target_kind::tray) ? can : cannot, "trays off");
  add(has_kind(plan, target_kind::shelf) ? can : cannot, "shelves cut");
  add(has_kind(plan, target_kind::valve) ? can : cannot, "valves closed");
  add(plan.rack_sensors.empty() ? cannot : can, "leaks of the rack and the CDU");
  add(plan.flow_min_lpm ? can : cannot, "no flow");
  add(plan.supply_max_c ? can : cannot, "over-temperature");
  add(plan.pressure_max_kpa ? can : cannot, "over-pressure");
  return "trips: " + can + (cannot.empty() ? "" : "; not with this record: " + cannot);
}

cause_rule rule_of(Cause cause) {
  // Liquid is taken from a rack only where it is the hazard, or where a person says so.
  const bool liquid = cause == LEAK || cause == EMERGENCY_STOP;
  return {.closes_valves = liquid, .cuts_shelves = true};
}

std::string_view name_of(Cause cause) {
  if (cause == LEAK) return "leak";
  if (cause == NO_FLOW) return "no flow";
  if (cause == OVER_TEMPERATURE) return "over-temperature";
  if (cause == OVER_PRESSURE) return "over-pressure";
  if (cause == EMERGENCY_STOP) return "emergency stop";
  if (cause == REQUESTED) return "requested by busbard";
  return "unknown cause";
}

}  // namespace busbar::interlock
