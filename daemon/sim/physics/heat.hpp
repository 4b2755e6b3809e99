// The heat path: a die over a cold plate, coolant in cells that carry enthalpy, and a counterflow exchanger.
// Each piece hands on exactly what it takes: the plant's balance closes because there is nowhere else for
// heat to go.
#pragma once

#include <vector>

namespace busbar::sim::physics {

struct die_design {
  double die_kj_per_k = 0.05;
  double plate_kj_per_k = 0.385;  // 1 kg of copper
  double die_to_plate_k_per_kw = 12.0;
  double plate_base_k_per_kw = 4.0;   // conduction, whatever the flow
  double plate_film_k_per_kw = 14.0;  // convection at rated flow; grows as flow^-0.8
};

// Two nodes. One step is implicit: stable at any step length, exact in heat.
class die_on_plate {
 public:
  die_on_plate(double start_c) : die_c_(start_c), plate_c_(start_c) {}
  // kW given to the coolant, mean over the step. flow_fraction: of rated flow.
  double advance(const die_design& path, double dt_s, double kw, double coolant_c, double flow_fraction);
  double die_c() const { return die_c_; }
  double stored_kj(const die_design& path) const {
    return path.die_kj_per_k * die_c_ + path.plate_kj_per_k * plate_c_;
  }

 private:
  double die_c_;
  double plate_c_;
};

// Coolant in a pipe, hose, manifold or cold plate: well-mixed cells in a row, each of the same mass. The
// delay is mass over flow.
class cell_row {
 public:
  cell_row(double mass_kg, int cells, double start_c);
  // Takes mass_flow * dt of coolant at inlet_c, spreads kw over the cells, gives back the mean enthalpy that
  // left. Steps in which more than one cell's mass would pass are divided.
  double advance(double dt_s, double kg_per_s, double inlet_kj_per_kg, double kw);
  double outlet_c() const;
  double mean_c() const;
  double outlet_kj_per_kg() const { return kj_per_kg_.back(); }
  double stored_kj() const;
  double volume_l() const;

 private:
  double cell_kg_;
  std::vector<double> kj_per_kg_;
};

struct exchanger_design {
  double ua_kw_per_k = 70.0;  // at rated flow on both sides
  double rated_lpm = 475.0;
  double facility_rated_lpm = 500.0;
  double fouling = 0.0;  // share of UA lost
};

// kW from the hot to the cold stream.
double exchanged_kw(const exchanger_design& design, double hot_lpm, double hot_c, double cold_lpm,
                    double cold_c);
double counterflow_effectiveness(double ntu, double capacity_ratio);

}  // namespace busbar::sim::physics
