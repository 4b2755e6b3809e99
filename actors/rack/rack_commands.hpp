// What a rack accepts, and the words it answers with. CAF-free.
#pragma once

#include <absl/status/status.h>

#include <memory>
#include <string>

#include "actors/core/command.hpp"
#include "actors/rack/rack_logic.hpp"

namespace busbar::rack {

// OK: the command may begin. busy: a commit of this rack is under way.
absl::Status refuse_command(const core::command& what, const rack_state& state, bool busy);

// The answer to validate_only: what would change.
std::shared_ptr<const core::command_result> validated(const core::command& what, const journal::Rack& rack);
// The CDU may be trusted anew like a BMC: by its name in the manifest.
bool is_cdu(const core::command& what, const rack_state& state);
// A pin is trusted only if the BMC shows that very certificate now.
absl::Status refuse_trust(const core::command& what, const absl::StatusOr<devices::probe_facts>& shown);

std::shared_ptr<const core::command_result> accepted(const std::string& operation_id);

// The step of `node retry --from`, unspecified when none or not a step.
journal::NodeStep step_argument(const core::command& what);

journal::Event spec_event(const journal::RackSpec& spec, const std::string& operation_id,
                          const journal::Principal& principal);

}  // namespace busbar::rack
