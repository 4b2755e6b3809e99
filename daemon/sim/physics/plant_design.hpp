// Everything that a simulated cooling plant is made of, as data, and how a family of plants is drawn around
// it.
#pragma once

#include <cstdint>
#include <vector>

#include "daemon/sim/physics/control_valve.hpp"
#include "daemon/sim/physics/heat.hpp"
#include "daemon/sim/physics/hydraulics.hpp"
#include "daemon/sim/physics/pump.hpp"
#include "daemon/sim/physics/sensor.hpp"

namespace busbar::sim::physics {

// A tray as it stands, whose heat is told (cooling_plant::set_tray_heat) instead of following from a load.
struct tray_design {
  double rated_lpm = 7.0;
  int dies = 4;
};

// One CDU with n pumps, an exchanger and a facility side, and racks in parallel behind it. Defaults: four
// racks of 132 kW at 40 C.
struct plant_design {
  int racks = 4;
  int pumps = 3;           // one more than full flow needs
  int trays_per_rack = 1;  // 1: the rack's trays as one of 27, for long runs
  int dies_per_tray = 1;
  std::uint64_t seed = 1;

  // rack
  double rack_kw = 132.0;    // at full load
  double idle_share = 0.10;  // of rack_kw, at load 0
  double die_share =
      0.70;  // of a tray's heat that passes through a die; the rest enters the coolant directly
  double rack_dies = 72.0;
  double rack_rated_lpm = 119.0;
  double rack_pipe_kpa = 78.0;   // trays, manifold and hoses at rated flow and 40 C, without the valve
  double turbulent_share = 0.5;  // of it that goes with flow^1.75; the rest with its square
  double hose_s = 8.0;           // transport at rated flow, each way
  double tray_s = 3.0;
  valve_trim rack_valve{characteristic::equal_percentage, 14.0, 40.0, 1e-4};
  actuator_design rack_actuator;
  bool isolation = false;  // valves on supply and return besides
  valve_trim isolation_valve{characteristic::linear, 90.0, 40.0, 1e-6};
  actuator_design isolation_actuator{5.0, 0.0, 0.0};
  die_design die;
  std::vector<tray_design>
      trays;  // of every rack; not empty: trays_per_rack, dies_per_tray, heat and die shares do not count

  // CDU
  double cdu_kpa = 70.0;  // exchanger and pipes at rated flow
  double cdu_rated_lpm = 475.0;
  double cdu_hold_s = 8.0;  // coolant in the unit, each side of the exchanger, over rated flow
  pump_design pump;
  filter_design filter{6e-5, 0.0};
  vessel_design vessel;
  exchanger_design exchanger{110.0, 475.0, 500.0, 0.0};

  // facility side
  double facility_c = 27.0;
  double facility_kpa = 150.0;
  double facility_pipe_kpa = 40.0;  // at rated facility flow
  valve_trim facility_valve{characteristic::equal_percentage, 34.0, 30.0, 1e-4};
  actuator_design facility_actuator;

  // sensors
  sensor_design temperature{2.0, 0.1, 0.0};
  sensor_design flow{2.0, 0.0, 0.01};
  sensor_design pressure{2.0, 0.5, 0.0};
  double position_noise = 0.002;

  // operation
  double start_c = 40.0;
};

// Each physical parameter multiplied by a factor drawn evenly from 1 - spread .. 1 + spread; counts and the
// start stay.
plant_design drawn_around(plant_design nominal, double spread, std::uint64_t seed);

}  // namespace busbar::sim::physics
