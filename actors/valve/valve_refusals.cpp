// What a valve is as declared and as stored, and what a command of it may not do.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "actors/core/errors.hpp"
#include "actors/valve/valve_keeping_parts.hpp"

namespace busbar::valve {

using core::fault;
using core::make_fault;

namespace {

constexpr double same_percent = 0.5;
constexpr instant pace = std::chrono::seconds(3);      // commit, request and poll, over the stroke itself
constexpr instant flow_lag = std::chrono::seconds(5);  // a flow meter follows the stem so much later

absl::Status as_status(const refusal& why) {
  switch (why.kind) {
    case refusal_kind::limit:
      return make_fault(fault::SETPOINT_LIMIT, why.text);
    case refusal_kind::held:
    case refusal_kind::no_lease:
      return make_fault(fault::LEASE_HELD, why.text);
    case refusal_kind::not_ours:
      return make_fault(fault::AUTHORITY_ELSEWHERE, why.text);
    case refusal_kind::malformed:
      break;
  }
  return absl::InvalidArgumentError(why.text);
}

const refusal* refused_by(const valve_step& made) {
  for (const effect& each : made.effects) {
    if (const auto* why = std::get_if<refusal>(&each)) return why;
  }
  return nullptr;
}

// Liquid is taken from the hosts: a shut isolation valve, a control valve below its floor.
bool takes_liquid(const valve_spec& spec, double percent) {
  if (spec.kind == valve_kind::isolation) return percent < 100.0 - same_percent;
  return percent <= same_percent || percent < 100.0 * spec.least;
}

bool opens(const keeper& kept, double percent) {
  const std::optional<double> from = position_of(kept);
  // Where it stands is not known: any opening may be one.
  return percent > same_percent && (!from || percent > *from + same_percent);
}

}  // namespace

std::optional<double> number_in(const core::command& what, const std::string& key) {
  const auto found = what.arguments.find(key);
  if (found == what.arguments.end()) return std::nullopt;
  double value = 0;
  const char* const end = found->second.data() + found->second.size();
  const auto [stopped, error] = std::from_chars(found->second.data(), end, value);
  return error == std::errc() && stopped == end && std::isfinite(value) ? std::optional(value) : std::nullopt;
}

instant lease_of(const core::command& what) {
  const std::optional<double> seconds = number_in(what, "lease_s");
  if (!seconds) return default_lease;
  return std::chrono::duration_cast<instant>(std::chrono::duration<double>(std::clamp(*seconds, -1.0, 1e6)));
}

std::optional<double> position_of(const keeper& kept) {
  if (kept.logic.last && kept.logic.last->position) return 100.0 * *kept.logic.last->position;
  return std::nullopt;
}

absl::Status refuse_surroundings(const keeper& kept, double percent, const surroundings& around) {
  if (opens(kept, percent) && !around.no_opening.empty()) {
    return make_fault(fault::TRIP_OPEN,
                      fmt::format("valve {} not opened to {:g} %: {}; a person resets the trip first, at the "
                                  "interlock's own socket",
                                  kept.record.name(), percent, around.no_opening));
  }
  if (takes_liquid(kept.spec, percent) && !around.hosts.empty()) {
    return make_fault(
        fault::COOLING_NEEDED,
        fmt::format("valve {} not put to {:g} %: these hosts are not read off and need its liquid: {}; turn "
                    "them off first (busbar rack shutdown)",
                    kept.record.name(), percent, fmt::join(around.hosts, ", ")));
  }
  return absl::OkStatus();
}

valve_spec spec_of(const std::string& name, const journal::ValveSpec& spec) {
  valve_spec made;
  made.name = name;
  made.kind = spec.kind() == "control" ? valve_kind::control : valve_kind::isolation;
  made.commanded_by = spec.authority() == "bms"      ? authority::bms
                      : spec.authority() == "device" ? authority::device
                                                     : authority::busbar;
  made.on_loss = spec.fail_position() == "open"     ? fail_position::open
                 : spec.fail_position() == "closed" ? fail_position::closed
                                                    : fail_position::in_place;
  made.least = spec.least_percent() / 100.0;
  made.most = spec.most_percent() > 0 ? spec.most_percent() / 100.0 : 1.0;
  const instant stroke =
      std::chrono::seconds(spec.stroke().seconds()) + std::chrono::nanoseconds(spec.stroke().nanos());
  if (stroke > instant::zero()) made.stroke = stroke;
  made.stroke += pace;
  if (spec.rated_lpm() > 0) {
    made.rated_lpm = spec.rated_lpm();
    made.stroke += flow_lag;
  }
  made.lost_after = 3 * poll_at_rest + poll_at_rest / 2;  // three polls missed
  return made;
}

journal::Valve declared_valve(const std::string& rack, const journal::ValveSpec& spec, std::string uid) {
  journal::Valve made;
  made.set_name(rack + "/" + spec.name());
  made.set_uid(std::move(uid));
  *made.mutable_spec() = spec;
  made.set_mode(std::string(name_of(valve_mode::automatic)));
  made.set_proof(std::string(name_of(proof::none)));
  made.set_condition(std::string(name_of(condition::unknown)));
  made.set_generation(1);
  return made;
}

namespace {

proof proof_named(std::string_view word) {
  for (const proof each : {proof::moving, proof::proven, proof::unproven, proof::failed}) {
    if (name_of(each) == word) return each;
  }
  return proof::none;
}

condition condition_named(std::string_view word) {
  for (const condition each : {condition::sound, condition::sticking, condition::stuck, condition::drifting,
                               condition::contradicted}) {
    if (name_of(each) == word) return each;
  }
  return condition::unknown;
}

}  // namespace

keeper begin_keeping(journal::Valve record, core::instant now) {
  keeper kept;
  kept.spec = spec_of(record.name(), record.spec());
  kept.logic.mode = valve_mode::automatic;
  if (record.has_lease()) {
    const instant left =
        std::min<instant>(instant(record.lease().until_wall_ns() - now.wall_ns), kept.spec.most_lease);
    kept.logic.held = lease{record.lease().holder(), record.lease().reason(), monotonic(now) + left};
    kept.logic.mode = valve_mode::manual;
  }
  if (record.has_commanded_percent()) {
    command given;
    given.opening = record.commanded_percent() / 100.0;
    given.id = record.intents().empty() ? std::string() : record.intents(0).id();
    given.at = monotonic(now);
    kept.logic.given = given;
    // One whose operation has ended is judged by what is read, and asked no more.
    kept.may_repeat = !record.intents().empty() && proof_named(record.proof()) == proof::moving;
    kept.logic.proven = kept.may_repeat ? proof::moving : proof_named(record.proof());
    if (!kept.may_repeat) kept.logic.seen = condition_named(record.condition());
  }
  for (const journal::Condition& row : record.conditions()) {
    if (row.type() == "TRIP_OPEN") kept.trip_seen = row.message();
  }
  kept.record = std::move(record);
  return kept;
}

absl::Status refuse(const keeper& kept, const core::command& what, const surroundings& around,
                    core::instant now) {
  const std::string& holder = what.principal.name();
  if (what.reason.empty() && !what.validate_only)
    return absl::InvalidArgumentError(fmt::format("{} of {} needs a reason", what.verb, what.target));
  if (what.verb == "valve_release") {
    const valve_step released = step(kept.spec, kept.logic, release_lease{holder}, monotonic(now));
    const refusal* const why = refused_by(released);
    return why == nullptr ? absl::OkStatus() : as_status(*why);
  }
  if (what.verb != "valve_set")
    return absl::InvalidArgumentError(fmt::format("a valve does not know {}", what.verb));
  const std::optional<double> percent = number_in(what, "opening_percent");
  if (!percent) return absl::InvalidArgumentError("opening_percent is no number");
  if (kept.spec.commanded_by == authority::bms) {
    return make_fault(
        fault::AUTHORITY_ELSEWHERE,
        fmt::format("valve {} is commanded by the BMS; nothing was asked. Ask there, or change its "
                    "authority in the manifest",
                    kept.record.name()));
  }
  const std::string reason = what.reason.empty() ? "asked only" : what.reason;
  const valve_step leased =
      step(kept.spec, kept.logic, take_lease{holder, reason, lease_of(what)}, monotonic(now));
  if (const refusal* const why = refused_by(leased)) return as_status(*why);
  if (const auto why = may_move(kept.spec, leased.state, holder, *percent / 100.0, monotonic(now)))
    return as_status(*why);
  return refuse_surroundings(kept, *percent, around);
}

std::string would_do(const keeper& kept, const core::command& what, const surroundings& around) {
  const journal::ValveSpec& spec = kept.record.spec();
  const std::string hosts = around.hosts.empty()
                                ? "all hosts of the rack are read off"
                                : fmt::format("{} hosts of the rack are on or unknown", around.hosts.size());
  if (what.verb == "valve_release")
    return fmt::format("valid; nothing was done. It would give {} back; fail position {}", kept.record.name(),
                       spec.fail_position());
  const std::optional<double> from = position_of(kept);
  const std::string at = from ? fmt::format("{:.1f} %", *from) : "an unknown position";
  return fmt::format(
      "valid; nothing was done. It would move {} valve {} behind {} from {} to {:g} % and hold it for {} for "
      "{} s; {}",
      spec.kind(), kept.record.name(), spec.member(), at, number_in(what, "opening_percent").value_or(0),
      what.principal.name(), std::chrono::duration_cast<std::chrono::seconds>(lease_of(what)).count(), hosts);
}

bool shuts_off(const journal::Valve& valve) {
  if (!valve.has_commanded_percent()) {
    // Never commanded by us: what was last proven, if anything was, says where it stands.
    return valve.has_proven_percent() &&
           takes_liquid(spec_of(valve.name(), valve.spec()), valve.proven_percent());
  }
  return takes_liquid(spec_of(valve.name(), valve.spec()), valve.commanded_percent());
}

}  // namespace busbar::valve
