// A centrifugal pump by its affinity laws: head, efficiency, power, slew and coast-down, and what cavitation
// and air take away.
#pragma once

namespace busbar::sim::physics {

struct pump_design {
  double shutoff_kpa = 480.0;          // at full speed, no flow
  double droop_kpa_per_lpm2 = 0.0018;  // head lost to flow at full speed
  double best_lpm = 260.0;             // of best efficiency at full speed
  double peak_efficiency = 0.76;
  double motor_efficiency = 0.93;
  double drive_efficiency = 0.97;
  double slew_per_s = 0.20;       // of full speed
  double coast_s = 0.5;           // time constant after power is gone
  double needed_suction_m = 3.0;  // NPSHr
};

struct suction {
  double inlet_kpa = 250.0;  // absolute
  double celsius = 40.0;
  double void_fraction = 0.0;  // air in the coolant
};

class pump {
 public:
  pump(pump_design wanted, double speed) : design_(wanted), command_(speed), speed_(speed) {}

  void command(double speed);  // fraction of full speed
  void fail() { failed_ = true; }
  void restore() { failed_ = false; }
  void advance(double dt_s);

  bool failed() const { return failed_; }
  double speed() const { return speed_; }
  double commanded() const { return command_; }
  // Shutoff head at the present speed under these inlet conditions; head = this - droop * flow^2.
  double shutoff_kpa(const suction& inlet) const;
  // Flow against this head; a check valve lets none back.
  double flow_lpm(double head_kpa, const suction& inlet) const;
  double efficiency(double lpm) const;
  double shaft_kw(double lpm, double head_kpa) const;  // all of it ends as heat in the coolant
  double electric_kw(double lpm, double head_kpa) const;
  const pump_design& design() const { return design_; }

 private:
  pump_design design_;
  double command_;
  double speed_;
  bool failed_ = false;
};

}  // namespace busbar::sim::physics
