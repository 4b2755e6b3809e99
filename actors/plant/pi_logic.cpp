#include "actors/plant/pi_logic.hpp"

#include <algorithm>
#include <cmath>

namespace busbar::plant {

double pi_step(const pi_gains& gains, pi_state& state, double error, double feed_forward, double dt_s) {
  if (!std::isfinite(error) || !std::isfinite(feed_forward) || !(dt_s > 0) || !std::isfinite(dt_s))
    return state.output;
  const double wanted = feed_forward + gains.kp * error + state.integral;
  double given = std::clamp(wanted, gains.low, gains.high);
  if (state.primed) {
    const double reach = gains.rate_per_s * dt_s;
    given = std::clamp(given, state.output - reach, state.output + reach);
  }
  const double counted = std::abs(error) <= gains.integral_dead_band ? 0.0 : error;
  state.integral += dt_s * (gains.kp / gains.ti_s * counted + (given - wanted) / gains.tt_s);
  state.output = given;
  state.primed = true;
  return given;
}

void pi_track(const pi_gains& gains, pi_state& state, double output, double error, double feed_forward) {
  if (!std::isfinite(output)) return;
  const double known =
      std::isfinite(error) && std::isfinite(feed_forward) ? feed_forward + gains.kp * error : 0.0;
  state.integral = output - known;
  state.output = output;
  state.primed = true;
}

}  // namespace busbar::plant
