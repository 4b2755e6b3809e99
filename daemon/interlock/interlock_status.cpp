#include <fmt/format.h>

#include <algorithm>

#include "actors/core/mutant.hpp"
#include "daemon/interlock/interlock_rules.hpp"

namespace busbar::interlock {
namespace {

constexpr std::int64_t poll_interval_max_ms =
    10'000;                                    // a slower BMC is not protection: its reading goes stale
constexpr std::int64_t reread_ms = 1'000;      // beside an event stream, and of what has no detectors
constexpr std::int64_t interval_step_ms = 50;  // so that it does not change with every poll
constexpr std::size_t rack_leak_latches = 2;   // from so many latched devices on it is a leak of the rack

}  // namespace

device_state* find_device(state& of, const std::string& name) {
  const auto found = of.devices.find(name);
  return found == of.devices.end() ? nullptr : &found->second;
}

bool is_blind(const device_state& device, std::int64_t now_ms) {
  return now_ms < device.blind_until_ms;
}

// The verdict of one needed detector; what was not read is unknown.
reading reading_of(const device_state& device, const std::string& detector) {
  const auto found = device.readings.find(detector);
  reading result{.seen = DetectorReading::UNKNOWN, .detail = "not read"};
  if (found != device.readings.end()) result = found->second;
  if (result.seen == DetectorReading::UNKNOWN && BUSBAR_MUTANT(interlock_reads_unknown_as_dry)) {
    result.seen = DetectorReading::DRY;
  }
  return result;
}

// Why a device is not armed; empty when it is.
std::string why_not_armed(const state& of, const device_state& device, std::int64_t now_ms) {
  if (is_blind(device, now_ms))
    return fmt::format("blind window, {} s left", (device.blind_until_ms - now_ms + 999) / 1000);
  if (!device.online) return device.trouble;
  if (!device.read_at_ms.has_value()) {
    return device.trouble.empty() ? "detectors not read yet" : "detectors not read yet: " + device.trouble;
  }
  const std::int64_t age = now_ms - *device.read_at_ms;
  const std::int64_t limit = stale_after_ms(of, device);
  if (age > limit && !BUSBAR_MUTANT(interlock_trusts_stale_reading))
    return fmt::format("no whole poll for {} ms, limit {}: {}", age, limit, device.trouble);
  for (const std::string& detector : device.spec.detectors()) {
    if (is_bypassed(of.trip, device.spec.name(), detector)) continue;
    const reading seen = reading_of(device, detector);
    if (seen.seen == DetectorReading::UNKNOWN)
      return fmt::format("detector {} is unknown: {}", detector, seen.detail);
  }
  return {};
}

bool all_dry(const state& of, const device_state& device) {
  return std::all_of(device.spec.detectors().begin(), device.spec.detectors().end(),
                     [&of, &device](const std::string& name) {
                       return is_bypassed(of.trip, device.spec.name(), name) ||
                              reading_of(device, name).seen == DetectorReading::DRY;
                     });
}

namespace {

// What the rack's own sensors say about every tray; empty: they are dry, or there are none.
std::string why_rack_not_dry(const state& of, std::int64_t now_ms) {
  for (const auto& [name, device] : of.devices) {
    if (!is_rack_sensor(device.spec) || device.spec.detectors().empty()) continue;
    if (const std::string why = why_not_armed(of, device, now_ms); !why.empty())
      return fmt::format("the rack's detectors at {}: {}", name, why);
    if (!all_dry(of, device)) return fmt::format("a detector of the rack at {} is not dry", name);
  }
  return {};
}

}  // namespace

// Why the gate of an armed device is closed; empty when it is open.
std::string why_gate_closed(const state& of, const device_state& device, std::int64_t now_ms) {
  if (!of.latch_file_trouble.empty()) return "the latch file cannot be trusted: " + of.latch_file_trouble;
  if (const auto open = of.latches.find(device.spec.name()); open != of.latches.end()) {
    return fmt::format("leak latched by detector {} (number {})", open->second.detector(),
                       open->second.number());
  }
  if (const trip_state* trip = trip_over(of.trip, device.spec.name()); trip != nullptr) {
    return fmt::format("trip {} of {} is latched: {}: {}", trip->number, trip->scope,
                       std::string(name_of(trip->cause)), trip->detail);
  }
  if (of.latches.size() >= rack_leak_latches)
    return fmt::format("leaks of {} devices are latched", of.latches.size());
  if (!all_dry(of, device)) return "a detector is not dry";
  return is_tray(device.spec) ? why_rack_not_dry(of, now_ms) : std::string();
}

std::string why_rack_not_armed(const state& of) {
  if (!of.record.has_value()) return of.record_trouble;
  if (!of.latch_file_trouble.empty()) return "the latch file cannot be trusted: " + of.latch_file_trouble;
  return {};
}

std::int64_t poll_interval_ms(const state& of, const device_state& device) {
  const limits set = of.record.has_value() ? limits_of(*of.record) : limits{};
  const std::size_t count = std::min(device.polls, device.poll_times_ms.size());
  std::int64_t interval = set.poll_min_ms;
  if (count > 0) {
    auto times = device.poll_times_ms;
    const auto middle = times.begin() + static_cast<std::ptrdiff_t>(count / 2);
    std::nth_element(times.begin(), middle, times.begin() + static_cast<std::ptrdiff_t>(count));
    const std::int64_t wanted = set.poll_service_times * *middle;
    interval = std::clamp((wanted + interval_step_ms - 1) / interval_step_ms * interval_step_ms,
                          set.poll_min_ms, std::max(set.poll_min_ms, poll_interval_max_ms));
  }
  // The CDU's leak events are not relied upon: one drop there is the whole rack's.
  const bool told = device.streaming && is_tray(device.spec) && all_dry(of, device);
  const bool silent = device.spec.detectors().empty();
  return told || silent ? std::max(interval, reread_ms) : interval;
}

std::int64_t stale_after_ms(const state& of, const device_state& device) {
  const std::int64_t polls = of.record.has_value() ? limits_of(*of.record).stale_polls : limits{}.stale_polls;
  return polls * std::max(device.interval_ms, poll_interval_ms(of, device));
}

DeviceStatus device_status(const state& of, const device_state& device, std::int64_t now_ms) {
  DeviceStatus row;
  row.set_name(device.spec.name());
  std::string reason = why_not_armed(of, device, now_ms);
  row.set_armed(reason.empty());
  const bool fresh =
      device.read_at_ms.has_value() && now_ms - *device.read_at_ms <= stale_after_ms(of, device);
  for (const std::string& name : device.spec.detectors()) {
    if (is_bypassed(of.trip, device.spec.name(), name)) continue;  // shown among the bypasses, never as dry
    const reading seen = reading_of(device, name);
    DetectorReading* shown = row.add_detectors();
    shown->set_name(name);
    shown->set_verdict(fresh ? seen.seen : DetectorReading::UNKNOWN);
    shown->set_detail(fresh ? seen.detail : "stale");
  }
  if (device.read_at_ms.has_value())
    row.set_age_ms(static_cast<std::uint64_t>(std::max<std::int64_t>(0, now_ms - *device.read_at_ms)));
  row.set_latched(of.latches.count(device.spec.name()) != 0);
  row.set_blind(is_blind(device, now_ms));
  row.set_blind_left_ms(row.blind() ? static_cast<std::uint64_t>(device.blind_until_ms - now_ms) : 0);
  row.set_poll_ms(static_cast<std::uint32_t>(poll_interval_ms(of, device)));
  if (reason.empty()) {
    reason = why_gate_closed(of, device, now_ms);
    row.set_gate_open(reason.empty() && is_tray(device.spec));
  }
  row.set_reason(reason);
  return row;
}

namespace {

std::string trips_text(const state& of) {
  if (!of.record.has_value()) return "trips: nothing, no arming record is held";
  std::string text = describe(of.trip.plan);
  for (const auto& [name, device] : of.devices) {
    if (!device.cannot.empty()) text += fmt::format("; {}: {}", name, device.cannot);
  }
  return text;
}

void fill_trips(const state& of, std::int64_t now_ms, Status* status) {
  status->set_trips(of.record.has_value() ? extent_of(of.trip.plan) : Status::NONE);
  status->set_trips_text(trips_text(of));
  for (const auto& [number, trip] : of.trip.open) {
    TripStatus* row = status->add_open_trips();
    row->set_number(number);
    row->set_cause(trip.cause);
    row->set_scope(trip.scope);
    row->set_detail(trip.detail);
    row->set_closed(trip.closed);
    row->set_age_ms(
        static_cast<std::uint64_t>(std::max<std::int64_t>(0, now_ms - trip.opened_ns / ms_in_ns)));
    for (const std::string& each : waits_for(of.trip, trip)) row->add_waits_for(each);
    row->set_alarm(!trip.closed &&
                   std::any_of(of.trip.targets.begin(), of.trip.targets.end(),
                               [](const target_state& each) { return each.alarmed && !each.final; }));
    if (of.latches.contains(trip.scope)) continue;  // the leak itself is the latch
    Latch* latch = status->add_latches();
    latch->set_number(number);
    latch->set_trip(number);
    latch->set_kind(Latch::TRIP_OPENED);
    latch->set_cause(trip.cause);
    latch->set_device(trip.scope);
    latch->set_detail(trip.detail);
    latch->set_durable(!of.unwritten.contains(number));
  }
  for (const auto& [key, bypass] : of.trip.bypasses) {
    BypassStatus* row = status->add_bypasses();
    row->set_device(key.first);
    row->set_detector(key.second);
    row->set_owner(bypass.owner);
    row->set_reason(bypass.reason);
    row->set_left_s(static_cast<std::uint64_t>(
        std::max<std::int64_t>(0, (bypass.until_ns / ms_in_ns - now_ms + 999) / 1000)));
  }
  if (of.trip.suspected) status->set_suspected_leak("pressure and level fall and no detector sees a leak");
  status->set_last_record_number(of.durable_number);
}

}  // namespace

void fill_status(const state& of, std::int64_t now_ms, Status* status) {
  status->set_instance(of.rack);
  const std::string why = why_rack_not_armed(of);
  status->set_armed_rack(why.empty());
  status->set_reason(why);
  status->set_generation(of.record.has_value() ? of.record->generation() : 0);
  for (const auto& [name, device] : of.devices) *status->add_devices() = device_status(of, device, now_ms);
  for (const auto& [name, line] : of.latches) *status->add_latches() = line;
  status->set_last_latch_number(of.last_latch_number);
  status->set_latch_file_ok(of.latch_file_trouble.empty());
  fill_trips(of, now_ms, status);
}

}  // namespace busbar::interlock
