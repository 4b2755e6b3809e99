// One rack of the plant: its valve, its trays in parallel, its hoses.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "daemon/sim/physics/plant_design.hpp"

namespace busbar::sim::physics {

struct tray_model {
  double heat_share = 1.0;  // of the rack's heat
  double flow_share = 1.0;  // of the rack's flow when nothing is obstructed
  double opening = 1.0;     // obstruction: 1 none
  double alike = 1.0;       // dies that each modelled one stands for
  cell_row coolant;
  std::vector<die_on_plate> dies = {};
  std::vector<double> spread = {};  // each die's thermal path, around 1
  bool told = false;                // its heat is what follows, not a share of the rack's load
  double direct_kw = 0;
  std::vector<double> die_kw = {};
};

// Heat books, kJ since the start.
struct heat_books {
  double in = 0;
  double out = 0;
};

class rack_model {
 public:
  rack_model(const plant_design& plant, std::uint64_t seed);

  // The rack as one resistance at this viscosity (ratio to that at 40 C) and density, valve included.
  resistance branch(double viscosity_factor, double density) const;
  // Coolant in at inlet, out at the return enthalpy that comes back. Adds the electric heat to the books.
  double advance(double dt_s, double inlet_kj_per_kg, double kg_per_s, heat_books& books);
  void sense(double dt_s);

  double stored_kj() const;
  double coolant_l() const;
  double tray_flow_lpm(std::size_t tray) const;
  double kw() const { return kw_; }
  double removed_kw() const { return removed_kw_; }
  double hottest_die_c() const;
  double supply_end_c() const { return supply_.outlet_c(); }
  double return_end_c() const { return return_.outlet_c(); }

  actuator valve;
  std::array<actuator, 2> isolation;  // supply, return; they count where the design has them
  double load = 0;
  double flow_lpm = 0;
  std::vector<tray_model> trays;
  sensor flow_sensor;
  sensor inlet_sensor;
  sensor return_sensor;
  stream noise;

 private:
  double advance_tray(tray_model& tray, double dt_s, double kg_per_s, double inlet_kj_per_kg, double inlet_c,
                      heat_books& books);
  double open_share() const;

  plant_design plant_;
  cell_row supply_;
  cell_row return_;
  double kw_ = 0;
  double removed_kw_ = 0;
};

}  // namespace busbar::sim::physics
