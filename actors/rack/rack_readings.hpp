// What the rack itself is read to be, on the board: its coolant from the CDU. No state: nothing of it is
// stored.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>

#include "actors/core/reading_board.hpp"
#include "actors/plant/demand_logic.hpp"
#include "actors/devices/bmc.hpp"

namespace busbar::rack {

// "r01/flow", "r01/dp", "r01/supply_temperature", "r01/return_temperature". What the CDU did not say is
// unknown; what a CDU that does not answer said some seconds ago is stale.
void put_cooling(core::reading_board& board, const std::string& rack,
                 const absl::StatusOr<devices::cooling_facts>& facts, std::int64_t now_wall_ns);

// What the rack's demand on its plant is made of. board may be null: nothing is read.
plant::demand_inputs demand_inputs_of(const journal::Rack& rack, const core::reading_board* board);

}  // namespace busbar::rack
