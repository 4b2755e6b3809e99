#include "actors/plant/supply_temperature_logic.hpp"

#include <algorithm>
#include <cmath>

namespace busbar::plant {

namespace {

constexpr double slowest_share = 0.15;  // of rated flow: no scheduling beyond it
constexpr double mean_s = 15.0;         // power and supply are compared with their mean of so long
constexpr double still_enough_s = 4.0;  // of the facility valve, before flow belongs to its position
constexpr double facility_flow_filter_s = 2.0;
constexpr double asked_filter_s = 1.5;
constexpr double steady_k = 1.0;  // of the supply, to its mean
constexpr double least_drop_k =
    1.0;  // across the exchanger, and twice that over facility water: else nothing is learned

double keep(double tau_s, double dt_s) {
  return std::exp(-dt_s / tau_s);
}

void filter(std::optional<double>& into, std::optional<double> value, double tau_s, double dt_s) {
  if (!value) return;
  into = into ? *value + (*into - *value) * std::exp(-dt_s / tau_s) : *value;
}

// Moves this much coolant, in cells, through a row of them.
template <std::size_t N>
void move_cells(std::array<double, N>& cells, double entering_c, double passed) {
  const int parts = std::max(1, static_cast<int>(std::ceil(passed)));
  for (int part = 0; part < parts; ++part) {
    double in = entering_c;
    for (double& cell : cells) {
      const double out = cell;
      cell += passed / parts * (in - out);
      in = out;
    }
  }
}

struct arrival {
  double now_c;
  double later_c;  // after the lead
};

// The heat of the racks on its way: from the supply sensor through the hoses to the plates, from there
// through the pipes to the exchanger.
arrival move_pipe(const supply_temperature_gains& gains, supply_temperature_state& state, double rise_k,
                  double dt_s) {
  const double supply = state.supply_c.value_or(state.set_point_c);
  auto& cells = state.pipe_c;
  if (!state.pipe_filled) {
    state.hose_c.fill(supply);
    cells.fill(state.return_c.value_or(supply + rise_k));
    state.pipe_filled = true;
  }
  const double litres = *state.flow_lpm / 60.0 * dt_s;
  const double cell_l = gains.pipe_l / static_cast<double>(cells.size());
  move_cells(cells, state.hose_c.back() + rise_k, litres / cell_l);
  move_cells(state.hose_c, supply, litres * static_cast<double>(state.hose_c.size()) / gains.supply_l);
  const double ahead =
      std::min(*state.flow_lpm / 60.0 * gains.lead_s / cell_l, static_cast<double>(cells.size()) - 1.0);
  const double place = static_cast<double>(cells.size()) - 1.0 - ahead;
  const auto index = static_cast<std::size_t>(place);
  const double blend = place - static_cast<double>(index);
  const double later =
      index + 1 < cells.size() ? cells[index] * (1.0 - blend) + cells[index + 1] * blend : cells.back();
  return {cells.back(), later};
}

// The flow that is coming: the measured one, and what racks want that has not arrived by now.
double coming_flow(const supply_temperature_gains& gains, supply_temperature_state& state,
                   std::optional<double> asked, double dt_s) {
  if (!asked || *asked < 0) return *state.flow_lpm;
  const double reach = gains.answer_rate_per_s * gains.exchanger.rated_lpm * dt_s;
  const double before = state.ramped_lpm.value_or(*asked);
  state.ramped_lpm = std::clamp(*asked, before - reach, before + reach);
  filter(state.asked_lpm, asked, asked_filter_s, dt_s);
  filter(state.answered_lpm, state.ramped_lpm, gains.answer_s, dt_s);
  filter(state.compared_lpm, state.answered_lpm, gains.flow_filter_s, dt_s);
  return std::max(0.0, *state.flow_lpm + *state.asked_lpm - *state.compared_lpm);
}

// The temperature that will enter the exchanger after the lead: the pipe model's, less what it is off by now.
double coming_return(const supply_temperature_gains& gains, supply_temperature_state& state, double racks_kw,
                     std::optional<double> back, double dt_s) {
  if (!state.pipe_filled) state.heat_kw = racks_kw;
  state.heat_kw = racks_kw + (state.heat_kw - racks_kw) * keep(gains.plate_s, dt_s);
  const double carried = gains.exchanger.kw_per_lpm_k * std::max(*state.flow_lpm, 1.0);
  const bool first = !state.pipe_filled;
  const arrival heat = move_pipe(gains, state, std::min(60.0, state.heat_kw / carried), dt_s);
  state.modelled_c =
      first ? heat.now_c : heat.now_c + (state.modelled_c - heat.now_c) * keep(gains.sensor_lag_s, dt_s);
  if (back) {
    const double bias = *back - state.modelled_c;
    state.bias_c = first ? bias : bias + (state.bias_c - bias) * keep(gains.bias_filter_s, dt_s);
  }
  state.hot_now_c = heat.now_c + state.bias_c;
  return heat.later_c + state.bias_c;
}

// False when a value it needs is not there at this moment: the filtered one from before stands in.
bool predict(const supply_temperature_gains& gains, supply_temperature_state& state,
             const supply_temperature_inputs& inputs, instant now, double dt_s,
             std::optional<exchanger_duty>& duty) {
  const instant age = gains.limits.max_age;
  const auto flow = usable(inputs.flow_lpm, now, age);
  const auto back = usable(inputs.return_c, now, age);
  const auto facility = usable(inputs.facility_c, now, age);
  const auto racks = usable(inputs.racks_kw, now, age);
  filter(state.flow_lpm, flow && *flow >= 0 ? flow : std::nullopt, gains.flow_filter_s, dt_s);
  filter(state.return_c, back, gains.bias_filter_s, dt_s);
  filter(state.facility_c, facility, gains.facility_filter_s, dt_s);
  if (!state.flow_lpm || !state.return_c || !state.facility_c) return false;
  state.hot_now_c = *state.return_c;
  const double hot_c = racks ? coming_return(gains, state, *racks, back, dt_s) : *state.return_c;
  duty = exchanger_duty{coming_flow(gains, state, usable(inputs.asked_lpm, now, age), dt_s), hot_c,
                        *state.facility_c};
  return flow && back && facility && racks;
}

double flow_share(const supply_temperature_gains& gains, const supply_temperature_state& state) {
  return std::clamp(state.flow_lpm ? *state.flow_lpm / gains.exchanger.rated_lpm : 1.0, slowest_share, 1.0);
}

// Learns what this unit is beside its nameplate: the valve at once where facility flow is measured, the
// exchanger while heat is steady, for then in and out belong together.
void learn(const supply_temperature_gains& gains, supply_temperature_state& state,
           const supply_temperature_inputs& inputs, std::optional<double> read, std::optional<double> supply,
           instant now, double dt_s) {
  const auto lpm = usable(inputs.facility_lpm, now, gains.limits.max_age);
  const auto racks = usable(inputs.racks_kw, now, gains.limits.max_age);
  filter(state.facility_lpm, lpm && *lpm >= 0 ? lpm : std::nullopt, facility_flow_filter_s, dt_s);
  const bool same_heat = !racks ||  // not measured: judged by the supply alone
                         (state.mean_kw && std::abs(*racks - *state.mean_kw) <=
                                               gains.steady_share * std::max(*state.mean_kw, 1.0));
  const bool steady =
      same_heat && supply && state.mean_supply_c && std::abs(*supply - *state.mean_supply_c) <= steady_k;
  filter(state.mean_kw, racks, mean_s, dt_s);
  filter(state.mean_supply_c, supply, mean_s, dt_s);
  state.steady_for_s = steady ? state.steady_for_s + dt_s : 0.0;
  if (!state.facility_lpm || !read || !supply) return;
  if (state.position.still_s >= still_enough_s) {
    const double seen =
        std::clamp(*state.facility_lpm / std::max(facility_lpm_at(gains.exchanger, *read), 1.0), 0.4, 2.5);
    state.learned.facility_flow =
        seen + (state.learned.facility_flow - seen) * keep(gains.valve_learn_s, dt_s);
  }
  if (state.steady_for_s < gains.steady_s || !state.flow_lpm || !state.return_c || !state.facility_c) return;
  if (*state.return_c - *state.facility_c < 2.0 * least_drop_k || *state.return_c - *supply < least_drop_k)
    return;
  // A temperature that hardly depends on UA says little of it: the nameplate counts the more.
  const exchanger_duty duty{*state.flow_lpm, *state.return_c, *state.facility_c};
  const double ua = ua_factor_for(gains.exchanger, duty, *state.facility_lpm, *state.mean_supply_c);
  const double k_per_unit = 10.0 *
                            (coolant_out_c(gains.exchanger, duty, *state.facility_lpm, 0.95 * ua) -
                             coolant_out_c(gains.exchanger, duty, *state.facility_lpm, 1.05 * ua)) /
                            ua;
  const double doubt = gains.temperature_doubt_k / std::max(k_per_unit, 1e-3);
  const double trust =
      gains.ua_spread * gains.ua_spread / (gains.ua_spread * gains.ua_spread + doubt * doubt);
  const double seen = 1.0 + trust * (ua - 1.0);
  state.learned.ua = seen + (state.learned.ua - seen) * keep(gains.ua_learn_s, dt_s);
}

double learning_pace(const supply_temperature_gains& gains, const supply_temperature_state& state) {
  return state.steady_for_s >= gains.settled_s ? 1.0 : gains.pace_moving;
}

// What the exchanger gives out now by its nameplate, on its way to the sensor; and what the sensor shows
// beyond that. A move that is under way, and a stem that rests a little off, are in the model and so are no
// reason to move again.
void compare(const supply_temperature_gains& gains, supply_temperature_state& state,
             std::optional<double> read, std::optional<double> supply, double dt_s) {
  if (!state.flow_lpm || !state.facility_c || !supply) return;
  const double opening = read.value_or(state.position.command.value_or(state.opening.value_or(0.5)));
  const double out = coolant_out_c(gains.exchanger, {*state.flow_lpm, state.hot_now_c, *state.facility_c},
                                   opening, state.learned);
  if (!state.correction.primed) {
    state.cold_c.fill(out);
    state.expected_c = out;
    state.off_c = *supply - out;
    return;
  }
  const double cell_l = gains.cold_l / static_cast<double>(state.cold_c.size());
  double in = out;
  for (double& cell : state.cold_c) {
    const double leaving = cell;
    cell = in + (cell - in) * keep(cell_l * 60.0 / std::max(*state.flow_lpm, 1.0), dt_s);
    in = leaving;
  }
  state.expected_c = in + (state.expected_c - in) * keep(gains.sensor_lag_s, dt_s);
  const double off = *supply - state.expected_c;
  state.off_c =
      off + (state.off_c - off) *
                keep(gains.off_filter_s / (flow_share(gains, state) * learning_pace(gains, state)), dt_s);
}

// Which aim explains this opening: where the PI must start from so that nothing moves.
double aim_of(const supply_temperature_gains& gains, const supply_temperature_state& state,
              const std::optional<exchanger_duty>& duty, double opening) {
  return duty ? coolant_out_c(gains.exchanger, *duty, opening, state.learned) : state.set_point_c;
}

void follow(const supply_temperature_gains& gains, supply_temperature_state& state,
            const std::optional<exchanger_duty>& duty, double opening, double error) {
  const double aim = aim_of(gains, state, duty, opening);
  const double correction = std::clamp(aim - state.set_point_c, gains.correction.low, gains.correction.high);
  pi_track(gains.correction, state.correction, correction, error, -state.off_c);
  state.opening = opening;
  state.position = position_state{};
  state.position.command = opening;
  state.position.wanted = opening;
  state.position.rest_position = opening;
}

}  // namespace

supply_temperature_step step(const supply_temperature_gains& gains, supply_temperature_state state,
                             const supply_temperature_inputs& inputs, instant now) {
  const double dt_s = step_length_s(state.last, now, gains.period_s);
  const auto supply = usable(inputs.supply_c, now, gains.limits.max_age);
  const auto read = usable(inputs.valve, now, gains.limits.max_age);
  state.set_point_c = std::max(inputs.set_point_c, inputs.floor_c.value_or(inputs.set_point_c));
  filter(state.supply_c, supply, gains.supply_filter_s, dt_s);
  std::optional<exchanger_duty> duty;
  supply_temperature_outputs out;
  out.set_point_c = state.set_point_c;
  out.feed_forward = predict(gains, state, inputs, now, dt_s, duty);
  learn(gains, state, inputs, read, supply, now, dt_s);
  compare(gains, state, read, supply, dt_s);
  const double error = supply ? state.set_point_c - *state.supply_c : 0.0;
  out.mode = hold_or_fail(state.missing_since, supply.has_value(), now, gains.limits.hold);
  if (!inputs.automatic) out.mode = loop_mode::manual;

  if (out.mode == loop_mode::manual ||
      !state.correction.primed) {  // follow what is there, also on the first step after a restart
    if (read) follow(gains, state, duty, *read, error);
    out.valve_command = state.position.command.value_or(gains.fail_safe_opening);
    if (out.mode == loop_mode::manual || !read) return {state, out};
  }
  if (out.mode == loop_mode::fail_safe) {
    follow(gains, state, duty, gains.fail_safe_opening, 0.0);
    out.valve_command = gains.fail_safe_opening;
    return {state, out};
  }
  if (out.mode == loop_mode::holding || !duty) {
    out.valve_command = state.position.command.value_or(gains.fail_safe_opening);
    return {state, out};
  }
  pi_gains scheduled = gains.correction;
  scheduled.ti_s *= std::pow(flow_share(gains, state), -gains.schedule_exponent);
  scheduled.ti_s /= learning_pace(gains, state);
  const double correction = pi_step(scheduled, state.correction, error, -state.off_c, dt_s);
  out.aim_c = state.set_point_c + correction;
  const double ideal =
      std::clamp(opening_for(gains.exchanger, *duty, out.aim_c, state.learned), gains.least_opening, 1.0);
  const double reach = gains.rate_per_s * dt_s;
  const double before = state.opening.value_or(ideal);
  const double limited = std::clamp(ideal, before - reach, before + reach);
  // Back-calculation through the inversion: at an end of the valve the aim is what that end gives, and the
  // integral stops there.
  out.saturated = limited >= 1.0 || limited <= gains.least_opening;
  if (out.saturated) {
    const double reached = aim_of(gains, state, duty, limited) - state.set_point_c;
    const double excess = std::clamp(reached, gains.correction.low, gains.correction.high) - correction;
    state.correction.integral += std::min(1.0, dt_s / gains.correction.tt_s) * excess;
  }
  state.opening = limited;
  out.valve_command = position_step(gains.position, state.position, limited, read, dt_s);
  return {state, out};
}

}  // namespace busbar::plant
