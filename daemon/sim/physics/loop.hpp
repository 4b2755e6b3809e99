// One coolant loop: a CDU that holds a pressure difference, and the racks' trays as parallel branches. Heat
// balance is exact by construction: what a branch's electronics put in either left with the coolant or is
// stored in its plates.
//
// Units: kW, kJ, litres per minute, kPa, kelvin, seconds. No clock, no threads, no I/O.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace busbar::sim::physics {

// PG25 between 30 and 45 C: heat in kW = 0.0669 x LPM x K.
inline constexpr double kw_per_lpm_k = 0.0669;

// One tray. The plate's heat capacity follows from the lag that it shows at nominal flow.
class branch {
 public:
  branch(double conductance_lpm_per_sqrt_kpa, double nominal_lpm, double lag_s = 10.0);

  // Power and flow are constant over dt: the solution is exact.
  void advance(double dt_s, double power_kw, double dp_kpa);

  double flow_lpm() const { return flow_lpm_; }
  double rise_k() const { return rise_k_; }  // outlet above inlet
  double removed_kw() const { return kw_per_lpm_k * flow_lpm_ * rise_k_; }
  double stored_kj() const { return capacity_kj_per_k_ * rise_k_; }
  double put_in_kj() const { return put_in_kj_; }  // since construction
  double taken_out_kj() const { return taken_out_kj_; }

 private:
  double conductance_;
  double capacity_kj_per_k_;
  double flow_lpm_ = 0;
  double rise_k_ = 0;
  double put_in_kj_ = 0;
  double taken_out_kj_ = 0;
};

// A GPU's temperature: inlet + 0.03 K/W x its power, behind a first-order lag.
class die {
 public:
  explicit die(double start_c) : temperature_c_(start_c) {}
  void advance(double dt_s, double inlet_c, double power_w, double flow_fraction);
  double temperature_c() const { return temperature_c_; }

 private:
  double temperature_c_;
};

struct rack_reading {
  double flow_lpm = 0;
  double return_c = 0;
  double removed_kw = 0;
};

class loop {
 public:
  struct design {
    double dp_set_kpa = 60;
    double supply_c = 32;
    std::size_t pumps = 2;
    double ramp_s = 1.5;        // lag of the pressure difference behind the pumps
    double facility_lpm = 400;  // primary side
    double facility_supply_c = 26;
  };

  explicit loop(design wanted);

  std::size_t add_rack();
  std::size_t add_branch(std::size_t rack, double conductance, double nominal_lpm);

  void set_power(std::size_t rack, std::size_t index, double kw);
  void set_working_pumps(double count) { working_pumps_ = count; }
  void advance(double dt_s);

  double dp_kpa() const { return dp_kpa_; }
  double supply_c() const { return design_.supply_c; }
  rack_reading rack(std::size_t index) const;
  const branch& at(std::size_t rack, std::size_t index) const { return racks_[rack][index].pipe; }
  double power_kw(std::size_t rack, std::size_t index) const { return racks_[rack][index].power_kw; }
  double pump_speed_percent() const;
  double facility_flow_lpm() const { return design_.facility_lpm; }
  double facility_supply_c() const { return design_.facility_supply_c; }
  double facility_return_c() const;
  // |in - out - stored| / in over all branches since construction; 0 before any heat.
  double imbalance() const;

 private:
  struct tap {
    branch pipe;
    double power_kw = 0;
  };

  void step(double dt_s);

  design design_;
  std::vector<std::vector<tap>> racks_;
  double working_pumps_;
  double dp_kpa_;
};

}  // namespace busbar::sim::physics
