// The product's loops around the simulator's plant: one step of both is one second of the plant's time. The
// gains are those of the nominal plant, whatever plant is put in.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "actors/plant/differential_pressure_logic.hpp"
#include "actors/plant/rack_flow_logic.hpp"
#include "actors/plant/supervisor_logic.hpp"
#include "actors/plant/supply_temperature_logic.hpp"
#include "daemon/sim/physics/cooling_plant.hpp"

namespace busbar::bench {

struct loop_gains {
  plant::supply_temperature_gains supply;
  plant::differential_pressure_gains pressure;
  plant::rack_flow_gains rack;
  plant::supervisor_gains supervisor;
};

class cooling_rig {
 public:
  cooling_rig(sim::physics::plant_design design, loop_gains gains, double load);

  // One control period: plant, readings, loops, commands. `look` is called every 100 ms of it, for fast
  // events.
  void step(const std::function<void()>& look = {});
  void run(double seconds);
  void set_load(double share);
  void set_load(std::size_t rack, double share);

  sim::physics::cooling_plant plant;
  loop_gains gains;
  double set_point_c = 40.0;
  bool automatic = true;                             // all loops
  bool facility_flow_known = true;                   // else the CDU has no meter on its facility side
  std::vector<std::optional<double>> forced_valves;  // a rack's valve moved by a hand: its loop is in manual
  void adopt_pressure_set(double kpa) {
    pressure_set_kpa_ = kpa;
  }  // what the CDU is read to hold, at a restart
  double pressure_set_kpa() const { return pressure_set_kpa_; }
  const plant::supply_temperature_state& supply_state() const { return supply_state_; }
  double elapsed_s() const { return plant.elapsed_s(); }

  plant::supply_temperature_outputs supply;
  plant::differential_pressure_outputs pressure;
  std::vector<plant::rack_flow_outputs> racks;
  plant::supervisor_outputs supervisor;
  sim::physics::plant_shown shown;

 private:
  void control();
  void hold_pressure(double asked_lpm, plant::instant now);
  void cool_supply(double racks_kw, double coming_lpm, plant::instant now);

  plant::supply_temperature_state supply_state_;
  plant::differential_pressure_state pressure_state_;
  std::vector<plant::rack_flow_state> rack_states_;
  plant::supervisor_state supervisor_state_;
  double pressure_set_kpa_ = 120.0;
};

}  // namespace busbar::bench
