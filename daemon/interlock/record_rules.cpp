#include "daemon/interlock/record_rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "actors/devices/redfish/leak_table.hpp"
#include "daemon/interlock/trip_plan.hpp"

namespace busbar::interlock {
namespace {

absl::Status invalid(const std::string& text) {
  return absl::InvalidArgumentError(text);
}
absl::Status refused(const std::string& text) {
  return absl::FailedPreconditionError(text);
}

struct limit_field {
  std::string_view name;
  std::int64_t limits::*value;
  bool smaller_is_wider = false;
};

constexpr limit_field limit_fields[] = {
    {"poll_min_ms", &limits::poll_min_ms},        {"poll_service_times", &limits::poll_service_times},
    {"stale_polls", &limits::stale_polls},        {"request_timeout_ms", &limits::request_timeout_ms},
    {"reset_dry_s", &limits::reset_dry_s, true},  {"cut_after_ms", &limits::cut_after_ms},
    {"repeat_after_ms", &limits::repeat_after_ms}};

bool is_pin(std::string_view text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// A numeric IPv4 or [IPv6] address and a port: the interlock asks no name server.
bool is_numeric_address(std::string_view text) {
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0 || colon + 1 == text.size()) return false;
  const std::string_view host = text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);
  if (port.size() > 5 || port.find_first_not_of("0123456789") != std::string_view::npos) return false;
  if (host.front() == '[') return host.back() == ']';
  return host.find_first_not_of("0123456789.") == std::string_view::npos;
}

bool is_kind(std::string_view kind) {
  return kind.empty() || kind == "compute_tray" || kind == "switch_tray" || kind == "power_shelf" ||
         kind == "rack_controller" || kind == "cdu";
}

bool is_short_name(std::string_view name) {
  return !name.empty() && name.size() <= 31 && name.find_first_of(" \t\n") == std::string_view::npos;
}

absl::Status check_confirm(const ArmedDevice& device) {
  for (const Confirm& row : device.confirm()) {
    const auto& known = device.detectors();
    if (std::find(known.begin(), known.end(), row.detector()) == known.end()) {
      return invalid(
          fmt::format("{}: a confirm time for {}, which it has not", device.name(), row.detector()));
    }
    if (row.confirm_ms() < 0 || row.confirm_ms() > confirm_max_ms) {
      return invalid(fmt::format("{}: confirm_ms {} of {} is outside 0..{}; 0 is at once", device.name(),
                                 row.confirm_ms(), row.detector(), confirm_max_ms));
    }
  }
  return absl::OkStatus();
}

absl::Status check_valves(const ArmedDevice& device) {
  const std::string& name = device.name();
  if (device.valves_size() > valves_max)
    return invalid(fmt::format("{}: more than {} valves", name, valves_max));
  if (device.valves_size() > 0 && device.kind() != "rack_controller")
    return invalid(fmt::format("{}: only a rack_controller has valves", name));
  std::set<std::string> seen;
  for (const Valve& valve : device.valves()) {
    if (!is_short_name(valve.name()) || !seen.insert(valve.name()).second)
      return invalid(fmt::format("{}: valve '{}' is no name, or there twice", name, valve.name()));
    if (valve.stroke_ms() < stroke_min_ms || valve.stroke_ms() > stroke_max_ms) {
      return invalid(fmt::format("{}: stroke_ms {} of valve {} is outside {}..{}", name, valve.stroke_ms(),
                                 valve.name(), stroke_min_ms, stroke_max_ms));
    }
  }
  return absl::OkStatus();
}

absl::Status check_coolant(const CoolantLimits& coolant) {
  const auto sane = [](bool given, double value) { return !given || (std::isfinite(value) && value > 0); };
  if (!sane(coolant.has_flow_min_lpm(), coolant.flow_min_lpm()) ||
      !sane(coolant.has_supply_max_c(), coolant.supply_max_c()) ||
      !sane(coolant.has_pressure_max_kpa(), coolant.pressure_max_kpa())) {
    return invalid("a coolant limit is no number above zero; leave it out to watch nothing");
  }
  if (coolant.has_confirm_ms() &&
      (coolant.confirm_ms() < 0 || coolant.confirm_ms() > coolant_confirm_max_ms)) {
    return invalid(fmt::format("coolant confirm_ms {} is outside 0..{}; 0 is the first reading",
                               coolant.confirm_ms(), coolant_confirm_max_ms));
  }
  return absl::OkStatus();
}

absl::Status check_device(const ArmedDevice& device, std::string_view rack) {
  const std::string& name = device.name();
  const std::string prefix = std::string(rack) + "/";
  if (!is_kind(device.kind())) return invalid(fmt::format("{}: unknown kind '{}'", name, device.kind()));
  const bool of_rack = name.compare(0, prefix.size(), prefix) == 0 && name.size() > prefix.size();
  const bool shared = device.kind() == "cdu" && is_short_name(name) && name != rack;
  if ((!of_rack && !shared) || name.size() > 31) {
    return invalid(fmt::format("device '{}' is not named {}<slot>", name, prefix));
  }
  if (!is_numeric_address(device.address())) {
    return invalid(fmt::format("{}: address '{}' is not a numeric host:port", name, device.address()));
  }
  if (!is_pin(device.pin_sha256()))
    return invalid(fmt::format("{}: the certificate pin is not a SHA-256 in hex", name));
  if (device.account().empty() || device.password().empty())
    return invalid(fmt::format("{}: no account", name));
  if ((is_tray(device) && device.detectors().empty()) || device.detectors_size() > detectors_max) {
    return invalid(fmt::format("{}: names {} detectors, 1 to {} are needed", name, device.detectors_size(),
                               detectors_max));
  }
  if (!device.quirks().empty() && devices::redfish::find_leak_table(device.quirks()) == nullptr)
    return invalid(fmt::format("{}: no truth table is called '{}'", name, device.quirks()));
  if (absl::Status status = check_confirm(device); !status.ok()) return status;
  if (absl::Status status = check_valves(device); !status.ok()) return status;
  std::set<std::string> seen;
  for (const std::string& detector : device.detectors()) {
    if (detector.empty() || detector.size() > 63)
      return invalid(fmt::format("{}: detector '{}'", name, detector));
    if (!seen.insert(detector).second) return invalid(fmt::format("{}: detector {} twice", name, detector));
  }
  return absl::OkStatus();
}

// What a detector without a row counts.
std::int64_t confirm_of(const ArmedDevice& device, const std::string& detector) {
  for (const Confirm& row : device.confirm()) {
    if (row.detector() == detector) return row.confirm_ms();
  }
  return 0;
}

absl::Status check_device_restricts(const ArmedDevice& held, const ArmedDevice& next) {
  for (const std::string& detector : held.detectors()) {
    const auto& kept = next.detectors();
    if (std::find(kept.begin(), kept.end(), detector) == kept.end()) {
      return refused(fmt::format("detector {} of {} would be removed: only at the operator's socket",
                                 detector, held.name()));
    }
    if (confirm_of(next, detector) > confirm_of(held, detector)) {
      return refused(fmt::format("detector {} of {} would be believed later: only at the operator's socket",
                                 detector, held.name()));
    }
  }
  for (const Valve& valve : held.valves()) {
    const bool kept = std::any_of(next.valves().begin(), next.valves().end(),
                                  [&valve](const Valve& each) { return each.name() == valve.name(); });
    if (!kept)
      return refused(fmt::format("valve {} of {} would be removed: only at the operator's socket",
                                 valve.name(), held.name()));
  }
  if (held.kind() != next.kind() || held.quirks() != next.quirks())
    return refused(
        fmt::format("kind or truth table of {} would change: only at the operator's socket", held.name()));
  return absl::OkStatus();
}

absl::Status check_coolant_restricts(const CoolantLimits& held, const CoolantLimits& next) {
  const auto wider = [](const char* what) {
    return refused(fmt::format("{} would widen: only at the operator's socket", what));
  };
  if (held.has_flow_min_lpm() && (!next.has_flow_min_lpm() || next.flow_min_lpm() < held.flow_min_lpm()))
    return wider("flow_min_lpm");
  if (held.has_supply_max_c() && (!next.has_supply_max_c() || next.supply_max_c() > held.supply_max_c()))
    return wider("supply_max_c");
  if (held.has_pressure_max_kpa() &&
      (!next.has_pressure_max_kpa() || next.pressure_max_kpa() > held.pressure_max_kpa()))
    return wider("pressure_max_kpa");
  const auto confirm = [](const CoolantLimits& of) { return of.has_confirm_ms() ? of.confirm_ms() : 1000; };
  if (confirm(next) > confirm(held)) return wider("the coolant's confirm_ms");
  return absl::OkStatus();
}

const ArmedDevice* find_device(const ArmingRecord& record, const std::string& name) {
  for (const ArmedDevice& device : record.devices()) {
    if (device.name() == name) return &device;
  }
  return nullptr;
}

}  // namespace

limits limits_of(const ArmingRecord& record) {
  limits result;
  const Limits& given = record.limits();
  if (given.poll_min_ms() != 0) result.poll_min_ms = given.poll_min_ms();
  if (given.poll_service_times() != 0) result.poll_service_times = given.poll_service_times();
  if (given.stale_polls() != 0) result.stale_polls = given.stale_polls();
  if (given.request_timeout_ms() != 0) result.request_timeout_ms = given.request_timeout_ms();
  if (given.reset_dry_s() != 0) result.reset_dry_s = given.reset_dry_s();
  if (given.cut_after_ms() != 0) result.cut_after_ms = given.cut_after_ms();
  if (given.repeat_after_ms() != 0) result.repeat_after_ms = given.repeat_after_ms();
  return result;
}

absl::Status check_record(const ArmingRecord& record, std::string_view rack) {
  if (record.rack() != rack)
    return invalid(fmt::format("the record is for rack '{}', this is {}", record.rack(), rack));
  if (record.generation() == 0) return invalid("the record has no generation");
  if (record.devices_size() > devices_max) return invalid(fmt::format("more than {} devices", devices_max));
  const limits wanted = limits_of(record);
  for (const limit_field& field : limit_fields) {
    if (wanted.*field.value >= limits_floor.*field.value &&
        wanted.*field.value <= limits_ceiling.*field.value)
      continue;
    return invalid(fmt::format("{} = {} is outside {}..{}", field.name, wanted.*field.value,
                               limits_floor.*field.value, limits_ceiling.*field.value));
  }
  if (absl::Status status = check_coolant(record.coolant()); !status.ok()) return status;
  std::set<std::string> names;
  for (const ArmedDevice& device : record.devices()) {
    if (absl::Status status = check_device(device, rack); !status.ok()) return status;
    if (!names.insert(device.name()).second) return invalid(fmt::format("device {} twice", device.name()));
  }
  for (const std::string& name : record.order()) {
    if (names.count(name) == 0)
      return invalid(fmt::format("the order names {}, which is no device of the record", name));
  }
  return absl::OkStatus();
}

bool same_record(const ArmingRecord& left, const ArmingRecord& right) {
  return left.SerializeAsString() == right.SerializeAsString();  // no maps inside: one message, one string
}

absl::Status check_generation(const ArmingRecord& held, const ArmingRecord& next) {
  if (next.generation() > held.generation() || same_record(held, next)) return absl::OkStatus();
  return refused(fmt::format("generation {} does not follow the {} held: no roll-back", next.generation(),
                             held.generation()));
}

absl::Status check_restricts(const ArmingRecord& held, const ArmingRecord& next) {
  if (absl::Status status = check_generation(held, next); !status.ok()) return status;
  const limits now = limits_of(held);
  const limits wanted = limits_of(next);
  for (const limit_field& field : limit_fields) {
    const bool wider = field.smaller_is_wider ? wanted.*field.value < now.*field.value
                                              : wanted.*field.value > now.*field.value;
    if (!wider) continue;
    return refused(fmt::format("{} would widen from {} to {}: only at the operator's socket", field.name,
                               now.*field.value, wanted.*field.value));
  }
  for (const ArmedDevice& device : held.devices()) {
    const ArmedDevice* kept = find_device(next, device.name());
    if (kept == nullptr)
      return refused(fmt::format("{} would be removed: only at the operator's socket", device.name()));
    if (absl::Status status = check_device_restricts(device, *kept); !status.ok()) return status;
  }
  return check_coolant_restricts(held.coolant(), next.coolant());
}

}  // namespace busbar::interlock
