// OPERATIONS: answers each command once, makes its Operation durable, hands it to the owner, writes down what the owner reports.
#pragma once

#include <caf/typed_event_based_actor.hpp>

#include <chrono>
#include <functional>
#include <memory>

#include "actors/core/clock.hpp"
#include "actors/core/journal_interface.hpp"
#include "actors/core/operations_interface.hpp"
#include "actors/core/operations_logic.hpp"
#include "actors/core/snapshot_hub.hpp"

namespace busbar::core {

struct operations_dependencies {
  journal_actor journal;
  std::shared_ptr<const snapshot_hub> hub;
  std::function<instant()> clock;  // called on the actor's own turn; tests own it
};

// Its one timer: deadlines of operations, commits that the journal refused.
constexpr auto operations_tick = std::chrono::seconds(1);

// Stop: send it stop_atom and await its end.
operations_actor spawn_operations(caf::actor_system& system, operations_dependencies dependencies, operations_config config);

}  // namespace busbar::core
