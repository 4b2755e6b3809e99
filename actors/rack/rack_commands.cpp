#include "actors/rack/rack_commands.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "actors/core/errors.hpp"
#include "actors/manifest/spec_diff.hpp"

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
  return absl::OkStatus();
}

absl::Status refuse_member_command(const core::command& what, const rack_state& state) {
  const auto found = state.run.members.find(what.target);
  if (found == state.run.members.end())
    return core::make_fault(fault::UNKNOWN_TARGET, fmt::format("no member {}", what.target));
  if (what.verb == "node_retry") {
    const auto from = what.arguments.find("from");
    const bool has_from = from != what.arguments.end() && !from->second.empty();
    if (has_from && step_argument(what) < journal::DISCOVERED) {
      return absl::InvalidArgumentError(fmt::format("{} is not a step", from->second));
    }
    if (has_from && step_argument(what) > found->second->step() + 1) {
      return absl::InvalidArgumentError(
          fmt::format("retry goes only backwards: {} has not reached {}", what.target, from->second));
    }
    if (!has_from && !found->second->has_failure()) {
      return absl::FailedPreconditionError(
          fmt::format("{} has not failed; name a step with --from to repeat it", what.target));
    }
  }
  if (what.verb == "node_trust" && !what.arguments.contains("pin"))
    return absl::InvalidArgumentError("no pin given");
  return absl::OkStatus();
}

}  // namespace

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
                            fmt::format("{} holds rack {}", holder, state.rack.name()));
  }
  if (to_apply) return refuse_manifest(what, state, busy);
  if (what.verb == "node_retry" || what.verb == "node_trust" || what.verb == "bmc_unlock")
    return refuse_member_command(what, state);
  if (what.verb == "bmc_release") {
    return absl::UnimplementedError(
        "giving a BMC back to its factory password is not built yet; do it on the BMC with the break-glass "
        "login");
  }
  if (changes_rack) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format("a rack does not know {}", what.verb));
}

std::shared_ptr<const core::command_result> validated(const core::command& what, const journal::Rack& rack) {
  auto result = std::make_shared<core::command_result>();
  result->message = "valid; nothing was done";
  if (what.verb == "manifest_apply") result->changes = manifest::diff(rack.spec(), *what.spec);
  return result;
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
