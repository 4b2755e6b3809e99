#include "actors/plant/differential_pressure_logic.hpp"

#include <algorithm>
#include <cmath>

namespace busbar::plant {

namespace {

// Head each pump must make, as the square of speed, for this pressure and flow shared by so many.
double square_of_speed(const differential_pressure_gains& gains, double dp_kpa, double flow_lpm,
                       double pumps) {
  const double each = flow_lpm / pumps;
  return (dp_kpa + gains.cdu_kpa_per_lpm2 * flow_lpm * flow_lpm + gains.droop_kpa_per_lpm2 * each * each) /
         gains.shutoff_kpa;
}

std::size_t count_running(const std::vector<pump_input>& pumps, std::size_t known_before) {
  std::size_t running = 0;
  std::size_t unknown = 0;
  for (const pump_input& each : pumps) {
    running += each.running == true ? 1 : 0;
    unknown += each.running.has_value() ? 0 : 1;
  }
  // A pump whose state is not known keeps the count it had: no step on a lost message.
  return std::max(running, std::min(known_before, running + unknown));
}

std::optional<double> mean_speed(const differential_pressure_inputs& inputs, instant now, instant age) {
  double sum = 0;
  std::size_t known = 0;
  for (const pump_input& each : inputs.pumps) {
    const auto speed = usable(each.speed, now, age);
    if (each.running != true || !speed) continue;
    sum += *speed;
    ++known;
  }
  return known > 0 ? std::optional(sum / static_cast<double>(known)) : std::nullopt;
}

void follow(const differential_pressure_gains& gains, differential_pressure_state& state, double speed,
            double error, double ff) {
  state.speed = speed;
  pi_gains scaled = gains.head;
  scaled.kp /= gains.shutoff_kpa;
  pi_track(scaled, state.head, speed * speed, error, ff);
}

// The others take over what the lost one gave: exact on the nameplate's curve, from where they are now.
double step_up(const differential_pressure_gains& gains, const differential_pressure_state& state,
               std::size_t before, std::size_t after) {
  const auto was = static_cast<double>(before);
  const auto is = static_cast<double>(after);
  if (!state.flow_lpm) return state.speed * was / is;
  const double more =
      gains.droop_kpa_per_lpm2 * *state.flow_lpm * *state.flow_lpm * (1.0 / (is * is) - 1.0 / (was * was));
  return std::sqrt(state.speed * state.speed + more / gains.shutoff_kpa);
}

}  // namespace

differential_pressure_step step(const differential_pressure_gains& gains, differential_pressure_state state,
                                const differential_pressure_inputs& inputs, instant now) {
  const double dt_s = step_length_s(state.last, now, gains.period_s);
  const instant age = gains.limits.max_age;
  const auto dp = usable(inputs.dp_kpa, now, age);
  const auto flow = usable(inputs.flow_lpm, now, age);
  if (flow && *flow >= 0) {
    const double keep = std::exp(-dt_s / gains.flow_filter_s);
    state.flow_lpm = state.flow_lpm ? *flow + (*state.flow_lpm - *flow) * keep : *flow;
  }
  const auto asked = usable(inputs.asked_lpm, now, age);
  double coming_lpm = state.flow_lpm.value_or(0.0);
  if (asked) {
    const double keep = std::exp(-dt_s / gains.asked_answer_s);
    state.answered_lpm = state.answered_lpm ? *asked + (*state.answered_lpm - *asked) * keep : *asked;
    coming_lpm = std::max(0.0, coming_lpm + *asked - *state.answered_lpm);
  }
  const std::size_t before = state.running;
  state.running = count_running(inputs.pumps, before);
  differential_pressure_outputs out;
  out.running = state.running;
  out.mode = hold_or_fail(state.missing_since, dp.has_value() && state.running > 0, now, gains.limits.hold);
  if (!inputs.automatic) out.mode = loop_mode::manual;
  const auto pumps = static_cast<double>(std::max<std::size_t>(state.running, 1));
  const double before_kpa = state.reference_kpa.value_or(inputs.set_point_kpa);
  state.reference_kpa =
      inputs.set_point_kpa + (before_kpa - inputs.set_point_kpa) * std::exp(-dt_s / gains.answer_s);
  const double error = dp ? *state.reference_kpa - *dp : 0.0;
  const double ff = square_of_speed(gains, inputs.set_point_kpa, coming_lpm, pumps);

  if (out.mode == loop_mode::manual || !state.head.primed) {
    if (const auto speed = mean_speed(inputs, now, age)) follow(gains, state, *speed, error, ff);
    out.speed = state.head.primed ? state.speed : gains.fail_safe_speed;
    if (out.mode == loop_mode::manual || !state.head.primed) return {state, out};
  }
  if (before > state.running && state.running > 0) {
    const double speed = std::min(gains.most_speed, step_up(gains, state, before, state.running));
    follow(gains, state, speed, 0.0, ff);
    state.wait_until = now + from_seconds(gains.settle_s);
    out.stepped = true;
  } else if (out.mode == loop_mode::fail_safe) {
    follow(gains, state, gains.fail_safe_speed, 0.0, ff);
  } else if (out.mode == loop_mode::automatic && !(state.wait_until && now < *state.wait_until)) {
    pi_gains scaled = gains.head;
    scaled.kp /= gains.shutoff_kpa;
    if (state.wait_until) state.head.integral += gains.catch_up * error / gains.shutoff_kpa;
    state.wait_until.reset();
    const double reach = gains.rate_per_s * dt_s;
    scaled.low = std::pow(std::max(gains.least_speed, state.speed - reach), 2);
    scaled.high = std::pow(std::min(gains.most_speed, state.speed + reach), 2);
    state.speed = std::sqrt(pi_step(scaled, state.head, error, ff, dt_s));
  }
  out.speed = state.speed;
  out.saturated = state.speed >= gains.most_speed && error > 0;
  return {state, out};
}

}  // namespace busbar::plant
