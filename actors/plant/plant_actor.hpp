// PLANT: the thin shell of plant_logic. Reads each CDU once a second, commits, then acts. On a refused
// commit: keeps the batch and tries again; meanwhile nothing is written to any CDU, and racks are still
// answered by what is read.
#pragma once

#include <absl/status/statusor.h>
#include <caf/fwd.hpp>

#include <functional>
#include <memory>
#include <string>

#include "actors/core/journal_interface.hpp"
#include "actors/core/reading_board.hpp"
#include "actors/core/snapshot_hub.hpp"
#include "actors/plant/plant_interface.hpp"

namespace busbar::plant {

struct plant_dependencies {
  core::journal_actor journal;
  core::operations_actor operations;
  std::shared_ptr<const core::snapshot_hub> hub;  // read once, at the start, for what is stored
  std::shared_ptr<devices::cdu_factory> drivers;
  std::function<absl::StatusOr<devices::credentials>(const journal::FactoryLogin&)> login_of;
  std::shared_ptr<core::reading_board> board;
  std::function<core::instant()> clock;
  std::function<std::string()> new_uuid;
  std::string instance;  // "plant1"
};

plant_actor spawn_plant(caf::actor_system& system, plant_dependencies dependencies);

}  // namespace busbar::plant
