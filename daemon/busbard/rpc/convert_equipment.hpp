// Valves and PDUs from the state to their public form, with what the board has of them now. What is not known is
// absent or UNKNOWN, never zero.
#pragma once

#include <cstdint>

#include "actors/core/reading_board.hpp"
#include "busbar/journal/state.pb.h"
#include "busbar/v1/cooling.pb.h"

namespace busbar::rpc {

// board may be null: no readings.
v1::Valve valve_to_v1(const journal::Valve& valve, std::uint64_t revision, const core::reading_board* board);
v1::Pdu pdu_to_v1(const journal::Pdu& pdu, std::uint64_t revision, const core::reading_board* board);
v1::Reading reading_to_v1(const core::reading& from);

}  // namespace busbar::rpc
