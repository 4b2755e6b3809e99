// Pipes, filters, the expansion vessel and leaks. Pressures in kPa, flows in litres per minute.
#pragma once

namespace busbar::sim::physics {

// dp = smooth Q^1.75 + square Q^2: turbulent flow in smooth pipes, and fittings. Series add; both terms are
// >= 0.
struct resistance {
  double smooth = 0;
  double square = 0;

  double drop_kpa(double lpm) const;
  // The flow at this drop, from a guess (the last flow): a few Newton steps, always inside the bounds set by
  // each term alone.
  double flow_lpm(double kpa, double guess) const;
};

struct filter_design {
  double clean_kpa_per_lpm2 = 4e-5;
  double clog_time_s = 0.0;  // e-folding time of the ramp while clogging; 0: it stays clean
};

class filter {
 public:
  explicit filter(filter_design wanted) : design_(wanted) {}
  void advance(double dt_s);
  void clog_over(double seconds) { design_.clog_time_s = seconds; }
  void clog_to(double factor) { factor_ = factor; }
  double factor() const { return factor_; }  // of the clean drop: 1.5 alarm, 2 service
  double kpa_per_lpm2() const { return design_.clean_kpa_per_lpm2 * factor_; }

 private:
  filter_design design_;
  double factor_ = 1.0;
};

struct vessel_design {
  double volume_l = 24.0;
  double gas_l = 12.0;        // at fill pressure and temperature
  double fill_kpa = 250.0;    // absolute, at pump inlet
  double relief_kpa = 700.0;  // 6 bar gauge
};

// p V = const. Coolant that leaks makes room for gas; coolant that warms takes it.
class expansion_vessel {
 public:
  explicit expansion_vessel(vessel_design wanted) : design_(wanted) {}
  void lose(double litres) { lost_l_ += litres; }
  void refill() { lost_l_ = 0; }
  void expand_to(double litres) { expanded_l_ = litres; }  // growth of the loop's coolant since filling
  double pressure_kpa() const;                             // absolute
  double level() const;                                    // coolant in the vessel, 0..1
  double lost_l() const { return lost_l_; }

 private:
  double gas_l() const;

  vessel_design design_;
  double lost_l_ = 0;
  double expanded_l_ = 0;
};

struct leak_design {
  double area_mm2 = 0.0;
  double sensor_delay_s = 5.0;  // pooling and wicking after the first millilitres
  double wetting_ml = 5.0;
  bool on_supply = true;
};

class leak {
 public:
  explicit leak(leak_design wanted) : design_(wanted) {}
  // Gauge pressures at the hole. Returns litres lost.
  double advance(double dt_s, double supply_gauge_kpa, double return_gauge_kpa, double density);
  double flow_ml_per_min() const { return flow_ml_per_min_; }
  bool detector_wet() const { return wet_for_s_ >= design_.sensor_delay_s; }
  void stop() { design_.area_mm2 = 0; }
  void open_to(double area_mm2) { design_.area_mm2 = area_mm2; }

 private:
  leak_design design_;
  double flow_ml_per_min_ = 0;
  double pooled_ml_ = 0;
  double wet_for_s_ = 0;
};

// The hole through which this much leaks at this gauge pressure.
double leak_area_mm2(double ml_per_min, double gauge_kpa, double density);

}  // namespace busbar::sim::physics
