// A control valve: its characteristic, and an actuator with stroke, dead band and two-parameter stiction.
// Openings are fractions.
#pragma once

#include <cstdint>

namespace busbar::sim::physics {

enum class characteristic { equal_percentage, linear };

struct valve_trim {
  characteristic shape = characteristic::equal_percentage;
  double kv_max = 11.0;  // m3/h at 1 bar
  double rangeability = 40.0;
  double leakage = 1e-4;  // of kv_max, closed: class IV

  double kv(double opening) const;
  // kPa at this flow. Infinite resistance does not occur: a closed valve leaks.
  double drop_kpa(double lpm, double opening, double density) const;
  double square_kpa_per_lpm2(double opening, double density) const;
};

enum class fail_action { in_place, open, closed };

struct actuator_design {
  double stroke_s = 15.0;
  double dead_band = 0.01;  // play: motion lost at every reversal
  double stiction = 0.02;   // what the motor must cross at a reversal before the stem slips; the jump is
                            // stiction - dead_band
  fail_action on_power_loss = fail_action::in_place;
};

// The motor follows the command at the stroke's speed; the stem follows the motor through stick and slip.
class actuator {
 public:
  actuator(actuator_design wanted, double opening);

  void command(double opening);  // clamped to 0..1; full close and full open drive the stem onto its seat
  void advance(double dt_s);
  double position() const { return stem_; }
  double commanded() const { return command_; }
  // Where the motor stands, which is what a position sensor on its shaft shows whatever the stem does.
  double motor() const { return motor_; }
  bool moving() const { return motor_ != goal(); }
  // Free again, it goes on from where its stem stands.
  void jam(bool stuck);
  void stick(double stiction) { design_.stiction = stiction; }
  // The stem goes by itself, the motor stands: until the motor takes it along again.
  void creep(double by);
  void lose_power();

 private:
  double goal() const;

  actuator_design design_;
  double command_;
  double motor_;
  double stem_;
  double stopped_at_;  // motor position when it last came to rest or reversed
  int direction_ = 1;
  bool sliding_ = false;
  bool jammed_ = false;
};

}  // namespace busbar::sim::physics
