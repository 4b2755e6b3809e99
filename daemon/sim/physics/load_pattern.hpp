// What racks are asked to do over time, as a share of full load. A function of pattern, time and seed alone:
// any moment can be asked for in any order, and two racks with different seeds do not move together.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace busbar::sim::physics {

enum class load_pattern {
  idle,
  full,
  training,        // near full, all-reduce dips of 30-60 % at 1-4 Hz, a checkpoint pause every ten minutes
  inference,       // wanders between 35 and 85 % over minutes
  agentic,         // bursts of 5-40 s between idle spells
  idle_full_idle,  // 60 s idle, 120 s full, over and over
  day              // 24 h of 60 % mean, 30 % at night, 95 % at the peak
};

std::string_view name_of(load_pattern pattern);
const std::vector<load_pattern>& load_patterns();
std::optional<load_pattern> load_pattern_named(std::string_view name);
double load_share(load_pattern pattern, double at_s, std::uint64_t seed);

}  // namespace busbar::sim::physics
