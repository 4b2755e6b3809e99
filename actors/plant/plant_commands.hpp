// What may be asked of a plant: its declaration, and overrides of its CDUs. Pure.
#pragma once

#include <absl/status/statusor.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "actors/core/command.hpp"
#include "actors/core/journal_batch.hpp"
#include "actors/plant/plant_logic.hpp"
#include "actors/plant/plant_port.hpp"
#include "actors/plant/plant_record.hpp"

namespace busbar::plant {

using cdu_map = std::map<std::string, cdu_state>;

// verb cdu_set: supply_c, dp_kpa, lease_s among its arguments; who asks is the holder.
absl::StatusOr<override_wanted> override_of(const core::command& what, const std::string& operation);
// plant_apply, cdu_set, cdu_release: why not; OK where it may be done.
absl::Status refuse_command(const core::command& what, const std::string& instance, const cdu_map& cdus,
                            bool busy);
std::shared_ptr<const core::command_result> validated(const core::command& what, const cdu_map& cdus,
                                                      const journal::PlantSpec& stored);

struct declared_plant {
  journal::PlantSpec spec;
  std::vector<std::shared_ptr<const journal::Cdu>> cdus;
  std::vector<std::string> removed;
};
declared_plant declare_plant(const journal::PlantSpec& spec, const cdu_map& known,
                             const std::function<std::string()>& new_uuid);
// The batch that makes it durable, whole.
core::journal_batch batch_of(const declared_plant& plant, const core::command& what,
                             const std::string& operation);

// The CDU that feeds a rack; null: none of this plant does.
const cdu_state* feeds(const cdu_map& cdus, std::string_view rack);
plant_view view_of(const std::string& plant, const cdu_state& cdu, core::instant now);

}  // namespace busbar::plant
