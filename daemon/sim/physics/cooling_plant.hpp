// One CDU and its racks, whole: hydraulic network, heat from each die to the facility water, sensors, and
// what breaks.
//
// Hydraulics are quasi-static and solved every 10 ms of plant time (skipped where nothing moved), heat every
// 100 ms. No clock, no threads, no I/O; the same design, commands and steps give the same plant.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "daemon/sim/physics/plant_design.hpp"

namespace busbar::sim::physics {

// What really is. Temperatures in C, flows in LPM, pressures in kPa, power in kW.
struct rack_truth {
  double kw = 0;
  double flow_lpm = 0;
  double inlet_c = 0;
  double return_c = 0;
  double valve = 0;
  double removed_kw = 0;
  double hottest_die_c = 0;
  double supply_valve = 1;  // isolation
  double return_valve = 1;
};

struct tray_truth {
  double flow_lpm = 0;
  double outlet_c = 0;
};

struct plant_truth {
  double supply_c = 0;
  double return_c = 0;
  double flow_lpm = 0;
  double dp_kpa = 0;
  double system_kpa = 0;  // absolute, at the pumps' inlet
  double vessel_level = 0;
  double facility_flow_lpm = 0;
  double facility_return_c = 0;
  double facility_valve = 0;
  double exchanged_kw = 0;
  double pump_kw = 0;  // electric, all pumps
  double filter_kpa = 0;
  double void_fraction = 0;
  double leak_ml_per_min = 0;
  bool leak_detector_wet = false;
  std::vector<double> pump_speed;
};

// What sensors show: NaN where one is dead.
struct rack_shown {
  double kw = 0;
  double flow_lpm = 0;
  double inlet_c = 0;
  double return_c = 0;
  double valve = 0;
};

struct plant_shown {
  double supply_c = 0;
  double return_c = 0;
  double flow_lpm = 0;
  double dp_kpa = 0;
  double system_kpa = 0;
  double vessel_level = 0;
  double facility_c = 0;
  double facility_flow_lpm = 0;
  double facility_valve = 0;
  std::vector<double> pump_speed;
  std::vector<rack_shown> racks;
};

enum class rack_valve { supply, return_, flow };
enum class plant_sensor { supply, return_, flow, dp, system, facility_c, facility_flow };
enum class rack_sensor { flow, inlet, return_ };

class cooling_plant {
 public:
  explicit cooling_plant(plant_design wanted);
  ~cooling_plant();
  cooling_plant(cooling_plant&&) noexcept;
  cooling_plant& operator=(cooling_plant&&) noexcept;

  // commands
  void set_load(std::size_t rack, double share);  // 0..1 of the range between idle and full
  void set_rack_valve(std::size_t rack, double opening);
  void set_isolation_valve(std::size_t rack, rack_valve which, double opening);
  // Of a design with trays: what each draws, until told anew.
  void set_tray_heat(std::size_t rack, std::size_t tray, double direct_kw, const std::vector<double>& die_kw);
  void set_facility_valve(double opening);
  void set_pump_speed(std::size_t pump, double speed);
  // Loads, positions and speeds at once, without stroke or slew: where a run begins.
  void place(double rack_opening, double facility_valve, double pump_speed);

  // what breaks
  void fail_pump(std::size_t pump);
  void restore_pump(std::size_t pump);
  void jam_rack_valve(std::size_t rack, bool stuck);
  // The actuator itself, for what breaks in it; positions are changed by commands alone.
  actuator& valve_of(std::size_t rack, rack_valve which);
  const actuator& valve_of(std::size_t rack, rack_valve which) const;
  void clog_filter(double e_fold_s);
  void clog_filter_to(double factor);   // of the clean drop
  void trap_air(double void_fraction);  // purges by itself, time constant 20 min
  void open_leak(leak_design hole);
  void set_leak_area(double area_mm2);
  void refill();  // what was lost is back
  void set_facility_c(double celsius);
  void set_facility_kpa(double kpa);
  void fault(plant_sensor which, sensor_fault kind, double amount = 0);
  void fault(std::size_t rack, rack_sensor which, sensor_fault kind, double amount = 0);
  // Share of its design flow that a tray gets: 1 as built, 0 a quick disconnect that is not seated.
  void obstruct_tray(std::size_t rack, std::size_t tray, double share);

  void advance(double dt_s);
  double elapsed_s() const;

  plant_truth truth() const;
  rack_truth rack(std::size_t index) const;
  tray_truth tray(std::size_t rack, std::size_t tray) const;
  double die_c(std::size_t rack, std::size_t tray, std::size_t die) const;
  bool valves_move() const;  // of any rack
  plant_shown sample();      // one reading of each sensor: call once a control period

  // |in - out - stored| / in since construction, over every die, cell and stream; 0 before any heat.
  double heat_balance_error() const;
  const plant_design& design() const;

 private:
  struct parts;
  std::unique_ptr<parts> parts_;
};

}  // namespace busbar::sim::physics
