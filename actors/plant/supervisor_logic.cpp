#include "actors/plant/supervisor_logic.hpp"

#include <algorithm>
#include <cmath>

namespace busbar::plant {

namespace {

struct widest_valve {
  std::optional<std::size_t> rack;
  double opening = 0.0;
  double asked_kpa = 0.0;  // by the nameplate, for the rack that asks for most
  bool short_of_flow = false;
  bool known = true;
};

widest_valve look(const supervisor_gains& gains, const std::vector<rack_demand>& racks, instant now) {
  widest_valve found;
  const double middle = 0.5 * (gains.widest_low + gains.widest_high);
  for (std::size_t index = 0; index < racks.size(); ++index) {
    const rack_demand& rack = racks[index];
    if (!rack.automatic) continue;
    found.asked_kpa = std::max(found.asked_kpa, pressure_for_flow(gains.rack, rack.target_lpm, middle));
    found.short_of_flow = found.short_of_flow || rack.saturated;
    auto opening = usable(rack.valve, now, gains.limits.max_age);
    if (opening && rack.sticking) opening = std::clamp(*opening, gains.widest_low, gains.widest_high);
    if (!opening) {
      found.known = false;
    } else if (!found.rack || *opening > found.opening) {
      found.rack = index;
      found.opening = *opening;
    }
  }
  return found;
}

void trim(const supervisor_gains& gains, supervisor_state& state, const widest_valve& widest, double dt_s) {
  const double move = gains.trim_kpa_per_s * dt_s;
  if (widest.short_of_flow || widest.opening > gains.widest_high) state.trim_kpa += move;
  // Lower only on full knowledge: a valve that cannot be read may be the widest.
  if (widest.known && !widest.short_of_flow && widest.opening < gains.widest_low) state.trim_kpa -= move;
  // No wind-up: what the bounds swallow is not kept.
  const double asked = state.asked_kpa.value_or(0.0);
  state.trim_kpa =
      std::clamp(state.trim_kpa, std::max(-gains.most_trim_kpa, std::min(0.0, gains.least_kpa - asked)),
                 std::min(gains.most_trim_kpa, std::max(0.0, gains.most_kpa - asked)));
}

}  // namespace

supervisor_step step(const supervisor_gains& gains, supervisor_state state,
                     const std::vector<rack_demand>& racks, double present_kpa, instant now) {
  const double dt_s = step_length_s(state.last, now, gains.period_s);
  supervisor_outputs out;
  if (!state.set_point_kpa) {
    state.set_point_kpa = std::isfinite(present_kpa)
                              ? std::clamp(present_kpa, gains.least_kpa, gains.most_kpa)
                              : gains.most_kpa;
  }
  const widest_valve widest = look(gains, racks, now);
  out.widest = widest.rack;
  out.mode = hold_or_fail(state.missing_since, widest.rack.has_value(), now, gains.limits.hold);
  double goal = *state.set_point_kpa;
  if (out.mode == loop_mode::fail_safe) goal = gains.most_kpa;  // nothing known of any valve: enough for all
  if (out.mode == loop_mode::automatic) {
    const double keep = std::exp(-dt_s / gains.ask_filter_s);
    state.asked_kpa =
        state.asked_kpa ? widest.asked_kpa + (*state.asked_kpa - widest.asked_kpa) * keep : widest.asked_kpa;
    trim(gains, state, widest, dt_s);
    goal = std::clamp(*state.asked_kpa + state.trim_kpa, gains.least_kpa, gains.most_kpa);
    // Rests until what is asked for has moved away by move_kpa, then goes all the way.
    const double away = std::abs(goal - *state.set_point_kpa);
    state.moving = state.moving ? away > 0.1 * gains.move_kpa : away > gains.move_kpa;
    if (!state.moving) goal = *state.set_point_kpa;
  }
  const double up = goal - *state.set_point_kpa > gains.far_kpa ? gains.up_kpa_per_s : gains.slow_kpa_per_s;
  state.set_point_kpa =
      std::clamp(goal, *state.set_point_kpa - gains.slow_kpa_per_s * dt_s, *state.set_point_kpa + up * dt_s);
  out.set_point_kpa = *state.set_point_kpa;
  return {state, out};
}

}  // namespace busbar::plant
