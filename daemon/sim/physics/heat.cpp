#include "daemon/sim/physics/heat.hpp"

#include <algorithm>
#include <cmath>

#include "daemon/sim/physics/fluid.hpp"

namespace busbar::sim::physics {

namespace {
constexpr double least_flow_fraction = 0.01;  // natural convection: below it the film conducts no worse
constexpr double exchanger_exponent = 0.7;
}  // namespace

double die_on_plate::advance(const die_design& path, double dt_s, double kw, double coolant_c,
                             double flow_fraction) {
  const double film = path.plate_film_k_per_kw * std::pow(std::max(least_flow_fraction, flow_fraction), -0.8);
  const double inner = 1.0 / path.die_to_plate_k_per_kw;         // kW/K
  const double outer = 1.0 / (path.plate_base_k_per_kw + film);  // kW/K
  const double die = path.die_kj_per_k / dt_s;
  const double plate = path.plate_kj_per_k / dt_s;
  // (die + inner) Td - inner Tp = die Td0 + P;  -inner Td + (plate + inner + outer) Tp = plate Tp0 + outer Tc
  const double a = die + inner;
  const double b = plate + inner + outer;
  const double p = die * die_c_ + kw;
  const double q = plate * plate_c_ + outer * coolant_c;
  const double determinant = a * b - inner * inner;
  die_c_ = (p * b + inner * q) / determinant;
  plate_c_ = (a * q + inner * p) / determinant;
  return outer * (plate_c_ - coolant_c);
}

cell_row::cell_row(double mass_kg, int cells, double start_c)
    : cell_kg_(mass_kg / cells), kj_per_kg_(static_cast<std::size_t>(cells), enthalpy_kj_per_kg(start_c)) {}

double cell_row::advance(double dt_s, double kg_per_s, double inlet_kj_per_kg, double kw) {
  const int parts = std::max(1, static_cast<int>(std::ceil(kg_per_s * dt_s / cell_kg_)));
  const double share = kg_per_s * dt_s / parts / cell_kg_;
  const double heat = kw * dt_s / parts / (cell_kg_ * static_cast<double>(kj_per_kg_.size()));
  double left = 0;
  for (int part = 0; part < parts; ++part) {
    double entering = inlet_kj_per_kg;
    for (double& cell : kj_per_kg_) {
      const double leaving = cell;
      cell += share * (entering - leaving) + heat;
      entering = leaving;
    }
    left += entering;
  }
  return left / parts;
}

double cell_row::outlet_c() const {
  return temperature_of_enthalpy(kj_per_kg_.back());
}

double cell_row::mean_c() const {
  double sum = 0;
  for (const double cell : kj_per_kg_) sum += cell;
  return temperature_of_enthalpy(sum / static_cast<double>(kj_per_kg_.size()));
}

double cell_row::stored_kj() const {
  double sum = 0;
  for (const double cell : kj_per_kg_) sum += cell;
  return sum * cell_kg_;
}

double cell_row::volume_l() const {
  return 1000.0 * cell_kg_ * static_cast<double>(kj_per_kg_.size()) / density_kg_per_m3(mean_c());
}

double counterflow_effectiveness(double ntu, double capacity_ratio) {
  if (capacity_ratio > 0.999) return ntu / (1.0 + ntu);
  const double decay = std::exp(-ntu * (1.0 - capacity_ratio));
  return (1.0 - decay) / (1.0 - capacity_ratio * decay);
}

double exchanged_kw(const exchanger_design& design, double hot_lpm, double hot_c, double cold_lpm,
                    double cold_c) {
  if (hot_lpm <= 0 || cold_lpm <= 0) return 0.0;
  const double hot = mass_flow_kg_per_s(hot_lpm, hot_c) * heat_capacity_kj_per_kg_k(hot_c);
  const double cold =
      cold_lpm / litres_per_minute_per_m3_s * water_density_kg_per_m3 * water_heat_capacity_kj_per_kg_k;
  // Two films in series, each as its own flow to the 0.7.
  const double hot_film = std::pow(hot_lpm / design.rated_lpm, exchanger_exponent);
  const double cold_film = std::pow(cold_lpm / design.facility_rated_lpm, exchanger_exponent);
  const double ua = design.ua_kw_per_k * (1.0 - design.fouling) * 2.0 / (1.0 / hot_film + 1.0 / cold_film);
  const double least = std::min(hot, cold);
  return counterflow_effectiveness(ua / least, least / std::max(hot, cold)) * least * (hot_c - cold_c);
}

}  // namespace busbar::sim::physics
