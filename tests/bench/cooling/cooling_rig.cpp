#include "tests/bench/cooling/cooling_rig.hpp"

#include <cmath>

namespace busbar::bench {

namespace {

// A dead sensor's NaN is no value: what a driver makes of it.
plant::measurement reading(double value, plant::instant now) {
  if (!std::isfinite(value)) return {};
  return plant::good(value, now);
}

}  // namespace

cooling_rig::cooling_rig(sim::physics::plant_design design, loop_gains wanted, double load)
    : plant(design), gains(wanted) {
  const auto count = static_cast<std::size_t>(design.racks);
  forced_valves.resize(count);
  racks.resize(count);
  rack_states_.resize(count);
  plant.place(0.7, 0.5, 0.7);
  set_load(load);
}

void cooling_rig::set_load(double share) {
  for (std::size_t rack = 0; rack < racks.size(); ++rack) plant.set_load(rack, share);
}

void cooling_rig::set_load(std::size_t rack, double share) {
  plant.set_load(rack, share);
}

void cooling_rig::step(const std::function<void()>& look) {
  for (int tenth = 0; tenth < 10; ++tenth) {
    plant.advance(0.1);
    if (look) look();
  }
  control();
}

void cooling_rig::run(double seconds) {
  for (double done = 0; done < seconds; done += 1.0) step();
}

void cooling_rig::control() {
  const plant::instant now = plant::from_seconds(plant.elapsed_s());
  shown = plant.sample();
  std::vector<plant::rack_demand> demands;
  double racks_kw = 0;
  double asked_lpm = 0;
  double coming_lpm = 0;
  for (std::size_t index = 0; index < racks.size(); ++index) {
    const sim::physics::rack_shown& rack = shown.racks[index];
    plant::rack_flow_inputs inputs;
    inputs.automatic = automatic && !forced_valves[index];
    inputs.any_gpu_on = true;
    inputs.rack_kw = reading(rack.kw, now);
    inputs.inlet_c = reading(rack.inlet_c, now);
    inputs.dp_kpa = reading(shown.dp_kpa, now);
    inputs.dp_set_kpa = pressure_set_kpa_;
    inputs.flow_lpm = reading(rack.flow_lpm, now);
    inputs.return_c = reading(rack.return_c, now);
    inputs.valve = reading(rack.valve, now);
    auto next = plant::step(gains.rack, std::move(rack_states_[index]), inputs, now);
    rack_states_[index] = std::move(next.state);
    racks[index] = next.outputs;
    if (automatic) plant.set_rack_valve(index, forced_valves[index].value_or(racks[index].valve_command));
    demands.push_back({inputs.automatic, racks[index].target_lpm, inputs.valve, racks[index].saturated,
                       racks[index].sticking});
    racks_kw += rack.kw;
    asked_lpm += racks[index].target_lpm;
    coming_lpm += racks[index].wanted_lpm;
  }
  auto supervised =
      plant::step(gains.supervisor, std::move(supervisor_state_), demands, pressure_set_kpa_, now);
  supervisor_state_ = std::move(supervised.state);
  supervisor = supervised.outputs;
  if (automatic) pressure_set_kpa_ = supervisor.set_point_kpa;

  hold_pressure(asked_lpm, now);
  cool_supply(racks_kw, coming_lpm, now);
  if (!automatic) return;
  for (std::size_t pump = 0; pump < shown.pump_speed.size(); ++pump)
    plant.set_pump_speed(pump, pressure.speed);
  plant.set_facility_valve(supply.valve_command);
}

void cooling_rig::hold_pressure(double asked_lpm, plant::instant now) {
  plant::differential_pressure_inputs pressed;
  pressed.automatic = automatic;
  pressed.set_point_kpa = pressure_set_kpa_;
  pressed.dp_kpa = reading(shown.dp_kpa, now);
  pressed.flow_lpm = reading(shown.flow_lpm, now);
  pressed.asked_lpm = reading(asked_lpm, now);
  for (const double speed : shown.pump_speed) pressed.pumps.push_back({speed > 0.15, reading(speed, now)});
  auto pumped = plant::step(gains.pressure, std::move(pressure_state_), pressed, now);
  pressure_state_ = std::move(pumped.state);
  pressure = pumped.outputs;
}

void cooling_rig::cool_supply(double racks_kw, double coming_lpm, plant::instant now) {
  plant::supply_temperature_inputs cooled;
  cooled.automatic = automatic;
  cooled.set_point_c = set_point_c;
  cooled.supply_c = reading(shown.supply_c, now);
  cooled.return_c = reading(shown.return_c, now);
  cooled.flow_lpm = reading(shown.flow_lpm, now);
  cooled.facility_c = reading(shown.facility_c, now);
  if (facility_flow_known) cooled.facility_lpm = reading(shown.facility_flow_lpm, now);
  cooled.racks_kw = reading(racks_kw, now);
  cooled.asked_lpm = reading(coming_lpm, now);
  cooled.valve = reading(shown.facility_valve, now);
  auto warmed = plant::step(gains.supply, std::move(supply_state_), cooled, now);
  supply_state_ = std::move(warmed.state);
  supply = warmed.outputs;
}

}  // namespace busbar::bench
