#include "actors/plant/position_logic.hpp"

#include <algorithm>
#include <cmath>

namespace busbar::plant {

namespace {

constexpr int most_fruitless = 2;

void enter(position_state& state, position_phase phase) {
  state.phase = phase;
  state.phase_s = 0.0;
}

// Looks at the read-back: is the stem at rest, and how far did it jump when it broke loose?
void note_motion(const position_gains& gains, position_state& state, double read, double dt_s) {
  const bool moving = state.last_read && std::abs(read - *state.last_read) > gains.motion;
  if (moving || !state.last_read) {
    if (moving && state.phase == position_phase::creeping && state.still_s >= gains.settle_s) {
      state.jump = std::max(state.jump, std::abs(read - state.rest_position) - gains.creep_per_s * dt_s);
    }
    state.still_s = 0.0;
    state.read = read;
  } else {
    state.still_s += dt_s;
    state.read = read + (state.read - read) * std::exp(-dt_s / gains.read_filter_s);
    if (state.still_s >= gains.settle_s) state.rest_position = state.read;
  }
  state.phase_s += dt_s;
  state.jump *= std::exp(-dt_s / gains.jump_forgotten_s);
  state.last_read = read;
}

void go(const position_gains& gains, position_state& state, double wanted) {
  const int direction = wanted > state.read ? 1 : -1;
  // Half the play is lost on the way there; full strokes end on the seat.
  const bool seat = wanted <= 0.0 || wanted >= 1.0;
  state.command = seat ? wanted : std::clamp(wanted + direction * 0.5 * gains.play, 0.001, 0.999);
  state.wanted = wanted;
  state.fruitless = 0;
  enter(state, position_phase::travelling);
}

bool coarse(const position_gains& gains, const position_state& state) {
  return state.jump >= gains.coarse_jump;
}

void begin_small_move(const position_gains& gains, position_state& state, double wanted) {
  state.wanted = wanted;
  state.direction = wanted > state.read ? 1 : -1;
  if (!gains.fine || coarse(gains, state) || state.fruitless >= most_fruitless) {
    enter(state, position_phase::creeping);
    return;
  }
  const double beyond = gains.excursion + 0.5 * gains.play;
  state.command = std::clamp(wanted + state.direction * beyond, 0.001, 0.999);
  enter(state, position_phase::outward);
}

void go_on(const position_gains& gains, position_state& state, double dt_s) {
  if (state.phase == position_phase::outward && state.phase_s >= gains.out_s) {
    state.command = std::clamp(state.wanted - state.direction * 0.5 * gains.play, 0.001, 0.999);
    enter(state, position_phase::back);
    return;
  }
  const double error = state.wanted - state.read;
  if (state.phase == position_phase::back && state.phase_s >= 2.0 * gains.settle_s) {
    state.fruitless = std::abs(error) > resting_band(gains, state) ? state.fruitless + 1 : 0;
    enter(state, position_phase::resting);
    return;
  }
  if (state.phase != position_phase::creeping) return;
  const bool passed = error * state.direction <= 0;
  if (passed || std::abs(error) <= resting_band(gains, state)) {
    state.fruitless = 0;
    enter(state, position_phase::resting);
    return;
  }
  const double beyond = *state.command + state.direction * gains.creep_per_s * dt_s - state.wanted;
  state.command =
      std::clamp(state.wanted + std::clamp(beyond, -gains.most_creep, gains.most_creep), 0.001, 0.999);
}

}  // namespace

double resting_band(const position_gains& gains, const position_state& state) {
  return std::max(gains.dead_band, coarse(gains, state) ? gains.jump_share * state.jump : 0.0);
}

double position_step(const position_gains& gains, position_state& state, double wanted,
                     std::optional<double> read, double dt_s) {
  wanted = std::clamp(wanted, 0.0, 1.0);
  if (!state.command) {
    state.command = state.wanted = state.read = state.rest_position = read.value_or(wanted);
    enter(state, position_phase::resting);
  }
  if (!read || !std::isfinite(*read)) {
    state.last_read.reset();
    state.read = *state.command;
    if (std::abs(wanted - *state.command) > gains.dead_band + 0.5 * gains.play) go(gains, state, wanted);
    return *state.command;
  }
  note_motion(gains, state, *read, dt_s);
  const double band = resting_band(gains, state);
  const bool onto_seat = (wanted <= 0.0 || wanted >= 1.0) && *state.command != wanted;
  if (onto_seat || std::abs(wanted - state.wanted) > std::max(2.0 * band, gains.excursion)) {
    go(gains, state, wanted);
    return *state.command;
  }
  const bool at_rest = state.phase == position_phase::resting || state.phase == position_phase::travelling;
  if (!at_rest) {
    go_on(gains, state, dt_s);
    return *state.command;
  }
  if (wanted <= 0.0 || wanted >= 1.0) return *state.command;
  const bool settled =
      state.still_s >= gains.settle_s &&
      state.phase_s >= (state.phase == position_phase::resting ? gains.dwell_s : gains.settle_s);
  if (std::abs(wanted - state.read) > band && settled) begin_small_move(gains, state, wanted);
  return *state.command;
}

}  // namespace busbar::plant
