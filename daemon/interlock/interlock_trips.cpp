// Where the interlock's own events meet trip_logic: latches, requests by people and busbard, resets.
#include <fmt/format.h>

#include <algorithm>

#include "actors/core/mutant.hpp"
#include "daemon/interlock/interlock_rules.hpp"
#include "daemon/interlock/text.hpp"

namespace busbar::interlock {
namespace {

void run_note(state& of, Latch line, effects& out) {
  line.set_detail(std::string(cut_text(line.detail(), reason_max)));
  if (line.kind() == Latch::LEAK_SEEN) {
    of.latches.emplace(line.device(), line);
    of.last_latch_number = line.number();
  }
  if (line.kind() == Latch::STEP_DONE) {
    out.push_back(write_latch{std::move(line), false});
    return;
  }
  of.unwritten.emplace(line.number(), line);
  out.push_back(write_latch{std::move(line)});
}

// The name of a device whose trip may be asked for, or of the rack.
bool is_scope(const state& of, const std::string& scope) {
  return scope == of.rack ||
         std::any_of(of.trip.targets.begin(), of.trip.targets.end(), [&scope](const auto& each) {
           return each.what.kind == target_kind::tray && each.what.key == scope;
         });
}

absl::Status check_reason(const std::string& reason) {
  if (reason.empty()) return absl::InvalidArgumentError("a reason is needed");
  if (reason.size() > reason_max) return absl::InvalidArgumentError("the reason is longer than 127 bytes");
  return absl::OkStatus();
}

absl::Status wet(const std::string& text) {
  return absl::FailedPreconditionError(text);
}

// Every needed detector of the device seen dry, now. A latch of a device that an operator has taken out of
// the record since has no sensor left to ask.
absl::Status check_dry(state& of, const std::string& name, std::int64_t now_ms) {
  const device_state* device = find_device(of, name);
  if (device == nullptr) return absl::OkStatus();
  if (const std::string why = why_not_armed(of, *device, now_ms); !why.empty())
    return wet(name + ": its detectors are not known to be dry: " + why);
  if (!all_dry(of, *device) && !BUSBAR_MUTANT(interlock_resets_while_wet))
    return wet(name + ": a detector is still wet");
  return absl::OkStatus();
}

// Dry for long enough. A tray whose shelves are read off has no BMC that could be asked, and no power that
// could do harm: its gate stays closed until its detectors are read dry with standby power.
absl::Status check_dry_long(state& of, const std::string& name, std::int64_t now_ms) {
  const device_state* device = find_device(of, name);
  if (device == nullptr) return absl::OkStatus();
  if (is_tray(device->spec) && !device->online && every_shelf_is_off(of.trip)) return absl::OkStatus();
  if (absl::Status status = check_dry(of, name, now_ms); !status.ok()) return status;
  const std::int64_t needed_s = limits_of(*of.record).reset_dry_s;
  const std::int64_t dry_ms = device->dry_since_ms ? now_ms - *device->dry_since_ms : 0;
  if (dry_ms <= needed_s * 1000 && !BUSBAR_MUTANT(interlock_resets_while_wet))
    return wet(fmt::format("{}: dry for {} s, more than {} s are needed", name, dry_ms / 1000, needed_s));
  return absl::OkStatus();
}

absl::Status check_trips_closed(const state& of, const std::string& scope) {
  for (const auto& [number, trip] : of.trip.open) {
    if (trip.closed || (scope == of.rack ? !trip.rack : trip.scope != scope)) continue;
    std::string list;
    for (const std::string& each : waits_for(of.trip, trip)) list += (list.empty() ? "" : ", ") + each;
    return absl::FailedPreconditionError(
        fmt::format("trip {} of {} has not done its work: it waits for {}", number, trip.scope, list));
  }
  return absl::OkStatus();
}

}  // namespace

void refuse(effects& out, std::uint64_t request, absl::Status status, std::string fault) {
  out.push_back(answer{request, std::move(status), std::move(fault)});
}

void run_trips(state& of, const trip_event& what, std::int64_t now_ms, effects& out) {
  bool told = false;
  for (trip_effect& each : step(of.trip, what, now_ms * ms_in_ns)) {
    if (auto* order = std::get_if<command>(&each)) {
      out.push_back(std::move(*order));
      continue;
    }
    if (auto* back = std::get_if<read_back>(&each)) {
      out.push_back(std::move(*back));
      continue;
    }
    if (auto* again = std::get_if<read_detectors>(&each)) {
      out.push_back(std::move(*again));
      continue;
    }
    if (auto* text = std::get_if<tell>(&each)) {
      out.push_back(say{text->alarm, std::move(text->text)});
      told = true;
      continue;
    }
    if (auto* evidence = std::get_if<keep_evidence>(&each)) {
      out.push_back(*evidence);
      continue;
    }
    // Before the disk: the gate closes now.
    if (const auto* line = std::get_if<note>(&each); line->line.kind() != Latch::STEP_DONE) {
      if (line->line.kind() == Latch::LEAK_SEEN) {
        out.push_back(
            say{true, fmt::format("LEAK at {} detector {} ({}): latched, gate closed", line->line.device(),
                                  line->line.detector(), line->line.detail())});
      }
      told = true;
    }
    const std::size_t before = out.size();
    run_note(of, std::get<note>(each).line, out);
    if (told) out.insert(out.begin() + static_cast<std::ptrdiff_t>(before), publish{});
    told = false;
  }
  if (told) out.push_back(publish{});
}

void on_trip_requested(state& of, const trip_requested& what, std::int64_t now_ms, effects& out) {
  if (absl::Status status = check_reason(what.reason); !status.ok()) return refuse(out, what.request, status);
  if (!is_scope(of, what.scope)) {
    return refuse(out, what.request,
                  absl::NotFoundError(
                      fmt::format("{} is neither {} nor a tray of the arming record", what.scope, of.rack)));
  }
  const Cause cause = what.operator_socket ? EMERGENCY_STOP : REQUESTED;
  run_trips(of, trip_asked{cause, what.scope, fmt::format("{}: {}", what.principal, what.reason)}, now_ms,
            out);
  out.push_back(answer{what.request, absl::OkStatus(), {}});
}

void on_bypass_asked(state& of, const bypass_asked& what, std::int64_t now_ms, effects& out) {
  const device_state* device = find_device(of, what.device);
  const bool known = device != nullptr && std::count(device->spec.detectors().begin(),
                                                     device->spec.detectors().end(), what.detector) > 0;
  if (!known) {
    return refuse(out, what.request,
                  absl::NotFoundError(
                      fmt::format("the arming record has no detector {} of {}", what.detector, what.device)));
  }
  if (absl::Status status = check_reason(what.reason); !status.ok()) return refuse(out, what.request, status);
  if (what.length_s < 0 || what.length_s > bypass_max_s) {
    return refuse(
        out, what.request,
        absl::InvalidArgumentError(fmt::format("a bypass lasts 1 to {} s; 0 ends it", bypass_max_s)));
  }
  const std::int64_t until_ns = (now_ms + what.length_s * 1000) * ms_in_ns;
  run_trips(of,
            bypass_set{what.device, what.detector, what.principal, what.reason, until_ns,
                       what.wall_ns + what.length_s * s_in_ns},
            now_ms, out);
  out.push_back(answer{what.request, absl::OkStatus(), {}});
  out.push_back(publish{});
}

absl::Status check_reset(state& of, const reset_asked& what, std::int64_t now_ms) {
  if (absl::Status status = check_reason(what.reason); !status.ok()) return status;
  if (what.device == "*") {
    if (of.latch_file_trouble.empty()) return absl::NotFoundError("the latch file is sound");
    for (const auto& [name, device] : of.devices) {
      // A tray without a session (its shelf is off) cannot be asked; its own gate stays closed until it is
      // read dry, and what is latched of it stays latched.
      if (is_tray(device.spec) && !device.online) continue;
      if (absl::Status status = check_dry(of, name, now_ms); !status.ok()) return status;
    }
    return absl::OkStatus();
  }
  const bool rack = what.device == of.rack;
  const bool tripped = std::any_of(of.trip.open.begin(), of.trip.open.end(), [&what, rack](const auto& each) {
    return rack ? each.second.rack : each.second.scope == what.device;
  });
  if (of.latches.count(what.device) == 0 && !tripped)
    return absl::NotFoundError("no latch is open for " + what.device);
  if (absl::Status status = check_trips_closed(of, what.device); !status.ok()) return status;
  if (!rack) return check_dry_long(of, what.device, now_ms);
  for (const std::string& sensor : of.trip.plan.rack_sensors) {
    if (absl::Status status = check_dry_long(of, sensor, now_ms); !status.ok()) return status;
  }
  return absl::OkStatus();
}

std::optional<std::int64_t> next_due_ms(const state& of) {
  const auto due = next_due_ns(of.trip);
  return due.has_value() ? std::optional((*due + ms_in_ns - 1) / ms_in_ns) : std::nullopt;
}

}  // namespace busbar::interlock
