#include "actors/plant/heat_balance_logic.hpp"

#include <algorithm>
#include <cmath>

#include "actors/plant/loop_mode.hpp"

namespace busbar::plant {

std::string_view name_of(balance_verdict verdict) {
  switch (verdict) {
    case balance_verdict::unknown:
      return "unknown";
    case balance_verdict::learning:
      return "learning";
    case balance_verdict::closed:
      return "closed";
    case balance_verdict::drifting:
      return "drifting";
    case balance_verdict::broken:
      return "broken";
  }
  return "?";
}

namespace {

balance_verdict judge(const heat_balance_limits& limits, heat_balance_state& state, double dt_s,
                      instant now) {
  const double residual = *state.ratio - 1.0;
  if (!state.learned && std::abs(residual) <= limits.absolute) {
    state.learning_s += dt_s;
    if (state.learning_s >= limits.learn_s) state.learned = *state.ratio;
  }
  const bool broken = std::abs(residual) > limits.absolute;
  const bool drifting = state.learned && std::abs(*state.ratio / *state.learned - 1.0) > limits.drift;
  if (!broken && !drifting) {
    state.off_since.reset();
    return state.learned ? balance_verdict::closed : balance_verdict::learning;
  }
  if (!state.off_since) state.off_since = now;
  if (now - *state.off_since < limits.confirm)
    return state.learned ? balance_verdict::closed : balance_verdict::learning;
  return broken ? balance_verdict::broken : balance_verdict::drifting;
}

}  // namespace

heat_balance_step step(const heat_balance_limits& limits, heat_balance_state state, const measurement& kw,
                       const measurement& flow_lpm, const measurement& inlet_c, const measurement& return_c,
                       instant now) {
  const double dt_s = step_length_s(state.last, now, 1.0);
  const auto power = usable(kw, now, limits.max_age);
  const auto flow = usable(flow_lpm, now, limits.max_age);
  const auto in = usable(inlet_c, now, limits.max_age);
  const auto out = usable(return_c, now, limits.max_age);
  if (!power || !flow || !in || !out || *flow <= 0) {
    state.steady_s = 0.0;
    state.off_since.reset();
    return {state, {}};
  }
  const double lag_s = limits.transport_l / (*flow / 60.0) + limits.sensor_lag_s;
  state.arriving_kw =
      state.arriving_kw ? *power + (*state.arriving_kw - *power) * std::exp(-dt_s / lag_s) : *power;
  const bool steady = std::abs(*state.arriving_kw - *power) <= limits.steady_share * *power;
  state.steady_s = steady ? state.steady_s + dt_s : 0.0;
  // While power moves the lag model errs more than the limits allow: no judgement, and none is carried over.
  if (*power < limits.least_kw || state.steady_s < 2.0 * lag_s) {
    state.off_since.reset();
    return {state, {}};
  }
  const double carried = limits.kw_per_lpm_k * *flow * (*out - *in);
  const double ratio = carried / (limits.electric_share * *state.arriving_kw);
  state.ratio = state.ratio ? ratio + (*state.ratio - ratio) * std::exp(-dt_s / limits.average_s) : ratio;
  heat_balance_outputs outputs;
  outputs.residual = *state.ratio - 1.0;
  outputs.verdict = judge(limits, state, dt_s, now);
  return {state, outputs};
}

}  // namespace busbar::plant
