#include "actors/plant/leak_suspicion_logic.hpp"

#include <algorithm>
#include <cmath>

#include "actors/plant/loop_mode.hpp"

namespace busbar::plant {

std::string_view name_of(leak_suspicion verdict) {
  switch (verdict) {
    case leak_suspicion::unknown:
      return "unknown";
    case leak_suspicion::none:
      return "none";
    case leak_suspicion::suspected:
      return "suspected";
  }
  return "?";
}

namespace {

// Least-squares slope a minute.
template <class Value>
double slope_per_min(const std::deque<loop_point>& points, Value value) {
  const instant first = points.front().at;
  double n = 0, t = 0, v = 0, tt = 0, tv = 0;
  for (const loop_point& point : points) {
    const double minutes = seconds(point.at - first) / 60.0;
    const double y = value(point);
    n += 1;
    t += minutes;
    v += y;
    tt += minutes * minutes;
    tv += minutes * y;
  }
  const double spread = n * tt - t * t;
  return spread > 0 ? (n * tv - t * v) / spread : 0.0;
}

struct losses {
  double k_per_min;
  double by_pressure;
  double by_level;
};

losses estimate(const leak_suspicion_limits& limits, const std::deque<loop_point>& points) {
  const double kelvin = slope_per_min(points, [](const loop_point& p) { return p.coolant_c; });
  const double shrinking =
      -limits.coolant_l * limits.expansion_per_k * kelvin;  // litres a minute that cooling takes
  const double kpa = slope_per_min(points, [](const loop_point& p) { return p.pressure_kpa; });
  const double level = slope_per_min(points, [](const loop_point& p) { return p.level; });
  // p V = const: V grows by -dp V / p, with V = constant / p.
  const double p = points.back().pressure_kpa;
  const double gas_l = limits.gas_l * limits.gas_at_kpa / p;
  return {kelvin, -kpa / p * gas_l - shrinking, -level * limits.vessel_l - shrinking};
}

// Also when the load is not known: it may have moved.
bool load_moves(const leak_suspicion_limits& limits, leak_suspicion_state& state, const measurement& load_kw,
                instant now) {
  const double dt_s = step_length_s(state.last, now, 1.0);
  const auto kw = usable(load_kw, now, limits.max_age);
  if (!kw) return true;
  state.lagged_kw =
      state.lagged_kw ? *kw + (*state.lagged_kw - *kw) * std::exp(-dt_s / limits.load_lag_s) : *kw;
  return std::abs(*kw - *state.lagged_kw) > limits.load_share * std::abs(*kw);
}

}  // namespace

leak_suspicion_step step(const leak_suspicion_limits& limits, leak_suspicion_state state,
                         const measurement& pressure_kpa, const measurement& level,
                         const measurement& coolant_c, const measurement& load_kw, instant now) {
  const auto pressure = usable(pressure_kpa, now, limits.max_age);
  const auto filled = usable(level, now, limits.max_age);
  const auto celsius = usable(coolant_c, now, limits.max_age);
  if (pressure && *pressure > 0 && filled && celsius) {
    if (state.points.empty() || now > state.points.back().at)
      state.points.push_back({now, *pressure, *filled, *celsius});
  }
  while (!state.points.empty() && now - state.points.front().at > limits.window) state.points.pop_front();
  leak_suspicion_outputs out;
  if (load_moves(limits, state, load_kw, now)) state.restless_at = now;
  const bool enough = state.points.size() >= limits.least_points &&
                      state.points.back().at - state.points.front().at >= limits.window / 2;
  if (enough) {
    const losses lost = estimate(limits, state.points);
    const double less = std::min(lost.by_pressure, lost.by_level);
    const double more = std::max(lost.by_pressure, lost.by_level);
    if (std::abs(lost.k_per_min) > limits.restless_k_per_min) state.restless_at = now;
    // Sensors see the coolant's mean temperature late: while it moves, shrinking and leaking look alike.
    const bool calm = !state.restless_at || now - *state.restless_at > limits.calm;
    if (calm) {
      out.loss_l_per_min = less;
      out.verdict = leak_suspicion::none;
    }
    if (calm && less >= limits.suspect_l_per_min && more <= limits.agreement * less) {
      if (!state.evidence_since) state.evidence_since = now;
      if (now - *state.evidence_since >= limits.confirm) state.evidence_at = now;
    } else {
      state.evidence_since.reset();
    }
  }
  // Once suspected it stays so through a gap in the readings: not knowing is no all-clear.
  if (state.evidence_at && now - *state.evidence_at <= limits.keep) out.verdict = leak_suspicion::suspected;
  return {state, out};
}

}  // namespace busbar::plant
