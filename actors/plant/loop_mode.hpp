// What every loop has in common: who moves the actuator, the bounded hold when a needed value is gone, and
// the step's length.
#pragma once

#include <algorithm>
#include <optional>
#include <string_view>

#include "actors/plant/measurement.hpp"

namespace busbar::plant {

enum class loop_mode {
  automatic,
  manual,    // a person, the BMS or a lapsing override moves the actuator; the loop follows it, ready to take
             // over without a bump
  holding,   // a needed value is invalid: the last output stays, for a bounded time
  fail_safe  // the hold has ended: the configured output
};

constexpr std::string_view name_of(loop_mode mode) {
  switch (mode) {
    case loop_mode::automatic:
      return "automatic";
    case loop_mode::manual:
      return "manual";
    case loop_mode::holding:
      return "holding";
    case loop_mode::fail_safe:
      return "fail-safe";
  }
  return "?";
}

struct loop_limits {
  instant max_age = std::chrono::seconds{3};  // three polls at 1 Hz
  instant hold = std::chrono::seconds{30};
};

// Automatic while everything needed is there, then holding, then fail-safe; back at once when it returns.
inline loop_mode hold_or_fail(std::optional<instant>& missing_since, bool complete, instant now,
                              instant hold) {
  if (complete) {
    missing_since.reset();
    return loop_mode::automatic;
  }
  if (!missing_since) missing_since = now;
  return now - *missing_since >= hold ? loop_mode::fail_safe : loop_mode::holding;
}

// Seconds since the last step; nominal for the first, bounded so that a late step does not integrate the gap.
inline double step_length_s(std::optional<instant>& last, instant now, double nominal_s) {
  const double dt = last && now > *last ? seconds(now - *last) : nominal_s;
  last = now;
  return std::min(dt, 3.0 * nominal_s);
}

}  // namespace busbar::plant
