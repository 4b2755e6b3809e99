#include "daemon/sim/physics/pump.hpp"

#include <algorithm>
#include <cmath>

#include "daemon/sim/physics/fluid.hpp"

namespace busbar::sim::physics {

namespace {
constexpr double gravity = 9.81;
constexpr double least_speed = 1e-3;
constexpr double least_efficiency = 0.15;

// -3 % where suction head equals what is needed, nothing at half of it.
double cavitation_factor(double available_m, double needed_m) {
  const double ratio = available_m / needed_m;
  if (ratio >= 1.2) return 1.0;
  if (ratio >= 1.0) return 0.97 + 0.03 * (ratio - 1.0) / 0.2;
  return std::clamp(0.97 * (ratio - 0.5) / 0.5, 0.0, 0.97);
}
}  // namespace

void pump::command(double speed) {
  command_ = std::clamp(speed, 0.0, 1.0);
}

void pump::advance(double dt_s) {
  if (failed_) {
    speed_ *= std::exp(-dt_s / design_.coast_s);
    if (speed_ < least_speed) speed_ = 0.0;
    return;
  }
  const double reach = design_.slew_per_s * dt_s;
  speed_ += std::clamp(command_ - speed_, -reach, reach);
}

double pump::shutoff_kpa(const suction& inlet) const {
  const double available_m = (inlet.inlet_kpa - vapour_pressure_kpa(inlet.celsius)) * 1000.0 /
                             (density_kg_per_m3(inlet.celsius) * gravity);
  const double air = std::max(0.0, 1.0 - 2.5 * inlet.void_fraction);
  return design_.shutoff_kpa * speed_ * speed_ * air *
         cavitation_factor(available_m, design_.needed_suction_m);
}

double pump::flow_lpm(double head_kpa, const suction& inlet) const {
  const double spare = shutoff_kpa(inlet) - head_kpa;
  return spare > 0 ? std::sqrt(spare / design_.droop_kpa_per_lpm2) : 0.0;
}

double pump::efficiency(double lpm) const {
  if (speed_ < least_speed) return least_efficiency;
  const double off = lpm / speed_ / design_.best_lpm - 1.0;
  return std::max(least_efficiency, design_.peak_efficiency * (1.0 - off * off));
}

double pump::shaft_kw(double lpm, double head_kpa) const {
  if (lpm <= 0 || head_kpa <= 0) return 0.0;
  return lpm / litres_per_minute_per_m3_s * head_kpa / efficiency(lpm);
}

double pump::electric_kw(double lpm, double head_kpa) const {
  return shaft_kw(lpm, head_kpa) / (design_.motor_efficiency * design_.drive_efficiency);
}

}  // namespace busbar::sim::physics
