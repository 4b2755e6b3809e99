#include "actors/plant/validation_logic.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace busbar::plant {

std::string_view name_of(sensor_verdict verdict) {
  switch (verdict) {
    case sensor_verdict::valid:
      return "valid";
    case sensor_verdict::no_value:
      return "no value";
    case sensor_verdict::out_of_range:
      return "out of range";
    case sensor_verdict::stale:
      return "stale";
    case sensor_verdict::too_fast:
      return "changes too fast";
    case sensor_verdict::frozen:
      return "frozen";
    case sensor_verdict::recovering:
      return "recovering";
  }
  return "?";
}

namespace {

// Two half windows would find it sooner; one whole window never calls a living sensor frozen.
bool frozen(const sensor_limits& limits, sensor_state& state, double value, instant at) {
  if (limits.freeze_spread <= 0) return false;
  if (!state.window_low) {
    state.window_low = state.window_high = value;
    state.window_since = at;
    return false;
  }
  state.window_low = std::min(*state.window_low, value);
  state.window_high = std::max(*state.window_high, value);
  if (*state.window_high - *state.window_low >= limits.freeze_spread) {
    state.window_low = state.window_high = value;
    state.window_since = at;
    return false;
  }
  return at - state.window_since >= limits.freeze_window;
}

sensor_verdict judge(const sensor_limits& limits, sensor_state& state, const measurement& raw, instant now) {
  if (raw.state == quality::stale) return sensor_verdict::stale;
  if (raw.state != quality::good || !std::isfinite(raw.value)) return sensor_verdict::no_value;
  if (raw.at > now || now - raw.at > limits.max_age) return sensor_verdict::stale;
  if (raw.value < limits.least || raw.value > limits.most) return sensor_verdict::out_of_range;
  const double gap_s = state.last ? seconds(raw.at - state.last_at) : 0.0;
  const bool too_fast =
      state.last && gap_s > 0 && std::abs(raw.value - *state.last) > limits.most_rate_per_s * gap_s;
  state.last = raw.value;
  state.last_at = raw.at;
  if (frozen(limits, state, raw.value, raw.at)) return sensor_verdict::frozen;
  return too_fast ? sensor_verdict::too_fast : sensor_verdict::valid;
}

}  // namespace

sensor_step step(const sensor_limits& limits, sensor_state state, const measurement& raw, instant now) {
  sensor_verdict verdict = judge(limits, state, raw, now);
  const bool fresh = raw.at > state.judged_at;
  if (verdict == sensor_verdict::valid) {
    if (fresh) ++state.good_in_row;
    if (state.faulted && state.good_in_row < limits.good_again_after) verdict = sensor_verdict::recovering;
    if (verdict == sensor_verdict::valid) state.faulted = false;
  } else {
    state.good_in_row = 0;
    state.faulted = true;
  }
  state.judged_at = std::max(state.judged_at, raw.at);
  validated outcome{raw, verdict};
  if (verdict == sensor_verdict::stale) outcome.reading.state = quality::stale;
  if (verdict == sensor_verdict::no_value) outcome.reading.state = quality::unknown;
  if (verdict != sensor_verdict::valid && verdict != sensor_verdict::stale &&
      verdict != sensor_verdict::no_value) {
    outcome.reading.state = quality::bad;
  }
  return {state, outcome};
}

voted vote(const std::array<measurement, 3>& readings, double tolerance, instant now, instant max_age) {
  struct seen {
    double value;
    std::size_t index;
  };
  std::vector<seen> believed;
  instant oldest = now;
  for (std::size_t index = 0; index < readings.size(); ++index) {
    const auto value = usable(readings[index], now, max_age);
    if (!value) continue;
    believed.push_back({*value, index});
    oldest = std::min(oldest, readings[index].at);
  }
  std::sort(believed.begin(), believed.end(), [](const seen& a, const seen& b) { return a.value < b.value; });
  voted result;
  result.believed = static_cast<int>(believed.size());
  if (believed.size() == 3) {
    const bool low_near = believed[1].value - believed[0].value <= tolerance;
    const bool high_near = believed[2].value - believed[1].value <= tolerance;
    if (!low_near && !high_near) return result;  // three opinions: no two agree
    if (!low_near) result.outlier = believed[0].index;
    if (!high_near) result.outlier = believed[2].index;
    result.reading = good(believed[1].value, oldest);
  } else if (believed.size() == 2) {
    if (believed[1].value - believed[0].value > tolerance) return result;
    result.reading = good(0.5 * (believed[0].value + believed[1].value), oldest);
  } else if (believed.size() == 1) {
    result.reading = good(believed[0].value, oldest);
  }
  return result;
}

}  // namespace busbar::plant
