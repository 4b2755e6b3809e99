// Loop 2: the pressure difference that the CDU holds across its racks, by pump speed.
//
// Heads go with the square of speed, so the loop works in squares: feed-forward from the pump's nameplate
// curve and the CDU's own drop, PI on the rest. When one of n pumps is lost the others step at once by what
// the curve says they must give, and the PI waits until the pressure sensor has seen it.
#pragma once

#include <optional>
#include <vector>

#include "actors/plant/loop_mode.hpp"
#include "actors/plant/pi_logic.hpp"

namespace busbar::plant {

struct differential_pressure_gains {
  double shutoff_kpa = 480.0;  // one pump at full speed, no flow
  double droop_kpa_per_lpm2 = 0.0018;
  double cdu_kpa_per_lpm2 = 3.7e-4;  // exchanger, filter and pipes of the CDU
  pi_gains head{0.6, 4.0, 4.0, 0.0,
                1.0, 1e9, 0.0};  // kp without unit: head per kPa of error; limits are those of speed
  double rate_per_s = 0.20;      // of speed
  double least_speed = 0.20;
  double most_speed = 1.0;
  double fail_safe_speed =
      0.75;  // enough for full flow on nominal plants; its own controller takes over below
  double flow_filter_s = 7.0;
  double asked_answer_s = 10.0;  // racks' valves, sensor and filter: how late flow follows what is asked for
  double answer_s = 3.5;  // pumps and sensor: pressure is compared with the set-point as it can follow it
  double settle_s = 3.0;  // after a pump is lost: PI waits until the sensor has seen the step
  double catch_up = 1.3;  // then head per kPa still missing, once
  double period_s = 1.0;
  loop_limits limits;
};

struct pump_input {
  std::optional<bool>
      running;        // nothing: not known, which is not running for the sum and no reason for a step either
  measurement speed;  // 0..1
};

struct differential_pressure_inputs {
  bool automatic = true;
  double set_point_kpa = 120.0;
  measurement dp_kpa;     // needed
  measurement flow_lpm;   // for the feed-forward; the last one stays
  measurement asked_lpm;  // sum of the racks' flow targets: what is coming before it flows
  std::vector<pump_input> pumps;
};

struct differential_pressure_state {
  pi_state head;
  std::optional<instant> last;
  std::optional<instant> missing_since;
  std::optional<instant> wait_until;
  std::optional<double> flow_lpm;
  std::optional<double> answered_lpm;  // what racks asked for, as flow and its filter can follow it
  std::optional<double> reference_kpa;
  double speed = 0.0;
  std::size_t running = 0;
};

struct differential_pressure_outputs {
  double speed = 0.0;  // for every pump that runs
  loop_mode mode = loop_mode::automatic;
  bool stepped = false;    // this step answered a lost pump
  bool saturated = false;  // full speed does not reach the set-point
  std::size_t running = 0;
};

struct differential_pressure_step {
  differential_pressure_state state;
  differential_pressure_outputs outputs;
};

differential_pressure_step step(const differential_pressure_gains& gains, differential_pressure_state state,
                                const differential_pressure_inputs& inputs, instant now);

}  // namespace busbar::plant
