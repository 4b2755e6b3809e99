// Shared by the two files of a valve's keeping: valve_keeping.cpp (steps) and valve_refusals.cpp (what a
// command may not do).
#pragma once

#include <optional>
#include <string>

#include "actors/valve/valve_keeping.hpp"

namespace busbar::valve {

inline instant monotonic(core::instant now) {
  return instant(now.monotonic_ns);
}

// Percent, as last read.
std::optional<double> position_of(const keeper& kept);
std::optional<double> number_in(const core::command& what, const std::string& key);
instant lease_of(const core::command& what);
// Against hosts that need the liquid, and against a trip.
absl::Status refuse_surroundings(const keeper& kept, double percent, const surroundings& around);

}  // namespace busbar::valve
