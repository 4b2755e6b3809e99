#include "actors/rack/rack_commands.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "actors/core/errors.hpp"
#include "actors/core/mutant.hpp"
#include "actors/core/operations_logic.hpp"
#include "actors/manifest/spec_diff.hpp"
#include "actors/rack/rack_changes.hpp"

namespace busbar::rack {

using core::fault;

namespace {

absl::Status refuse_manifest(const core::command& what, const rack_state& state, bool busy) {
  if (what.spec == nullptr) return core::make_fault(fault::SPEC_INVALID, "the request carries no spec");
  if (what.spec->manifest().rack() != state.rack.name()) {
    return core::make_fault(fault::UNKNOWN_TARGET,
                            fmt::format("this daemon holds rack {}, the manifest is of rack {}",
                                        state.rack.name(), what.spec->manifest().rack()));
  }
  if (busy && !what.validate_only)
    return absl::UnavailableError("the rack is just writing its state; ask again");
  return refuse_member_changes(*what.spec, state.run.members);
}

// What has to be so before a BMC is handed back, and what to do where it is not.
absl::Status refuse_release(const core::command& what, const rack_state& state, const journal::Node& member) {
  const auto& own = state.run.member_operations;
  const std::string holder =
      own.contains(what.target) ? own.at(what.target) : std::string(state.rack.operation_id());
  if (!holder.empty()) {
    return core::make_fault(fault::OPERATION_CONFLICT,
                            fmt::format("{} is held by {}; wait for it, or cancel it", what.target,
                                        core::running_words(state.rack.name(), holder)));
  }
  if (member.hold() == journal::RELEASED) {
    return absl::FailedPreconditionError(
        fmt::format("the BMC of {} is handed back already; busbar node retry {} takes it over again",
                    what.target, what.target));
  }
  const auto seen = member.power().observed();
  const bool on = seen == journal::POWER_ON || seen == journal::POWERING_ON ||
                  member.power().wanted() == journal::POWER_ON;
  const bool has_host = node::is_switched(member);
  const bool rack_is_up = std::any_of(state.run.members.begin(), state.run.members.end(),
                                      [](const auto& row) { return !is_off(*row.second); });
  if (!has_host && rack_is_up) {
    return absl::FailedPreconditionError(fmt::format(
        "{} moves the rack's valves, and the rack is not read off. First: busbar rack shutdown {} "
        "--reason TEXT",
        what.target, state.rack.name()));
  }
  if (has_host && (member.step() >= journal::STAGED || on)) {
    // A shutdown ends with the shelves, and with them goes the standby power of every BMC.
    return absl::FailedPreconditionError(fmt::format(
        "{} is {} and its host is not read off; a BMC is handed back only then. First: busbar rack "
        "shutdown {} --reason TEXT. That turns the shelves off last, and a BMC without standby power answers "
        "nobody: turn a shelf's output on again at the shelf itself, see that the BMC answers, then release",
        what.target, member.step() == journal::PRODUCTION ? "in production" : "in use", state.rack.name()));
  }
  const journal::Access& access = member.access();
  const bool untouched = !access.account_created() && !access.interlock_account_created() &&
                         !access.factory_password_changed() && member.intents().empty();
  if (untouched) {
    return absl::FailedPreconditionError(
        fmt::format("the BMC of {} was never taken over: there is nothing to hand back", what.target));
  }
  return absl::OkStatus();
}

absl::Status refuse_tripped(const core::command& what, const rack_state& state,
                            const interlock::TripStatus& trip) {
  std::string waits;
  for (const std::string& each : trip.waits_for()) waits += (waits.empty() ? "" : ", ") + each;
  return core::make_fault(
      fault::TRIP_OPEN,
      fmt::format("{} was not begun: {}; {}. A person of busbar-safety resets it when it is done and dry: "
                  "busbar leak "
                  "reset {} --reason TEXT; then busbar rack bringup {}",
                  what.verb, trip_words(trip),
                  trip.closed() ? "it has done its work and is latched"
                                : "it is not done yet" + (waits.empty() ? "" : ", it waits for " + waits),
                  trip.scope(), state.rack.name()));
}

absl::Status refuse_member_command(const core::command& what, const rack_state& state) {
  if (what.verb == "node_trust" && is_cdu(what, state))
    return what.arguments.contains("pin") ? absl::OkStatus() : absl::InvalidArgumentError("no pin given");
  const auto found = state.run.members.find(what.target);
  if (found == state.run.members.end())
    return core::make_fault(fault::UNKNOWN_TARGET, fmt::format("no member {}", what.target));
  if (what.verb == "node_retry") {
    const auto* trip = trip_over(state.run.interlock.get(), state.rack.name(), what.target);
    if (trip != nullptr && node::is_switched(*found->second)) return refuse_tripped(what, state, *trip);

    const auto from = what.arguments.find("from");
    const bool has_from = from != what.arguments.end() && !from->second.empty();
    if (has_from && step_argument(what) < journal::DISCOVERED) {
      return absl::InvalidArgumentError(fmt::format("{} is not a step", from->second));
    }
    if (has_from && step_argument(what) > found->second->step() + 1) {
      return absl::InvalidArgumentError(
          fmt::format("retry goes only backwards: {} has not reached {}", what.target, from->second));
    }
    if (!has_from && !found->second->has_failure() && found->second->hold() == journal::HOLD_NONE) {
      return absl::FailedPreconditionError(
          fmt::format("{} has not failed; name a step with --from to repeat it", what.target));
    }
  }
  if (what.verb == "node_trust" && !what.arguments.contains("pin"))
    return absl::InvalidArgumentError("no pin given");
  if (what.verb == "node_trust" && found->second->identity().address().empty()) {
    return core::make_fault(
        fault::BMC_UNREACHABLE,
        fmt::format("no address of the BMC of {} is known: its certificate cannot be seen, and "
                    "an unseen one is not trusted",
                    what.target));
  }
  if (what.verb == "node_trust" && found->second->hold() != journal::HOLD_NONE) {
    return absl::FailedPreconditionError(fmt::format(
        "the BMC of {} is handed back: its next certificate is pinned when it is taken over", what.target));
  }
  if (what.verb == "bmc_release") return refuse_release(what, state, *found->second);
  return absl::OkStatus();
}

}  // namespace

bool is_cdu(const core::command& what, const rack_state& state) {
  return !what.target.empty() && what.target == state.rack.spec().manifest().cooling().cdu();
}

absl::Status refuse_command(const core::command& what, const rack_state& state, bool busy) {
  const bool to_apply = what.verb == "manifest_apply";
  if (!to_apply && !state.rack.has_spec()) {
    return core::make_fault(fault::UNKNOWN_TARGET,
                            fmt::format("rack {} has no manifest yet", state.rack.name()));
  }
  const bool changes_rack = to_apply || what.verb == "rack_bringup" || what.verb == "rack_shutdown";
  if (changes_rack && !what.validate_only &&
      (!state.rack.operation_id().empty() || !state.run.member_operations.empty())) {
    const std::string holder = state.rack.operation_id().empty() ? state.run.member_operations.begin()->second
                                                                 : state.rack.operation_id();
    return core::make_fault(fault::OPERATION_CONFLICT,
                            fmt::format("{} was not begun: rack {} is held by {}", what.verb,
                                        state.rack.name(), core::running_words(state.rack.name(), holder)));
  }
  if (what.verb == "rack_bringup") {
    if (const auto* trip = open_trip(state.run.interlock.get(), state.rack.name());
        trip != nullptr && !BUSBAR_MUTANT(trip_open_ignored_by_bringup))
      return refuse_tripped(what, state, *trip);
  }
  if (to_apply) return refuse_manifest(what, state, busy);
  if (what.verb == "node_retry" || what.verb == "node_trust" || what.verb == "bmc_unlock" ||
      what.verb == "bmc_release")
    return refuse_member_command(what, state);
  if (changes_rack) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format("a rack does not know {}", what.verb));
}

std::shared_ptr<const core::command_result> validated(const core::command& what, const journal::Rack& rack) {
  auto result = std::make_shared<core::command_result>();
  result->message = "valid; nothing was done";
  if (what.verb == "bmc_release") {
    result->message =
        "valid; nothing was done. It would set the manifest's factory password back, prove it by a login, "
        "delete "
        "Busbar's and the interlock's accounts, and drop the pin; the tray then waits at declared for an "
        "operator";
  }
  if (what.verb == "manifest_apply") result->changes = manifest::diff(rack.spec(), *what.spec);
  return result;
}

absl::Status refuse_trust(const core::command& what, const absl::StatusOr<devices::probe_facts>& shown) {
  const std::string& pin = what.arguments.at("pin");
  if (!shown.ok()) {
    const std::string why = fmt::format("the certificate of {} could not be seen, so none is trusted: {}",
                                        what.target, std::string(shown.status().message()));
    return core::make_fault(core::fault_of(shown.status()).value_or(fault::BMC_UNREACHABLE), why);
  }
  if (shown->certificate_sha256 == pin) return absl::OkStatus();
  return core::make_fault(
      fault::CERTIFICATE_CHANGED,
      fmt::format(
          "{} was to be trusted with {}, its BMC shows {} now; nothing was trusted. Find out which is right, "
          "then give the one that is shown",
          what.target, pin, shown->certificate_sha256),
      pin, shown->certificate_sha256);
}

std::shared_ptr<const core::command_result> accepted(const std::string& operation_id) {
  auto result = std::make_shared<core::command_result>();
  result->operation_id = operation_id;
  return result;
}

journal::NodeStep step_argument(const core::command& what) {
  const auto from = what.arguments.find("from");
  if (from == what.arguments.end()) return journal::NODE_STEP_UNSPECIFIED;
  std::string word = from->second;
  std::transform(word.begin(), word.end(), word.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  journal::NodeStep step = journal::NODE_STEP_UNSPECIFIED;
  return journal::NodeStep_Parse(word, &step) ? step : journal::NODE_STEP_UNSPECIFIED;
}

journal::Event spec_event(const journal::RackSpec& spec, const std::string& operation_id,
                          const journal::Principal& principal) {
  journal::Event event;
  event.set_object(spec.manifest().rack());
  event.set_kind("spec");
  event.set_type("spec_applied");
  event.set_severity("info");
  event.set_operation_id(operation_id);
  *event.mutable_principal() = principal;
  event.set_message(fmt::format("{} members, SKU {}, baseline {}", spec.manifest().members_size(),
                                spec.sku().name(), spec.baseline().name()));
  (*event.mutable_details())["digest"] = spec.digest();
  return event;
}

}  // namespace busbar::rack
