#include "daemon/interlock/record_rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>

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
};

constexpr limit_field limit_fields[] = {{"poll_min_ms", &limits::poll_min_ms},
                                        {"poll_service_times", &limits::poll_service_times},
                                        {"stale_polls", &limits::stale_polls},
                                        {"request_timeout_ms", &limits::request_timeout_ms}};

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

absl::Status check_device(const ArmedDevice& device, std::string_view rack) {
  const std::string& name = device.name();
  const std::string prefix = std::string(rack) + "/";
  if (name.compare(0, prefix.size(), prefix) != 0 || name.size() == prefix.size() || name.size() > 31) {
    return invalid(fmt::format("device '{}' is not named {}<slot>", name, prefix));
  }
  if (!is_numeric_address(device.address())) {
    return invalid(fmt::format("{}: address '{}' is not a numeric host:port", name, device.address()));
  }
  if (!is_pin(device.pin_sha256()))
    return invalid(fmt::format("{}: the certificate pin is not a SHA-256 in hex", name));
  if (device.account().empty() || device.password().empty())
    return invalid(fmt::format("{}: no account", name));
  if (device.detectors().empty() || device.detectors_size() > detectors_max) {
    return invalid(fmt::format("{}: names {} detectors, 1 to {} are needed", name, device.detectors_size(),
                               detectors_max));
  }
  std::set<std::string> seen;
  for (const std::string& detector : device.detectors()) {
    if (detector.empty() || detector.size() > 63)
      return invalid(fmt::format("{}: detector '{}'", name, detector));
    if (!seen.insert(detector).second) return invalid(fmt::format("{}: detector {} twice", name, detector));
  }
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
    if (wanted.*field.value <= now.*field.value) continue;
    return refused(fmt::format("{} would widen from {} to {}: only at the operator's socket", field.name,
                               now.*field.value, wanted.*field.value));
  }
  for (const ArmedDevice& device : held.devices()) {
    const ArmedDevice* kept = find_device(next, device.name());
    if (kept == nullptr)
      return refused(fmt::format("{} would be removed: only at the operator's socket", device.name()));
    for (const std::string& detector : device.detectors()) {
      if (std::find(kept->detectors().begin(), kept->detectors().end(), detector) != kept->detectors().end())
        continue;
      return refused(fmt::format("detector {} of {} would be removed: only at the operator's socket",
                                 detector, device.name()));
    }
  }
  return absl::OkStatus();
}

}  // namespace busbar::interlock
