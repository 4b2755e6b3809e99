// Is a sensor to be believed? By range, age, rate of change and life (a sensor that never moves is frozen),
// each on its own; and the vote where three look at one thing. What does not pass leaves as bad, stale or
// unknown, never as a number.
#pragma once

#include <array>
#include <deque>
#include <optional>
#include <string>

#include "actors/plant/measurement.hpp"

namespace busbar::plant {

struct sensor_limits {
  double least = 0.0;
  double most = 100.0;
  instant max_age = std::chrono::seconds{3};
  double most_rate_per_s = 1e9;
  instant freeze_window = std::chrono::seconds{60};
  double freeze_spread =
      0.0;                   // less spread than this over the window is frozen; 0: this point may stand still
  int good_again_after = 3;  // readings in a row
};

enum class sensor_verdict { valid, no_value, out_of_range, stale, too_fast, frozen, recovering };
std::string_view name_of(sensor_verdict verdict);

struct sensor_state {
  std::optional<double> last;
  instant last_at{};
  instant judged_at{};  // of the newest reading judged: one that is read twice proves no life
  int good_in_row = 0;
  bool faulted = false;
  std::optional<double> window_low, window_high;
  instant window_since{};
};

struct validated {
  measurement reading;
  sensor_verdict verdict = sensor_verdict::no_value;
};

struct sensor_step {
  sensor_state state;
  validated outcome;
};

sensor_step step(const sensor_limits& limits, sensor_state state, const measurement& raw, instant now);

struct voted {
  measurement reading;
  int believed = 0;                    // of three
  std::optional<std::size_t> outlier;  // disagrees with the other two
};

// Median of three; the mean of two that agree; one alone is passed on, marked by believed = 1; two that
// contradict each other are unknown, because neither can be preferred.
voted vote(const std::array<measurement, 3>& readings, double tolerance, instant now, instant max_age);

}  // namespace busbar::plant
