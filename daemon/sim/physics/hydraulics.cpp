#include "daemon/sim/physics/hydraulics.hpp"

#include <algorithm>
#include <cmath>

namespace busbar::sim::physics {

namespace {
constexpr double discharge_coefficient = 0.61;
constexpr double most_clogged = 20.0;
constexpr double flow_tolerance = 1e-7;

double to_1_75(double lpm) {
  return lpm * lpm / std::sqrt(std::sqrt(lpm));
}
double to_0_75(double lpm) {
  return lpm / std::sqrt(std::sqrt(lpm));
}

// m3/s through a hole of 1 mm2
double orifice_m3_s_per_mm2(double kpa, double density) {
  return kpa > 0 ? discharge_coefficient * 1e-6 * std::sqrt(2000.0 * kpa / density) : 0.0;
}
}  // namespace

double resistance::drop_kpa(double lpm) const {
  return lpm > 0 ? smooth * to_1_75(lpm) + square * lpm * lpm : 0.0;
}

double resistance::flow_lpm(double kpa, double guess) const {
  if (kpa <= 0) return 0.0;
  if (smooth <= 0) return std::sqrt(kpa / square);
  const double most = square > 0 ? std::sqrt(kpa / square) : 1e9;
  double flow = guess > 0 ? std::min(guess, most) : std::min(most, 1.0);
  for (int round = 0; round < 40; ++round) {
    const double off = drop_kpa(flow) - kpa;
    const double slope = 1.75 * smooth * to_0_75(flow) + 2.0 * square * flow;
    const double next = std::clamp(flow - off / slope, 0.05 * flow, most);
    if (std::abs(next - flow) <= flow_tolerance * next) return next;
    flow = next;
  }
  return flow;
}

void filter::advance(double dt_s) {
  if (design_.clog_time_s > 0)
    factor_ = std::min(most_clogged, factor_ * std::exp(dt_s / design_.clog_time_s));
}

double expansion_vessel::gas_l() const {
  return std::clamp(design_.gas_l + lost_l_ - expanded_l_, 0.05 * design_.gas_l, design_.volume_l);
}

double expansion_vessel::pressure_kpa() const {
  return std::min(design_.relief_kpa, design_.fill_kpa * design_.gas_l / gas_l());
}

double expansion_vessel::level() const {
  return 1.0 - gas_l() / design_.volume_l;
}

double leak::advance(double dt_s, double supply_gauge_kpa, double return_gauge_kpa, double density) {
  const double gauge = design_.on_supply ? supply_gauge_kpa : return_gauge_kpa;
  const double litres = design_.area_mm2 * orifice_m3_s_per_mm2(gauge, density) * 1000.0 * dt_s;
  flow_ml_per_min_ = dt_s > 0 ? litres * 1000.0 / dt_s * 60.0 : 0.0;
  pooled_ml_ += litres * 1000.0;
  if (pooled_ml_ >= design_.wetting_ml) wet_for_s_ += dt_s;
  return litres;
}

double leak_area_mm2(double ml_per_min, double gauge_kpa, double density) {
  return ml_per_min * 1e-6 / 60.0 / orifice_m3_s_per_mm2(gauge_kpa, density);
}

}  // namespace busbar::sim::physics
