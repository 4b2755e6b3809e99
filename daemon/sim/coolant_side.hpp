// A site's coolant: the plant's physics, the CDU's own controller on it, what faults do to both, and what
// sensors show. Moves in ticks of a tenth of a second. Pure: the site says what time it is.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/sim/cdu_controller.hpp"
#include "daemon/sim/faults.hpp"
#include "daemon/sim/physics/cooling_plant.hpp"
#include "daemon/sim/site_data.hpp"

namespace busbar::sim {

using physics::rack_valve;

inline constexpr instant coolant_tick = std::chrono::milliseconds(100);
inline constexpr std::size_t cdu_pumps = 2;

std::string_view name_of(rack_valve which);  // supply, return, flow

class coolant_side {
 public:
  coolant_side(const sku_data& sku, const profile& timings, int racks, std::uint64_t seed);

  cdu_controller& controller() { return controller_; }
  const cdu_controller& controller() const { return controller_; }
  const physics::cooling_plant& plant() const { return plant_; }
  const physics::plant_shown& shown() const {
    return shown_;
  }  // of the last tick; NaN where a sensor is dead
  double room_c() const { return 24.0; }
  double room_humidity_percent() const { return 45.0; }

  void set_heat(std::size_t rack, std::size_t tray, double direct_kw, const std::vector<double>& die_kw) {
    plant_.set_tray_heat(rack, tray, direct_kw, die_kw);
  }
  // 0 closed .. 1 open; the valve takes its stroke.
  void command(std::size_t rack, rack_valve which, double opening);
  double commanded(std::size_t rack, rack_valve which) const;
  double position(std::size_t rack, rack_valve which) const;        // where it is
  double shown_position(std::size_t rack, rack_valve which) const;  // where it says it is

  void advance(double dt_s) { plant_.advance(dt_s); }  // within a tick
  void tick(const fault_book& faults, instant now);    // at its end
  void apply(const fault_book& faults, instant now);   // when a fault begins or ends

  bool pump_works(std::size_t pump) const { return pump < working_; }
  double working_pumps() const { return static_cast<double>(working_); }
  // Something moves by itself that somebody may wait for: valves, coolant through a hole, hot dies, too
  // little flow.
  bool restless() const;
  // Of a rack's coolant at the CDU, as its sensors have it: "supply", "r01_flow". The names of all, for
  // faults.
  static std::vector<std::string> sensor_names(int racks);

 private:
  double* sensor(const std::string& name);
  void spoil_sensors(const fault_book& faults, instant now);
  void apply_valves(const fault_book& faults, instant now);
  double leak_area() const;
  bool broken(const char* name) const;

  physics::cooling_plant plant_;
  cdu_controller controller_;
  int racks_;
  double drift_step_ = 0;
  physics::plant_shown shown_;
  std::map<std::string, double> frozen_;
  std::set<std::string> spoiled_;
  std::size_t working_ = cdu_pumps;
  struct hole {
    int rack = 0;  // 1-based; 0: the CDU's own
    double area_mm2 = 0;
  };
  std::vector<hole> holes_;
  bool was_leaking_ = false;
  std::set<std::uint64_t> airs_;                                 // faults whose air is in
  std::map<std::pair<std::size_t, rack_valve>, double> creeps_;  // opening a second
  std::set<std::pair<std::size_t, rack_valve>> liars_;
};

}  // namespace busbar::sim
