#include "daemon/interlock/interlock_logic.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "actors/core/mutant.hpp"
#include "daemon/interlock/interlock_rules.hpp"

namespace busbar::interlock {
namespace {

// A reset of the rack takes the latches of the rack's own sensors with it.
void drop_latches(state& of, const std::string& scope) {
  of.latches.erase(scope);
  if (scope != of.rack) return;
  std::erase_if(of.latches,
                [&of](const auto& entry) { return of.trip.plan.rack_sensors.contains(entry.first); });
}

// The record's devices become the devices watched; what is known of an unchanged one stays.
void adopt_record(state& of, ArmingRecord record, std::int64_t now_ms, effects& out) {
  std::map<std::string, device_state> next;
  for (const ArmedDevice& spec : record.devices()) {
    device_state& device = next[spec.name()];
    if (const device_state* old = find_device(of, spec.name()); old != nullptr) {
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
  out.push_back(follow_devices{});  // before a command to one of them
  run_trips(of, plan_changed{plan_of(*of.record)}, now_ms, out);
}

// Which latches a line of the file opens or closes.
void replay_latch(state& of, const Latch& line) {
  if (line.kind() != Latch::LEAK_SEEN && line.kind() != Latch::RESET) return;
  of.last_latch_number = std::max(of.last_latch_number, line.number());
  if (line.kind() == Latch::LEAK_SEEN) of.latches.emplace(line.device(), line);
  if (line.kind() == Latch::RESET) drop_latches(of, line.device());
}

void on(state& of, const loaded& what, std::int64_t now_ms, effects& out) {
  of.latch_file_trouble = what.latch_file_trouble;
  of.trip.plan.rack = of.rack;
  if (what.record.has_value()) {
    adopt_record(of, *what.record, now_ms, out);
    out.push_back(say{false, fmt::format("armed from disk: generation {}, {} devices",
                                         of.record->generation(), of.devices.size())});
  } else if (!what.record_trouble.empty()) {
    of.record_trouble = what.record_trouble;
    of.record_unreadable = true;
    out.push_back(say{true, "arming record: " + what.record_trouble});
  }
  for (const Latch& line : what.latches) {
    of.durable_number = std::max(of.durable_number, line.number());
    replay_latch(of, line);
  }
  if (BUSBAR_MUTANT(interlock_forgets_latch_at_restart)) of.latches.clear();
  for (const auto& [device, line] : of.latches) {
    out.push_back(say{true, fmt::format("{}: a leak is latched (number {}, detector {})", device,
                                        line.number(), line.detector())});
  }
  if (!of.latch_file_trouble.empty())
    out.push_back(say{true, "latch file: " + of.latch_file_trouble + "; every gate is closed"});
  out.push_back(follow_devices{});
  run_trips(of, trips_restored{what.latches, what.wall_ns}, now_ms, out);
  out.push_back(publish{});
}

// What lies between our last line and the last that was seen may have been a leak or a trip: it is unknown,
// so every gate closes until a person has looked. Our numbers go on above: a number is never given twice.
void on(state& of, const lines_known& what, std::int64_t, effects& out) {
  if (what.number <= of.trip.last_number) return;
  Latch line;
  line.set_number(what.number + 1);
  line.set_kind(Latch::LOST);
  line.set_device("*");
  line.set_detail(fmt::format("latches.bin was put back or lost: it ended at number {}, busbard has seen {}",
                              of.trip.last_number, what.number));
  line.set_wall_time_ns(what.wall_ns);
  of.trip.last_number = line.number();
  of.latch_file_trouble += (of.latch_file_trouble.empty() ? "" : "; ") + line.detail();
  of.unwritten.emplace(line.number(), line);
  out.push_back(
      say{true, "latch file: " + line.detail() + "; every gate is closed until a person resets \"*\""});
  out.push_back(publish{});
  out.push_back(write_latch{std::move(line)});
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

void on(state& of, const record_stored& what, std::int64_t now_ms, effects& out) {
  if (!what.status.ok()) {
    out.push_back(say{true, "arming record not stored: " + std::string(what.status.message())});
    return refuse(out, what.request, what.status, "STORE_READ_ONLY");
  }
  adopt_record(of, what.record, now_ms, out);
  out.push_back(say{
      false, fmt::format("armed: generation {}, {} devices", of.record->generation(), of.devices.size())});
  out.push_back(answer{what.request, absl::OkStatus(), {}});
  out.push_back(publish{});
}

void on(state& of, const device_online& what, std::int64_t now_ms, effects& out) {
  device_state* device = find_device(of, what.device);
  if (device == nullptr) return;
  device->online = true;
  device->streaming = false;
  device->trouble.clear();
  run_trips(of, reach_changed{what.device, true}, now_ms, out);
  out.push_back(say{false, what.device + ": logged in"});
}

void on(state& of, const device_lost& what, std::int64_t now_ms, effects& out) {
  device_state* device = find_device(of, what.device);
  if (device == nullptr) return;
  const bool news = device->online || device->trouble != what.why;
  device->online = false;
  device->trouble = what.why;
  run_trips(of, reach_changed{what.device, false}, now_ms, out);
  if (!news) return;
  out.push_back(say{!is_blind(*device, now_ms), fmt::format("{}: not armed: {}", what.device, what.why)});
  out.push_back(publish{});
}

void on(state& of, const poll_failed& what, std::int64_t, effects&) {
  if (device_state* device = find_device(of, what.device); device != nullptr) device->trouble = what.why;
}

// What its interval was holds until it is read again: the end of a stream makes no reading stale.
void on(state& of, const stream_changed& what, std::int64_t, effects&) {
  if (device_state* device = find_device(of, what.device); device != nullptr) device->streaming = what.lives;
}

void on(state& of, const detectors_read& what, std::int64_t now_ms, effects& out) {
  device_state* device = find_device(of, what.device);
  if (device == nullptr) return;
  const bool was_armed = why_not_armed(of, *device, now_ms).empty();
  const bool was_dry = all_dry(of, *device);
  const std::uint64_t before = of.trip.last_number;
  device->readings = what.readings;
  device->read_at_ms = now_ms;
  device->trouble.clear();
  device->poll_times_ms[device->polls % device->poll_times_ms.size()] = what.took_ms;
  ++device->polls;
  run_trips(of, sensors_read{what.device, what.readings, what.took_ms * ms_in_ns}, now_ms, out);
  if (!all_dry(of, *device))
    device->dry_since_ms.reset();
  else if (!device->dry_since_ms)
    device->dry_since_ms = now_ms;
  for (const auto& [number, line] : of.unwritten) {
    if (number <= before) out.push_back(write_latch{line});  // the disk refused before
  }
  const std::int64_t before_ms = std::exchange(device->interval_ms, poll_interval_ms(of, *device));
  const std::string why = why_not_armed(of, *device, now_ms);
  const bool same_interval = before_ms == device->interval_ms;
  if (was_armed == why.empty() && was_dry == all_dry(of, *device) && same_interval) return;
  if (was_armed != why.empty()) {
    out.push_back(
        say{!why.empty() && !is_blind(*device, now_ms),
            why.empty() ? what.device + ": armed" : fmt::format("{}: not armed: {}", what.device, why)});
  }
  out.push_back(publish{});
}

void on(state& of, const device_cannot& what, std::int64_t, effects& out) {
  device_state* device = find_device(of, what.device);
  if (device == nullptr || device->cannot == what.what) return;
  device->cannot = what.what;
  if (!what.what.empty()) out.push_back(say{true, fmt::format("{}: a trip {}", what.device, what.what)});
  out.push_back(publish{});
}

void on(state& of, const coolant_seen& what, std::int64_t now_ms, effects& out) {
  if (find_device(of, what.device) != nullptr) run_trips(of, what.values, now_ms, out);
}
void on(state& of, const power_read& what, std::int64_t now_ms, effects& out) {
  if (find_device(of, what.device) != nullptr) run_trips(of, what, now_ms, out);
}
void on(state& of, const valve_read& what, std::int64_t now_ms, effects& out) {
  run_trips(of, what, now_ms, out);
}
void on(state& of, const command_ended& what, std::int64_t now_ms, effects& out) {
  run_trips(of, what, now_ms, out);
}
void on(state& of, const tick& what, std::int64_t now_ms, effects& out) {
  run_trips(of, what, now_ms, out);
}
void on(state& of, const trip_requested& what, std::int64_t now_ms, effects& out) {
  on_trip_requested(of, what, now_ms, out);
}
void on(state& of, const bypass_asked& what, std::int64_t now_ms, effects& out) {
  on_bypass_asked(of, what, now_ms, out);
}

void on(state& of, const blind_asked& what, std::int64_t now_ms, effects& out) {
  device_state* device = find_device(of, what.device);
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

void on(state& of, const reset_asked& what, std::int64_t now_ms, effects& out) {
  if (absl::Status status = check_reset(of, what, now_ms); !status.ok()) {
    out.push_back(say{true, fmt::format("reset of {} by {} refused: {}", what.device, what.principal,
                                        std::string(status.message()))});
    return refuse(out, what.request, std::move(status));
  }
  // The rack's own sensors go with its trip, each by a line of its own.
  for (const std::string& sensor : of.trip.plan.rack_sensors) {
    if (what.device != of.rack || !of.latches.contains(sensor)) continue;
    Latch own;
    own.set_number(++of.trip.last_number);
    own.set_kind(Latch::RESET);
    own.set_device(sensor);
    own.set_detail(what.reason);
    own.set_principal(what.principal);
    own.set_wall_time_ns(what.wall_ns);
    out.push_back(write_latch{own});
  }
  Latch line;
  line.set_number(++of.trip.last_number);
  of.last_latch_number = line.number();
  line.set_kind(Latch::RESET);
  line.set_device(what.device);
  line.set_detail(what.reason);
  line.set_principal(what.principal);
  line.set_wall_time_ns(what.wall_ns);
  of.resets[line.number()] = {what.request, what.device};
  out.push_back(say{true, fmt::format("reset of {} by {}: {}", what.device, what.principal, what.reason)});
  out.push_back(write_latch{line});
}

void on(state& of, const latch_written& what, std::int64_t now_ms, effects& out) {
  if (!what.status.ok()) out.push_back(say{true, "latch file: " + std::string(what.status.message())});
  if (const auto reset = of.resets.find(what.number); reset != of.resets.end()) {
    const auto [request, device] = reset->second;
    of.resets.erase(reset);
    // A reset that is not on disk would be undone by a restart: it has not happened.
    if (!what.status.ok()) return refuse(out, request, what.status, "STORE_READ_ONLY");
    of.durable_number = std::max(of.durable_number, what.number);
    if (device == "*") of.latch_file_trouble.clear();
    drop_latches(of, device);
    run_trips(of, latch_reset{device}, now_ms, out);
    out.push_back(answer{request, absl::OkStatus(), {}});
    out.push_back(publish{});
    return;
  }
  if (!what.status.ok()) return;
  // A line that is not synced is not among them: the host may lose it yet.
  if (of.unwritten.erase(what.number) > 0) of.durable_number = std::max(of.durable_number, what.number);
  for (auto& [device, line] : of.latches) {
    if (line.number() == what.number) line.set_durable(true);
  }
}

}  // namespace

std::vector<effect> step(state& now_state, const event& what, std::int64_t now_ms) {
  effects out;
  std::visit([&now_state, now_ms, &out](const auto& each) { on(now_state, each, now_ms, out); }, what);
  return out;
}

}  // namespace busbar::interlock
