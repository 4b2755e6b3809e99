// VALVE: the thin shell of valve_keeping. Owns one valve's state and reads it every second, four times a
// second while it moves; commits, then acts. Sends: batches to JOURNAL, ends to OPERATIONS, readings to the
// board. On a refused commit: keeps the batch and tries again. Owner: the rack, which ends it.
#pragma once

#include <caf/fwd.hpp>

#include <functional>
#include <memory>

#include "actors/core/journal_interface.hpp"
#include "actors/core/reading_board.hpp"
#include "actors/valve/valve_interface.hpp"

namespace busbar::valve {

struct valve_dependencies {
  core::journal_actor journal;
  core::operations_actor operations;
  std::shared_ptr<core::reading_board> board;  // null: readings go nowhere
  std::function<core::instant()> clock;
  std::function<surroundings()> look;  // any thread; as the journal and the interlock know it
  std::function<void(std::shared_ptr<const journal::Valve>)> tell;  // after each commit
  std::function<void()> want_session;                               // its controller cannot be read: open one
};

valve_actor spawn_valve(caf::actor_system& system, valve_dependencies dependencies, journal::Valve stored);

}  // namespace busbar::valve
