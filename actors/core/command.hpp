// A mutation on its way from the edge to the actor that owns the target. One shape for all of them: the edge authorises and
// validates form, the operations actor answers once per request id, the owner decides.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "busbar/journal/event.pb.h"
#include "busbar/journal/plant.pb.h"
#include "busbar/journal/spec.pb.h"

namespace busbar::core {

struct command {
  std::string verb;        // manifest_apply, rack_bringup, rack_shutdown, node_retry, node_trust, bmc_release, bmc_unlock,
                           // operation_cancel, plant_apply, cdu_set, cdu_release
  std::string target;      // "r01", "r01/c07", "operations/12"
  std::map<std::string, std::string> arguments;   // from (step), pin, ...
  std::shared_ptr<const journal::RackSpec> spec;  // manifest_apply only, parsed and checked
  std::shared_ptr<const journal::PlantSpec> plant;  // plant_apply only, the same
  journal::Principal principal;
  std::string request_id;      // empty: the edge made one
  std::string request_digest;  // SHA-256 of the request's body
  std::string reason;
  bool validate_only = false;
};

struct command_result {
  std::string operation_id;    // empty: it was validate_only, or was done at once
  std::string message;
  std::map<std::string, std::string> changes;  // manifest_apply: key path -> "old -> new"
};

}  // namespace busbar::core
