#include "daemon/cli/leaking.hpp"

#include <fmt/format.h>
#include <google/protobuf/util/time_util.h>

#include <algorithm>
#include <array>

#include "actors/manifest/names.hpp"
#include "actors/rack/interlock_operator.hpp"
#include "daemon/cli/reading.hpp"
#include "daemon/cli/table.hpp"

namespace busbar::cli {
namespace {

constexpr auto longest_bypass = std::chrono::hours(8);

// Conditions of a rack that speak of water, of what watches for it, or of what it did.
constexpr auto conditions_shown = std::to_array<std::string_view>(
    {"TRIP_OPEN", "LEAK_SUSPECTED", "BYPASSED", "RACK_DETECTORS_DRY", "INTERLOCK_ARMED",
     "INTERLOCK_RECORD_CURRENT", "INTERLOCK_RECORD_REFUSED", "INTERLOCK_LATCHES_KEPT", "INTERLOCK_REACHES"});

bool is_shown(const v1::Condition& row) {
  return row.health() != v1::HEALTH_GOOD &&
         std::find(conditions_shown.begin(), conditions_shown.end(), row.type()) != conditions_shown.end();
}

exit_code judge(const v1::LeakDetector& detector) {
  if (detector.verdict() == v1::Detector::LEAK || detector.latched()) return exit_code::no;
  if (!detector.bypass().empty()) return exit_code::no;
  return detector.verdict() == v1::Detector::DRY ? exit_code::done : exit_code::unknown;
}

// ---- at the interlock itself

// What is no fault of the command stands against it now: wet, not dry for long enough, not done, nothing
// latched.
exit_code code_of(const absl::Status& status) {
  if (status.ok()) return exit_code::done;
  if (absl::IsPermissionDenied(status) || absl::IsUnauthenticated(status)) return exit_code::not_permitted;
  if (absl::IsInvalidArgument(status)) return exit_code::usage;
  if (absl::IsDeadlineExceeded(status)) return exit_code::timeout;
  return absl::IsUnavailable(status) ? exit_code::unreachable : exit_code::conflict;
}

struct place {
  std::string instance;
  std::string device;  // as the interlock calls it
};

// r01 -> r01, r01; r01/c07 -> r01, r01/c07; r01/* -> r01, *; r01/cdu01 -> r01, cdu01.
std::optional<place> place_of(const std::string& name) {
  const std::size_t slash = name.find('/');
  if (name.empty() || slash == 0 || name.find("..") != std::string::npos) return std::nullopt;
  const std::string instance = name.substr(0, slash);
  if (slash == std::string::npos) return place{instance, instance};
  const std::string rest = name.substr(slash + 1);
  if (rest.empty() || rest.find('/') != std::string::npos) return std::nullopt;
  if (rest == "*") return place{instance, "*"};
  const auto full = manifest::long_name(name);
  const bool member = full.has_value() && full->find("/valves/") == std::string::npos;
  return place{instance, member ? name : rest};
}

std::string socket_of(const context& world, const std::string& instance) {
  return (world.run_dir / instance / "operator.sock").string();
}

exit_code tell(context& world, const std::string& what, const absl::Status& status) {
  world.err << fmt::format("busbar: {} was not done: {}\n", what, std::string(status.message()));
  if (absl::IsUnavailable(status))
    world.err
        << "  next      systemctl status busbar-interlock@INSTANCE, on the rack's own management host\n";
  return code_of(status);
}

bool may_go_on(const options& said, context& world, const std::string& question) {
  if (said.yes) return true;
  if (!world.in_is_terminal) {
    world.err << fmt::format("busbar: {} needs --yes where nobody can be asked\n", question);
    return false;
  }
  world.err << fmt::format("{}? [y/N] ", question) << std::flush;
  std::string line;
  std::getline(world.in, line);
  if (line == "y" || line == "yes") return true;
  world.err << "busbar: nothing was done\n";
  return false;
}

exit_code needs_reason(context& world, const std::string& what) {
  world.err << fmt::format(
      "busbar: {} needs --reason TEXT: it stands in the interlock's record and in the events\n", what);
  return exit_code::usage;
}

const interlock::DeviceStatus* device_of(const interlock::Status& status, const std::string& name) {
  const auto found = std::find_if(status.devices().begin(), status.devices().end(),
                                  [&name](const auto& row) { return row.name() == name; });
  return found == status.devices().end() ? nullptr : &*found;
}

// What stands against a reset, as far as one look shows it; the interlock decides.
absl::Status look_at_reset(const interlock::Status& status, const place& at, std::string& found) {
  if (at.device == "*") {
    if (status.latch_file_ok()) return absl::NotFoundError("the latch file is sound");
    found = "lost lines are acknowledged: " + status.reason();
    return absl::OkStatus();
  }
  for (const interlock::TripStatus& trip : status.open_trips()) {
    if (trip.scope() != at.device) continue;
    std::string waits;
    for (const std::string& each : trip.waits_for()) waits += (waits.empty() ? "" : ", ") + each;
    if (!trip.closed())
      return absl::FailedPreconditionError(
          fmt::format("trip {} is not done, it waits for {}", trip.number(), waits));
    found = fmt::format("trip {} is reset: {}", trip.number(), trip.detail());
  }
  for (const interlock::Latch& latch : status.latches()) {
    if (latch.device() == at.device && found.empty())
      found = fmt::format("the latch of {} is reset, detector {}", latch.device(), latch.detector());
  }
  if (found.empty()) return absl::NotFoundError("no latch and no trip is open for " + at.device);
  return absl::OkStatus();
}

}  // namespace

exit_code leak_status(session& with) {
  const auto names = with.names();
  if (!names) return exit_code::usage;
  exit_code code = exit_code::done;
  const listing detectors = gather(with, info_of(kind::detectors), *names, code);
  const listing racks = gather(with, info_of(kind::racks), *names, code);
  for (const auto& item : detectors.items)
    code = worst(code, judge(dynamic_cast<const v1::LeakDetector&>(*item)));
  if (detectors.items.empty()) code = worst(code, exit_code::unknown);
  std::vector<row> rows{{"RACK", "WHAT", "SINCE", "WHY"}};
  std::string trips;
  for (const auto& item : racks.items) {
    const auto& rack = dynamic_cast<const v1::Rack&>(*item);
    for (const v1::Condition& condition : rack.conditions()) {
      if (!is_shown(condition)) continue;
      code = worst(code, exit_code::no);
      rows.push_back({manifest::short_name(rack.name()), condition.type(),
                      age_text(condition.since(), condition.has_since(), with.world().now()),
                      condition.message()});
    }
    const auto said = rack.status().facts().find("trips");
    if (said != rack.status().facts().end())
      trips += manifest::short_name(rack.name()) + " " + said->second + "\n";
  }
  const output format = with.said().format;
  if (format != output::table && format != output::wide) {
    print(with, kind::detectors, detectors);
    return worst({code, exit_code_of(detectors), exit_code_of(racks)});
  }
  listing not_plain;
  for (const auto& item : detectors.items) {
    if (judge(dynamic_cast<const v1::LeakDetector&>(*item)) == exit_code::done) continue;
    not_plain.items.emplace_back(item->New())->CopyFrom(*item);
  }
  with.say(fmt::format("{} detectors, {} known dry and watched", detectors.items.size(),
                       detectors.items.size() - not_plain.items.size()));
  if (rows.size() > 1) with.world().out << aligned(rows);
  for (const auto& silent : detectors.unreachable) not_plain.unreachable.push_back(silent);
  if (!not_plain.items.empty() || !not_plain.unreachable.empty()) print(with, kind::detectors, not_plain);
  with.world().out << trips;
  return worst({code, exit_code_of(detectors), exit_code_of(racks)});
}

exit_code leak_reset(const options& said, context& world) {
  if (said.reason.empty() && !said.dry_run) return needs_reason(world, "leak reset");
  exit_code code = exit_code::done;
  for (const std::string& name : said.names) {
    const auto at = place_of(name);
    if (!at) {
      world.err << fmt::format("busbar: '{}' is no name (r01/c07, r01, \"r01/*\")\n", name);
      return exit_code::usage;
    }
    const std::string what = "reset of " + name;
    const auto status = interlock::read_status(socket_of(world, at->instance));
    if (!status.ok()) {
      code = worst(code, tell(world, what, status.status()));
      continue;
    }
    std::string found;
    if (const absl::Status against = look_at_reset(*status, *at, found); !against.ok()) {
      code = worst(code, tell(world, what, against));
      continue;
    }
    if (said.dry_run) {
      world.err << fmt::format("busbar: {}: {}; nothing was done\n", name, found);
      continue;
    }
    if (!may_go_on(said, world, fmt::format("{} ({})", what, found))) return exit_code::usage;
    interlock::Request request;
    request.mutable_reset()->set_device(at->device);
    request.mutable_reset()->set_reason(said.reason);
    const absl::Status done = interlock::ask_operator(socket_of(world, at->instance), request);
    if (!done.ok()) {
      code = worst(code, tell(world, what, done));
      continue;
    }
    world.out << fmt::format("{}: {}\n", name, found);
    world.err << fmt::format(
        "  next      busbar rack bringup {}; a tray whose own leak was reset: busbar node retry NAME\n",
        at->instance);
  }
  return code;
}

exit_code leak_bypass(const options& said, context& world) {
  if (said.names.size() != 2) {
    world.err << "busbar: leak bypass takes a member and one of its detectors: busbar leak bypass r01/c07 "
                 "0_Manifold --for 4h "
                 "--reason TEXT\n";
    return exit_code::usage;
  }
  if (said.reason.empty() && !said.dry_run) return needs_reason(world, "leak bypass");
  if ((said.length.count() == 0) == !said.end) {
    world.err << "busbar: leak bypass needs --for DURATION (at most 8h), or --end\n";
    return exit_code::usage;
  }
  if (said.length > longest_bypass) {
    world.err << "busbar: a bypass lasts 8h at most\n";
    return exit_code::usage;
  }
  const auto at = place_of(said.names[0]);
  if (!at || at->device == "*" || at->device == at->instance) {
    world.err << fmt::format("busbar: '{}' is no member with detectors (r01/c07, r01/cdu01)\n",
                             said.names[0]);
    return exit_code::usage;
  }
  const std::string what = fmt::format("bypass of {} of {}", said.names[1], said.names[0]);
  const auto status = interlock::read_status(socket_of(world, at->instance));
  if (!status.ok()) return tell(world, what, status.status());
  const interlock::DeviceStatus* const device = device_of(*status, at->device);
  if (device == nullptr)
    return tell(world, what, absl::InvalidArgumentError("the interlock's record has no " + at->device));
  const std::string seconds =
      std::to_string(std::chrono::duration_cast<std::chrono::seconds>(said.length).count());
  const std::string words = said.end ? "its bypass ends: it is judged again"
                                     : fmt::format("for {} s it neither trips nor blocks power-on", seconds);
  if (said.dry_run) {
    world.err << fmt::format("busbar: {}: {}; nothing was done\n", what, words);
    return exit_code::done;
  }
  if (!may_go_on(said, world, fmt::format("{} ({})", what, words))) return exit_code::usage;
  interlock::Request request;
  request.mutable_bypass()->set_device(at->device);
  request.mutable_bypass()->set_detector(said.names[1]);
  request.mutable_bypass()->set_reason(said.reason);
  request.mutable_bypass()->set_length_s(std::stoull(seconds));
  if (const absl::Status done = interlock::ask_operator(socket_of(world, at->instance), request); !done.ok())
    return tell(world, what, done);
  world.out << fmt::format("{} {}: {}\n", said.names[0], said.names[1], words);
  return exit_code::done;
}

}  // namespace busbar::cli
