#include "daemon/sim/physics/plant_design.hpp"

#include <algorithm>

#include "daemon/sim/physics/noise.hpp"

namespace busbar::sim::physics {

namespace {

template <class Visit>
void visit_valve(valve_trim& trim, actuator_design& motor, Visit&& visit) {
  visit(trim.kv_max);
  visit(trim.rangeability);
  visit(trim.leakage);
  visit(motor.stroke_s);
  visit(motor.dead_band);
  visit(motor.stiction);
}

template <class Visit>
void visit_sensor(sensor_design& each, Visit&& visit) {
  visit(each.lag_s);
  visit(each.noise);
  visit(each.noise_share);
}

template <class Visit>
void visit_rack(plant_design& plant, Visit&& visit) {
  for (double* each : {&plant.rack_kw, &plant.idle_share, &plant.die_share, &plant.rack_rated_lpm,
                       &plant.rack_pipe_kpa, &plant.turbulent_share, &plant.hose_s, &plant.tray_s,
                       &plant.die.die_kj_per_k, &plant.die.plate_kj_per_k, &plant.die.die_to_plate_k_per_kw,
                       &plant.die.plate_base_k_per_kw, &plant.die.plate_film_k_per_kw}) {
    visit(*each);
  }
  visit_valve(plant.rack_valve, plant.rack_actuator, visit);
}

template <class Visit>
void visit_cdu(plant_design& plant, Visit&& visit) {
  for (double* each : {&plant.cdu_kpa,
                       &plant.cdu_rated_lpm,
                       &plant.cdu_hold_s,
                       &plant.pump.shutoff_kpa,
                       &plant.pump.droop_kpa_per_lpm2,
                       &plant.pump.best_lpm,
                       &plant.pump.peak_efficiency,
                       &plant.pump.slew_per_s,
                       &plant.pump.coast_s,
                       &plant.pump.needed_suction_m,
                       &plant.filter.clean_kpa_per_lpm2,
                       &plant.vessel.volume_l,
                       &plant.vessel.gas_l,
                       &plant.vessel.fill_kpa,
                       &plant.exchanger.ua_kw_per_k,
                       &plant.exchanger.rated_lpm,
                       &plant.exchanger.facility_rated_lpm,
                       &plant.facility_c,
                       &plant.facility_kpa,
                       &plant.facility_pipe_kpa}) {
    visit(*each);
  }
  visit_valve(plant.facility_valve, plant.facility_actuator, visit);
  for (sensor_design* each : {&plant.temperature, &plant.flow, &plant.pressure}) visit_sensor(*each, visit);
  visit(plant.position_noise);
}

}  // namespace

plant_design drawn_around(plant_design nominal, double spread, std::uint64_t seed) {
  std::uint64_t number = mix(seed);
  const auto vary = [&number, spread](double& value) {
    value *= 1.0 + spread * (2.0 * uniform(++number) - 1.0);
  };
  visit_rack(nominal, vary);
  visit_cdu(nominal, vary);
  nominal.pump.motor_efficiency *= 1.0 - 0.25 * spread * uniform(++number);  // an efficiency does not pass 1
  nominal.pump.drive_efficiency *= 1.0 - 0.10 * spread * uniform(++number);
  // Play cannot exceed what a reversal must cross, gas not the vessel.
  for (actuator_design* each : {&nominal.rack_actuator, &nominal.facility_actuator}) {
    each->dead_band = std::min(each->dead_band, each->stiction);
  }
  nominal.vessel.gas_l = std::min(nominal.vessel.gas_l, 0.9 * nominal.vessel.volume_l);
  nominal.seed = seed;
  return nominal;
}

}  // namespace busbar::sim::physics
