#include "actors/rack/interlock_port.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace busbar::rack {
namespace {

using interlock::DetectorReading;
using interlock::DeviceStatus;

gate_verdict closed(std::string_view fault, std::string reason) {
  return {.allowed = false, .fault = std::string(fault), .reason = std::move(reason)};
}

constexpr std::string_view not_armed = "POWER_INTERLOCK_NOT_ARMED";
constexpr std::string_view leak_latched = "POWER_LEAK_LATCHED";
constexpr std::string_view trip_open = "TRIP_OPEN";
constexpr std::string_view detector_unknown = "POWER_DETECTOR_UNKNOWN";

gate_verdict judge_life(const interlock_view& view) {
  if (view.life == interlock_life::alive && view.status != nullptr && view.age < interlock_dead_after) {
    return {.allowed = true, .fault = {}, .reason = {}};
  }
  if (view.status == nullptr) return closed(not_armed, "the interlock was never heard");
  return closed(not_armed, fmt::format("the interlock was last heard {} ms ago", view.age.count()));
}

gate_verdict judge_detectors(const DeviceStatus& device) {
  if (device.detectors().empty())
    return closed(detector_unknown, "the interlock knows no detector of this tray");
  for (const DetectorReading& reading : device.detectors()) {
    if (reading.verdict() == DetectorReading::DRY) continue;
    const bool leak = reading.verdict() == DetectorReading::LEAK;
    return closed(
        leak ? leak_latched : detector_unknown,
        fmt::format("detector {} is {}: {}", reading.name(), leak ? "wet" : "unknown", reading.detail()));
  }
  return {.allowed = true, .fault = {}, .reason = {}};
}

std::string_view latch_words(interlock::Cause cause) {
  if (cause == interlock::EMERGENCY_STOP) return "an emergency stop";
  if (cause == interlock::REQUESTED) return "a trip that busbard asked for";
  if (cause == interlock::NO_FLOW) return "a trip (no coolant flow)";
  if (cause == interlock::OVER_TEMPERATURE) return "a trip (coolant too warm)";
  if (cause == interlock::OVER_PRESSURE) return "a trip (coolant pressure too high)";
  if (cause == interlock::LEAK) return "a leak";
  return "a trip of a cause this version does not know";
}

bool is_leak(const interlock::Latch& latch) {
  return latch.kind() == interlock::Latch::LEAK_SEEN || latch.cause() == interlock::LEAK;
}

// A latch without a leak must not be taken for one: that of a leak stays with its tray until it is reset
// there.
std::string_view fault_of(const interlock::Status& status) {
  if (std::any_of(status.latches().begin(), status.latches().end(), is_leak)) return leak_latched;
  return status.latches().empty() && status.open_trips().empty() ? not_armed : trip_open;
}

}  // namespace

std::string_view name_of(interlock_life life) {
  switch (life) {
    case interlock_life::never_heard:
      return "never_heard";
    case interlock_life::alive:
      return "alive";
    case interlock_life::dead:
      return "dead";
  }
  return "never_heard";
}

gate_verdict judge_gate(const interlock_view& view, std::string_view device) {
  if (gate_verdict life = judge_life(view); !life.allowed) return life;
  const interlock::Status& status = *view.status;
  if (!status.armed_rack()) return closed(not_armed, status.reason());
  const auto row = std::find_if(status.devices().begin(), status.devices().end(),
                                [device](const DeviceStatus& each) { return each.name() == device; });
  if (row == status.devices().end())
    return closed(not_armed, fmt::format("the arming record has no {}", device));
  if (row->latched()) return closed(leak_latched, fmt::format("a leak of {} is latched", device));
  if (row->blind()) return closed(not_armed, fmt::format("{} is in a blind window", device));
  // A detector that is not dry is the cause of an unarmed tray, so it is named first.
  const gate_verdict dry = judge_detectors(*row);
  if (!dry.allowed && (row->armed() || !row->detectors().empty())) return dry;
  if (!row->armed()) return closed(not_armed, row->reason());
  if (!row->gate_open()) return closed(fault_of(status), row->reason());
  return {.allowed = true, .fault = {}, .reason = {}};
}

gate_verdict judge_rack(const interlock_view& view) {
  if (gate_verdict life = judge_life(view); !life.allowed) return life;
  const interlock::Status& status = *view.status;
  if (!status.armed_rack()) return closed(not_armed, status.reason());
  if (!status.latches().empty()) {
    const auto leak = std::find_if(status.latches().begin(), status.latches().end(), is_leak);
    const interlock::Latch& shown = leak == status.latches().end() ? status.latches(0) : *leak;
    const bool bare = shown.kind() == interlock::Latch::LEAK_SEEN || shown.detail().empty();
    return closed(
        fault_of(status),
        fmt::format("{} of {} is latched{}{}", is_leak(shown) ? "a leak" : latch_words(shown.cause()),
                    shown.device(), bare ? "" : ": ", bare ? "" : shown.detail()));
  }
  return {.allowed = true, .fault = {}, .reason = {}};
}

}  // namespace busbar::rack
