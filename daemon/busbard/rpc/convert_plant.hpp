// A CDU as its plant keeps it, with what the board has of it now, in its public form.
#pragma once

#include <cstdint>

#include "actors/core/reading_board.hpp"
#include "busbar/journal/plant.pb.h"
#include "busbar/v1/cooling.pb.h"

namespace busbar::rpc {

// board may be null: no readings.
v1::Cdu cdu_to_v1(const journal::Cdu& cdu, std::uint64_t revision, const core::reading_board* board);

}  // namespace busbar::rpc
