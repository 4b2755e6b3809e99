// CAPS: the thin shell of cap_keeping. Looks at the board of readings twice a second, tells trays their GPUs'
// limit through their own drivers, and keeps operators' limits in the journal. What the bands decide is no
// state: it is told, read back, and told again. Owner: the rack, which ends it.
#pragma once

#include <caf/fwd.hpp>

#include <functional>
#include <memory>

#include "actors/core/journal_interface.hpp"
#include "actors/core/reading_board.hpp"
#include "actors/core/snapshot_hub.hpp"
#include "actors/shelf/cap_interface.hpp"

namespace busbar::shelf {

struct cap_dependencies {
  core::journal_actor journal;
  core::operations_actor operations;
  std::shared_ptr<const core::snapshot_hub> hub;
  std::shared_ptr<const core::reading_board> board;
  std::function<core::instant()> clock;
  std::function<void(condition_judged)> tell;  // the rack's conditions
  cap_setting setting;
};

cap_actor spawn_caps(caf::actor_system& system, cap_dependencies dependencies);

}  // namespace busbar::shelf
