// A CDU's readings as points of the board: "cdu01/supply", "cdu01/r01/flow", "cdu01/pump1/speed". Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "actors/core/reading_board.hpp"
#include "actors/devices/cdu.hpp"
#include "actors/plant/plant_logic.hpp"

namespace busbar::plant {

// Each point of the CDU, those that it did not give as unknown: what is gone is seen to be gone.
std::vector<core::named_reading> points_of(const std::string& cdu, const devices::cdu_facts& facts,
                                           std::int64_t wall_ns);
// What its racks ask for: "cdu01/r01/asked".
std::vector<core::named_reading> demand_points(const cdu_state& state, core::instant now);

}  // namespace busbar::plant
