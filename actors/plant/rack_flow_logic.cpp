#include "actors/plant/rack_flow_logic.hpp"

#include <algorithm>
#include <cmath>

namespace busbar::plant {

namespace {

constexpr double steady_kw_share = 0.05;
constexpr double steady_for_trim_s = 60.0;

void filter(std::optional<double>& into, std::optional<double> value, double tau_s, double dt_s) {
  if (!value) return;
  into = into ? *value + (*into - *value) * std::exp(-dt_s / tau_s) : *value;
}

double pipe_square(const rack_flow_gains& gains) {
  return gains.pipe_kpa / (gains.rated_lpm * gains.rated_lpm);
}

bool sticking(const rack_flow_gains& gains, const rack_flow_state& state) {
  return resting_band(gains.position, state.position) > gains.position.dead_band;
}

double trimmed(const rack_flow_gains& gains, rack_flow_state& state, std::optional<double> back,
               double target, double dt_s) {
  // The trim sees the return minutes late; it moves only while power has been steady, and never while a limit
  // holds the flow.
  const bool free = target > gains.floor_share * gains.rated_lpm && target < gains.most_lpm;
  // A valve that moves in jumps cannot follow it, and its return says how far it is off, not what the map
  // lacks.
  if (!back || !state.return_c || !free || state.steady_s < steady_for_trim_s || sticking(gains, state))
    return state.trim.output;
  const double wanted_c =
      *state.mapped_inlet_c + 1.0 / (gains.kw_per_lpm_k * gains.map.lpm_per_kw(*state.mapped_inlet_c));
  return pi_step(gains.trim, state.trim, *state.return_c - wanted_c, 0.0, dt_s);
}

double set_point_lpm(const rack_flow_gains& gains, rack_flow_state& state, const rack_flow_inputs& inputs,
                     std::optional<double> back, double dt_s, rack_flow_outputs& out) {
  if (!state.mapped_inlet_c || std::abs(*state.inlet_c - *state.mapped_inlet_c) > gains.inlet_band_k) {
    state.mapped_inlet_c = state.inlet_c;
  }
  const double mapped = gains.map.lpm_per_kw(*state.mapped_inlet_c) * *state.kw;
  const double trim = trimmed(gains, state, back, mapped * (1.0 + state.trim.output), dt_s);
  double target = mapped * (1.0 + trim);
  const double floor = inputs.any_gpu_on == false ? 0.0 : gains.floor_share * gains.rated_lpm;
  out.at_floor = target <= floor;
  target = std::clamp(target, floor, gains.most_lpm);
  const double reach = gains.flow_rate_per_s * gains.rated_lpm * dt_s;
  const double before = state.target_lpm.value_or(target);
  // Rests until what is asked for has moved away by the band, then goes all the way: noise moves no valve.
  const double away = std::abs(target - before);
  state.moving = state.moving ? away > 0.1 * gains.target_band * before : away > gains.target_band * before;
  if (!state.moving && before >= floor) target = before;
  out.wanted_lpm = target;
  state.target_lpm = std::clamp(target, before - reach, before + reach);
  return *state.target_lpm;
}

void watch_power(rack_flow_state& state, std::optional<double> kw, double dt_s) {
  if (!kw || !state.kw) return;
  const bool steady = std::abs(*kw - *state.kw) <= steady_kw_share * std::max(*kw, 1.0);
  state.steady_s = steady ? state.steady_s + dt_s : 0.0;
}

void follow(const rack_flow_gains& gains, rack_flow_state& state, double opening, double feed_forward) {
  const double correction = std::clamp(opening - feed_forward, gains.flow.low, gains.flow.high);
  pi_track(gains.flow, state.flow, correction, 0.0, 0.0);
  state.trim.primed = true;
  state.position = position_state{};
  state.position.command = opening;
  state.position.wanted = opening;
  state.position.rest_position = opening;
}

double corrected(const rack_flow_gains& gains, rack_flow_state& state, std::optional<double> flow,
                 std::optional<double> read, double feed_forward, double target, double dt_s) {
  // The target through the same lags as the flow: what is still on its way is no error.
  filter(state.reference_lpm, target, gains.answer_s, dt_s);
  filter(state.compared_lpm, state.reference_lpm, gains.flow_filter_s, dt_s);
  if (!flow || !state.flow_lpm || *state.compared_lpm <= 0) return state.flow.output;
  const double error = std::clamp(1.0 - *state.flow_lpm / *state.compared_lpm, -0.5, 0.5);
  // An opening that the position loop leaves standing explains this much flow: not to be integrated.
  const double explained = resting_band(gains.position, state.position) * std::log(gains.valve_rangeability);
  // A valve that jumps: as long as the flow is nearer than half its jump would bring it, the stem is right
  // where it is.
  if (sticking(gains, state) && read && std::abs(error) <= 0.6 * explained) {
    pi_track(gains.flow, state.flow, *read - feed_forward, error, 0.0);
    return *read - feed_forward;
  }
  pi_gains tuned = gains.flow;
  tuned.integral_dead_band = std::max(gains.flow_dead_band, explained);
  return pi_step(tuned, state.flow, error, 0.0, dt_s);
}

}  // namespace

double flow_map::lpm_per_kw(double inlet_c) const {
  if (inlet_c <= points.front().inlet_c) return points.front().lpm_per_kw;
  for (std::size_t index = 1; index < points.size(); ++index) {
    if (inlet_c > points[index].inlet_c) continue;
    const flow_map_point& low = points[index - 1];
    const flow_map_point& high = points[index];
    const double share = (inlet_c - low.inlet_c) / (high.inlet_c - low.inlet_c);
    return low.lpm_per_kw + share * (high.lpm_per_kw - low.lpm_per_kw);
  }
  return points.back().lpm_per_kw;
}

double opening_for_flow(const rack_flow_gains& gains, double lpm, double dp_kpa) {
  if (lpm <= 0) return 0.0;
  const double left = dp_kpa - pipe_square(gains) * lpm * lpm;
  if (left <= 0) return 1.0;
  const double kv = 0.06 * lpm * std::sqrt(100.0 / left);
  return std::clamp(1.0 + std::log(kv / gains.valve_kv_max) / std::log(gains.valve_rangeability), 0.0, 1.0);
}

double pressure_for_flow(const rack_flow_gains& gains, double lpm, double opening) {
  const double kv = gains.valve_kv_max * std::pow(gains.valve_rangeability, opening - 1.0);
  return lpm * lpm * (pipe_square(gains) + 100.0 * (0.06 / kv) * (0.06 / kv));
}

rack_flow_step step(const rack_flow_gains& gains, rack_flow_state state, const rack_flow_inputs& inputs,
                    instant now) {
  const double dt_s = step_length_s(state.last, now, gains.period_s);
  const instant age = gains.limits.max_age;
  const auto kw = usable(inputs.rack_kw, now, age);
  const auto inlet = usable(inputs.inlet_c, now, age);
  const auto flow = usable(inputs.flow_lpm, now, age);
  const auto back = usable(inputs.return_c, now, age);
  const auto read = usable(inputs.valve, now, age);
  watch_power(state, kw, dt_s);
  filter(state.kw, kw, gains.power_filter_s, dt_s);
  filter(state.inlet_c, inlet, gains.inlet_filter_s, dt_s);
  filter(state.dp_kpa, usable(inputs.dp_kpa, now, age), gains.flow_filter_s, dt_s);
  filter(state.flow_lpm, flow, gains.flow_filter_s, dt_s);
  filter(state.return_c, back, gains.return_filter_s, dt_s);
  rack_flow_outputs out;
  const bool complete = kw && inlet && *kw >= 0 && state.dp_kpa.has_value();
  out.mode = hold_or_fail(state.missing_since, complete, now, gains.limits.hold);
  if (!inputs.automatic) out.mode = loop_mode::manual;
  if (out.mode == loop_mode::fail_safe) {
    follow(gains, state, gains.fail_safe_opening, gains.fail_safe_opening);
    out.valve_command = gains.fail_safe_opening;
    return {state, out};
  }
  if (!complete) {
    if (out.mode == loop_mode::manual && read) follow(gains, state, *read, *read);
    out.valve_command = state.position.command.value_or(read.value_or(gains.fail_safe_opening));
    return {state, out};
  }
  const double target = set_point_lpm(gains, state, inputs, back, dt_s, out);
  out.target_lpm = target;
  // Opened for the pressure that is coming: a valve that opens for today's pressure has to close again when
  // the pumps arrive.
  const double feed_forward =
      opening_for_flow(gains, target, std::max(*state.dp_kpa, inputs.dp_set_kpa.value_or(0.0)));
  if (out.mode == loop_mode::manual || !state.flow.primed) {
    if (read) follow(gains, state, *read, feed_forward);
    out.valve_command = state.position.command.value_or(feed_forward);
    if (out.mode == loop_mode::manual || !read) return {state, out};
  }
  const double correction = corrected(gains, state, flow, read, feed_forward, target, dt_s);
  const double wanted = std::clamp(feed_forward + correction, 0.0, 1.0);
  if (wanted != feed_forward + correction)
    state.flow.integral += (wanted - feed_forward - correction) * std::min(1.0, dt_s / gains.flow.tt_s);
  out.saturated = wanted >= 1.0;
  out.sticking = sticking(gains, state);
  out.valve_command = position_step(gains.position, state.position, wanted, read, dt_s);
  return {state, out};
}

}  // namespace busbar::plant
