// Propylene glycol 25 % by volume, and water, between 0 and 60 C: fits of a published table. Density within
// 0.2 kg/m3 and heat capacity within 0.01 kJ/(kg K) of it from 20 to 45 C; viscosity is approximate.
#pragma once

namespace busbar::sim::physics {

inline constexpr double litres_per_minute_per_m3_s = 60'000.0;

double density_kg_per_m3(double celsius);
double heat_capacity_kj_per_kg_k(double celsius);
double viscosity_mpa_s(double celsius);
// Integral of the heat capacity from 0 C, and its inverse: what makes stored and carried heat one quantity.
double enthalpy_kj_per_kg(double celsius);
double temperature_of_enthalpy(double kj_per_kg);

double mass_flow_kg_per_s(double lpm, double celsius);
double vapour_pressure_kpa(double celsius);  // absolute

inline constexpr double water_density_kg_per_m3 = 996.0;
inline constexpr double water_heat_capacity_kj_per_kg_k = 4.18;

}  // namespace busbar::sim::physics
