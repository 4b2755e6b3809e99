#include "daemon/sim/physics/control_valve.hpp"

#include <algorithm>
#include <cmath>

namespace busbar::sim::physics {

namespace {
constexpr double lpm_in_m3_per_h = 0.06;
constexpr double water_density = 1000.0;
}  // namespace

double valve_trim::kv(double opening) const {
  const double x = std::clamp(opening, 0.0, 1.0);
  const double open = shape == characteristic::linear ? kv_max * x : kv_max * std::pow(rangeability, x - 1.0);
  // Near the seat an equal-percentage plug closes tight; without this its lowest flow would be 1/R of the
  // highest.
  const double seat = 0.05;
  const double seated = shape == characteristic::equal_percentage && x < seat ? open * x / seat : open;
  return std::max(seated, leakage * kv_max);
}

double valve_trim::square_kpa_per_lpm2(double opening, double density) const {
  const double share = lpm_in_m3_per_h / kv(opening);
  return 100.0 * density / water_density * share * share;
}

double valve_trim::drop_kpa(double lpm, double opening, double density) const {
  return square_kpa_per_lpm2(opening, density) * lpm * std::abs(lpm);
}

actuator::actuator(actuator_design wanted, double opening)
    : design_(wanted), command_(opening), motor_(opening), stem_(opening), stopped_at_(opening) {}

void actuator::command(double opening) {
  command_ = std::clamp(opening, 0.0, 1.0);
}

void actuator::lose_power() {
  if (design_.on_power_loss == fail_action::open) command_ = 1.0;
  if (design_.on_power_loss == fail_action::closed) command_ = 0.0;
  if (design_.on_power_loss == fail_action::in_place) command_ = motor_;
}

void actuator::jam(bool stuck) {
  if (jammed_ && !stuck) {
    motor_ = stem_;
    stopped_at_ = stem_;
    sliding_ = false;
  }
  jammed_ = stuck;
}

void actuator::creep(double by) {
  stem_ = std::clamp(stem_ + by, 0.0, 1.0);
}

double actuator::goal() const {
  const double overtravel = design_.stiction;
  return command_ <= 0.0 ? -overtravel : command_ >= 1.0 ? 1.0 + overtravel : command_;
}

void actuator::advance(double dt_s) {
  const double reach = dt_s / design_.stroke_s;
  const double move = std::clamp(goal() - motor_, -reach, reach);
  if (move == 0.0) {
    if (sliding_) {
      sliding_ = false;
      stopped_at_ = motor_;
    }
    return;
  }
  const int heading = move > 0 ? 1 : -1;
  if (heading != direction_ && sliding_) {
    sliding_ = false;
    stopped_at_ = motor_;
  }
  motor_ += move;
  const double jump = std::max(0.0, design_.stiction - design_.dead_band);
  if (!sliding_) {
    const double needed = heading == direction_ ? jump : design_.stiction;
    const double crossed = (motor_ - stopped_at_) * heading;
    if (crossed < needed) return;
    sliding_ = true;
    direction_ = heading;
  }
  if (!jammed_) stem_ = std::clamp(motor_ - heading * 0.5 * design_.dead_band, 0.0, 1.0);
}

}  // namespace busbar::sim::physics
