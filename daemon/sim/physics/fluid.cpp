#include "daemon/sim/physics/fluid.hpp"

#include <cmath>

namespace busbar::sim::physics {

namespace {
constexpr double heat_capacity_at_zero = 3.85;
constexpr double heat_capacity_slope = 0.0027;
}  // namespace

double density_kg_per_m3(double celsius) {
  return 1033.6 - 0.485 * celsius;
}

double heat_capacity_kj_per_kg_k(double celsius) {
  return heat_capacity_at_zero + heat_capacity_slope * celsius;
}

double viscosity_mpa_s(double celsius) {
  return std::exp(-6.938 + 2265.0 / (celsius + 273.15));
}

double enthalpy_kj_per_kg(double celsius) {
  return (heat_capacity_at_zero + 0.5 * heat_capacity_slope * celsius) * celsius;
}

double temperature_of_enthalpy(double kj_per_kg) {
  // The stable form of the quadratic's root: no cancellation near 0 C.
  const double root =
      std::sqrt(heat_capacity_at_zero * heat_capacity_at_zero + 2.0 * heat_capacity_slope * kj_per_kg);
  return 2.0 * kj_per_kg / (heat_capacity_at_zero + root);
}

double mass_flow_kg_per_s(double lpm, double celsius) {
  return lpm / litres_per_minute_per_m3_s * density_kg_per_m3(celsius);
}

double vapour_pressure_kpa(double celsius) {
  return 0.61094 * std::exp(17.625 * celsius / (celsius + 243.04));  // Magnus, over water
}

}  // namespace busbar::sim::physics
