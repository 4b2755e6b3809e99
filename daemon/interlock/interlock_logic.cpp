#include "daemon/interlock/interlock_logic.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "actors/core/mutant.hpp"

namespace busbar::interlock {
namespace {

using effects = std::vector<effect>;

constexpr std::int64_t poll_interval_max_ms =
    10'000;                                 // a slower BMC is not protection: its reading goes stale
constexpr std::size_t rack_leak_trays = 2;  // from so many latched trays on it is a leak of the rack
constexpr std::size_t reason_max = 127;     // what a line of the latch file holds

device_state* find(state& of, const std::string& name) {
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
  const std::int64_t limit = limits_of(*of.record).stale_polls * poll_interval_ms(of, device);
  if (age > limit && !BUSBAR_MUTANT(interlock_trusts_stale_reading))
    return fmt::format("no whole poll for {} ms, limit {}: {}", age, limit, device.trouble);
  for (const std::string& detector : device.spec.detectors()) {
    const reading seen = reading_of(device, detector);
    if (seen.seen == DetectorReading::UNKNOWN)
      return fmt::format("detector {} is unknown: {}", detector, seen.detail);
  }
  return {};
}

bool all_dry(const device_state& device) {
  return std::all_of(device.spec.detectors().begin(), device.spec.detectors().end(),
                     [&device](const std::string& name) {
                       const verdict seen = reading_of(device, name).seen;
                       return seen == DetectorReading::DRY;
                     });
}

// Why the gate of an armed device is closed; empty when it is open.
std::string why_gate_closed(const state& of, const device_state& device) {
  if (!of.latch_file_trouble.empty()) return "the latch file cannot be trusted: " + of.latch_file_trouble;
  if (const auto open = of.latches.find(device.spec.name()); open != of.latches.end()) {
    return fmt::format("leak latched by detector {} (number {})", open->second.detector(),
                       open->second.number());
  }
  if (of.latches.size() >= rack_leak_trays)
    return fmt::format("leaks of {} trays are latched", of.latches.size());
  if (!all_dry(device)) return "a detector is not dry";
  return {};
}

std::string why_rack_not_armed(const state& of) {
  if (!of.record.has_value()) return of.record_trouble;
  if (!of.latch_file_trouble.empty()) return "the latch file cannot be trusted: " + of.latch_file_trouble;
  return {};
}

void refuse(effects& out, std::uint64_t request, absl::Status status, std::string fault = {}) {
  out.push_back(answer{request, std::move(status), std::move(fault)});
}

// The record's devices become the devices watched; what is known of an unchanged one stays.
void adopt_record(state& of, ArmingRecord record) {
  std::map<std::string, device_state> next;
  for (const ArmedDevice& spec : record.devices()) {
    device_state& device = next[spec.name()];
    if (const device_state* old = find(of, spec.name()); old != nullptr) {
      const bool same_access =
          old->spec.address() == spec.address() && old->spec.pin_sha256() == spec.pin_sha256() &&
          old->spec.account() == spec.account() && old->spec.password() == spec.password();
      if (same_access) device = *old;
      device.blind_since_ms = old->blind_since_ms;
      device.blind_until_ms = old->blind_until_ms;
    }
    device.spec = spec;
  }
  of.devices = std::move(next);
  of.record = std::move(record);
  of.record_trouble.clear();
  of.record_unreadable = false;
}

void on(state& of, const loaded& what, std::int64_t, effects& out) {
  of.latch_file_trouble = what.latch_file_trouble;
  for (const Latch& line : what.latches) {
    of.last_latch_number = std::max(of.last_latch_number, line.number());
    if (line.kind() == Latch::LEAK_SEEN) of.latches.emplace(line.device(), line);
    if (line.kind() == Latch::RESET) of.latches.erase(line.device());
  }
  if (BUSBAR_MUTANT(interlock_forgets_latch_at_restart)) of.latches.clear();
  for (const auto& [device, line] : of.latches) {
    out.push_back(say{true, fmt::format("{}: a leak is latched (number {}, detector {})", device,
                                        line.number(), line.detector())});
  }
  if (!of.latch_file_trouble.empty())
    out.push_back(say{true, "latch file: " + of.latch_file_trouble + "; every gate is closed"});
  if (what.record.has_value()) {
    adopt_record(of, *what.record);
    out.push_back(say{false, fmt::format("armed from disk: generation {}, {} devices",
                                         of.record->generation(), of.devices.size())});
  } else if (!what.record_trouble.empty()) {
    of.record_trouble = what.record_trouble;
    of.record_unreadable = true;
    out.push_back(say{true, "arming record: " + what.record_trouble});
  }
  out.push_back(follow_devices{});
  out.push_back(publish{});
}

void on(state& of, const record_offered& what, std::int64_t, effects& out) {
  if (absl::Status status = check_record(what.record, of.rack); !status.ok())
    return refuse(out, what.request, status);
  if (what.operator_socket && what.reason.empty()) {
    return refuse(out, what.request, absl::InvalidArgumentError("a reason is needed"));
  }
  if (of.record_unreadable && !what.operator_socket) {
    return refuse(out, what.request,
                  absl::FailedPreconditionError("the record held cannot be read (" + of.record_trouble +
                                                "): only an operator replaces it"));
  }
  if (of.record.has_value()) {
    const absl::Status status = what.operator_socket ? check_generation(*of.record, what.record)
                                                     : check_restricts(*of.record, what.record);
    if (!status.ok()) return refuse(out, what.request, status);
    if (same_record(*of.record, what.record))
      return refuse(out, what.request, absl::OkStatus());  // asked twice, held already
  }
  if (what.operator_socket) {
    out.push_back(say{
        true, fmt::format("operator hands over generation {}: {}", what.record.generation(), what.reason)});
  }
  out.push_back(store_record{what.request, what.record});
}

void on(state& of, const record_stored& what, std::int64_t, effects& out) {
  if (!what.status.ok()) {
    out.push_back(say{true, "arming record not stored: " + std::string(what.status.message())});
    return refuse(out, what.request, what.status, "STORE_READ_ONLY");
  }
  adopt_record(of, what.record);
  out.push_back(say{
      false, fmt::format("armed: generation {}, {} devices", of.record->generation(), of.devices.size())});
  out.push_back(follow_devices{});
  out.push_back(answer{what.request, absl::OkStatus(), {}});
  out.push_back(publish{});
}

void on(state& of, const device_online& what, std::int64_t, effects& out) {
  device_state* device = find(of, what.device);
  if (device == nullptr) return;
  device->online = true;
  device->trouble.clear();
  out.push_back(say{false, what.device + ": logged in"});
}

void on(state& of, const device_lost& what, std::int64_t now_ms, effects& out) {
  device_state* device = find(of, what.device);
  if (device == nullptr) return;
  const bool news = device->online || device->trouble != what.why;
  device->online = false;
  device->trouble = what.why;
  if (!news) return;
  out.push_back(say{!is_blind(*device, now_ms), fmt::format("{}: not armed: {}", what.device, what.why)});
  out.push_back(publish{});
}

void on(state& of, const poll_failed& what, std::int64_t, effects&) {
  if (device_state* device = find(of, what.device); device != nullptr) device->trouble = what.why;
}

// The first wet detector latches its device, once: the same leak seen at each poll for an hour is one latch.
void latch_leak(state& of, const device_state& device, effects& out) {
  const std::string& name = device.spec.name();
  if (const auto open = of.latches.find(name); open != of.latches.end()) {
    if (!open->second.durable())
      out.push_back(write_latch{open->second});  // the disk refused before: try again
    return;
  }
  const auto wet = std::find_if(device.readings.begin(), device.readings.end(),
                                [](const auto& entry) { return entry.second.seen == DetectorReading::LEAK; });
  if (wet == device.readings.end()) return;
  Latch line;
  line.set_number(++of.last_latch_number);
  line.set_kind(Latch::LEAK_SEEN);
  line.set_device(name);
  line.set_detector(wet->first);
  line.set_detail(wet->second.detail.substr(0, reason_max));
  of.latches.emplace(name, line);
  out.push_back(say{
      true,
      fmt::format("LEAK at {} detector {} ({}): latched, gate closed. This version does NOT trip: no command "
                  "was sent to the tray",
                  name, wet->first, wet->second.detail)});
  out.push_back(publish{});  // before the disk: the gate closes now
  out.push_back(write_latch{line});
}

void on(state& of, const detectors_read& what, std::int64_t now_ms, effects& out) {
  device_state* device = find(of, what.device);
  if (device == nullptr) return;
  const bool was_armed = why_not_armed(of, *device, now_ms).empty();
  const bool was_dry = all_dry(*device);
  device->readings = what.readings;
  device->read_at_ms = now_ms;
  device->trouble.clear();
  device->poll_times_ms[device->polls % device->poll_times_ms.size()] = what.took_ms;
  ++device->polls;
  latch_leak(of, *device, out);
  const std::string why = why_not_armed(of, *device, now_ms);
  if (was_armed == why.empty() && was_dry == all_dry(*device)) return;
  if (was_armed != why.empty()) {
    out.push_back(
        say{!why.empty() && !is_blind(*device, now_ms),
            why.empty() ? what.device + ": armed" : fmt::format("{}: not armed: {}", what.device, why)});
  }
  out.push_back(publish{});
}

void on(state& of, const blind_asked& what, std::int64_t now_ms, effects& out) {
  device_state* device = find(of, what.device);
  if (device == nullptr)
    return refuse(out, what.request,
                  absl::NotFoundError("no such device in the arming record: " + what.device));
  if (what.length_ms == 0) {
    device->blind_until_ms = 0;
    out.push_back(answer{what.request, absl::OkStatus(), {}});
    out.push_back(publish{});
    return;
  }
  const bool open = is_blind(*device, now_ms);
  const std::int64_t since = open ? device->blind_since_ms : now_ms;
  if (what.length_ms < 0 || now_ms + what.length_ms > since + blind_window_max_ms) {
    return refuse(out, what.request,
                  absl::InvalidArgumentError("a blind window ends at most 10 minutes after its start"));
  }
  if (!of.latches.empty()) {
    return refuse(out, what.request,
                  absl::FailedPreconditionError("a leak is latched in this rack: no detector is blinded"),
                  "POWER_LEAK_LATCHED");
  }
  const auto blind = std::count_if(of.devices.begin(), of.devices.end(),
                                   [now_ms](const auto& entry) { return is_blind(entry.second, now_ms); });
  if (!open && static_cast<std::size_t>(blind) >= blind_devices_max) {
    return refuse(out, what.request, absl::ResourceExhaustedError("6 trays of this rack are blind already"));
  }
  device->blind_since_ms = since;
  device->blind_until_ms = now_ms + what.length_ms;
  out.push_back(
      say{false, fmt::format("{}: blind window of {} s announced", what.device, what.length_ms / 1000)});
  out.push_back(answer{what.request, absl::OkStatus(), {}});
  out.push_back(publish{});
}

// Every needed detector of the device seen dry, now. A latch of a device that an operator has taken out of
// the record since has no sensor left to ask.
absl::Status check_reset_dry(state& of, const std::string& name, std::int64_t now_ms) {
  const device_state* device = find(of, name);
  if (device == nullptr) return absl::OkStatus();
  if (const std::string why = why_not_armed(of, *device, now_ms); !why.empty()) {
    return absl::FailedPreconditionError(name + ": its detectors are not known to be dry: " + why);
  }
  if (!all_dry(*device) && !BUSBAR_MUTANT(interlock_resets_while_wet)) {
    return absl::FailedPreconditionError(name + ": a detector is still wet");
  }
  return absl::OkStatus();
}

absl::Status check_reset(state& of, const reset_asked& what, std::int64_t now_ms) {
  if (what.reason.empty()) return absl::InvalidArgumentError("a reason is needed");
  if (what.reason.size() > reason_max)
    return absl::InvalidArgumentError("the reason is longer than 127 bytes");
  if (what.device != "*") {
    if (of.latches.count(what.device) == 0) return absl::NotFoundError("no latch is open for " + what.device);
    return check_reset_dry(of, what.device, now_ms);
  }
  if (of.latch_file_trouble.empty()) return absl::NotFoundError("the latch file is sound");
  for (const auto& [name, device] : of.devices) {
    if (absl::Status status = check_reset_dry(of, name, now_ms); !status.ok()) return status;
  }
  return absl::OkStatus();
}

void on(state& of, const reset_asked& what, std::int64_t now_ms, effects& out) {
  if (absl::Status status = check_reset(of, what, now_ms); !status.ok()) {
    out.push_back(say{true, fmt::format("reset of {} by {} refused: {}", what.device, what.principal,
                                        std::string(status.message()))});
    return refuse(out, what.request, std::move(status));
  }
  Latch line;
  line.set_number(++of.last_latch_number);
  line.set_kind(Latch::RESET);
  line.set_device(what.device);
  line.set_detail(what.reason);
  line.set_principal(what.principal);
  line.set_wall_time_ns(what.wall_ns);
  of.resets[line.number()] = {what.request, what.device};
  out.push_back(say{true, fmt::format("reset of {} by {}: {}", what.device, what.principal, what.reason)});
  out.push_back(write_latch{line});
}

void on(state& of, const latch_written& what, std::int64_t, effects& out) {
  if (!what.status.ok()) out.push_back(say{true, "latch file: " + std::string(what.status.message())});
  if (const auto reset = of.resets.find(what.number); reset != of.resets.end()) {
    const auto [request, device] = reset->second;
    of.resets.erase(reset);
    // A reset that is not on disk would be undone by a restart: it has not happened.
    if (!what.status.ok()) return refuse(out, request, what.status, "STORE_READ_ONLY");
    if (device == "*") of.latch_file_trouble.clear();
    of.latches.erase(device);
    out.push_back(answer{request, absl::OkStatus(), {}});
    out.push_back(publish{});
    return;
  }
  for (auto& [device, line] : of.latches) {
    if (line.number() == what.number) line.set_durable(what.status.ok());
  }
}

}  // namespace

std::vector<effect> step(state& now_state, const event& what, std::int64_t now_ms) {
  effects out;
  std::visit([&now_state, now_ms, &out](const auto& each) { on(now_state, each, now_ms, out); }, what);
  return out;
}

std::int64_t poll_interval_ms(const state& of, const device_state& device) {
  const limits set = of.record.has_value() ? limits_of(*of.record) : limits{};
  const std::size_t count = std::min(device.polls, device.poll_times_ms.size());
  if (count == 0) return set.poll_min_ms;
  auto times = device.poll_times_ms;
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(count / 2);
  std::nth_element(times.begin(), middle, times.begin() + static_cast<std::ptrdiff_t>(count));
  return std::clamp(set.poll_service_times * *middle, set.poll_min_ms,
                    std::max(set.poll_min_ms, poll_interval_max_ms));
}

DeviceStatus device_status(const state& of, const device_state& device, std::int64_t now_ms) {
  DeviceStatus row;
  row.set_name(device.spec.name());
  std::string reason = why_not_armed(of, device, now_ms);
  row.set_armed(reason.empty());
  const bool fresh =
      device.read_at_ms.has_value() &&
      now_ms - *device.read_at_ms <= limits_of(*of.record).stale_polls * poll_interval_ms(of, device);
  for (const std::string& name : device.spec.detectors()) {
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
    reason = why_gate_closed(of, device);
    row.set_gate_open(reason.empty());
  }
  row.set_reason(reason);
  return row;
}

void fill_status(const state& of, std::int64_t now_ms, Status* status) {
  status->set_instance(of.rack);
  status->set_trips(Status::NOT_IMPLEMENTED);
  status->set_trips_text("gate only: this version does not trip");
  const std::string why = why_rack_not_armed(of);
  status->set_armed_rack(why.empty());
  status->set_reason(why);
  status->set_generation(of.record.has_value() ? of.record->generation() : 0);
  for (const auto& [name, device] : of.devices) *status->add_devices() = device_status(of, device, now_ms);
  for (const auto& [name, line] : of.latches) *status->add_latches() = line;
  status->set_last_latch_number(of.last_latch_number);
  status->set_latch_file_ok(of.latch_file_trouble.empty());
}

}  // namespace busbar::interlock
