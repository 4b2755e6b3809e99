// Loop 1: the temperature of the coolant that leaves the CDU, by the facility valve.
//
// The feed-forward inverts the exchanger's nameplate for the heat that is on its way: rack power becomes a
// return temperature that travels through a model of the pipes, corrected by the measured return. The PI does
// not move the valve itself: it moves the temperature that the inversion aims at. So the gain from PI to
// temperature is about 1 K/K at every flow and load (the map is the gain schedule), and the integral time
// alone is scaled by flow, because transport slows as flow falls.
#pragma once

#include <array>
#include <optional>

#include "actors/plant/exchanger_logic.hpp"
#include "actors/plant/loop_mode.hpp"
#include "actors/plant/pi_logic.hpp"
#include "actors/plant/position_logic.hpp"

namespace busbar::plant {

struct supply_temperature_gains {
  exchanger_model exchanger;
  pi_gains correction{0.20, 20, 15.0, -8.0, 8.0, 0.6, 0.08};  // K per K
  position_gains position{.dead_band = 0.004};
  loop_limits limits;
  double period_s = 1.0;
  double rate_per_s = 0.10;    // of the facility valve
  double pipe_l = 150.0;       // coolant between the racks' cold plates and the exchanger
  double plate_s = 6.0;        // heat's own lag through dies and plates
  double sensor_lag_s = 2.0;   // of the return temperature
  double lead_s = 2.0;         // valve travel and sensor lag that the prediction makes up for
  double cold_l = 63.0;        // coolant between the exchanger and the supply sensor
  double off_filter_s = 40.0;  // of what the model is off by, at rated flow
  double flow_filter_s = 3.0;
  double bias_filter_s = 12.0;  // measured return against the model's
  double answer_s = 12.0;      // how long racks' valves and the flow sensor take to follow what racks ask for
  double answer_down_s = 8.0;  // the same while they ask for less
  double facility_filter_s = 20.0;
  double supply_filter_s = 1.5;
  double least_opening = 0.02;
  double fail_safe_opening = 1.0;  // cold rather than hot; the CDU's own controller keeps the dew-point floor
  double schedule_exponent = 0.5;  // integral time ~ (rated flow / flow)^this
};

struct supply_temperature_inputs {
  bool automatic = true;
  double set_point_c = 40.0;
  std::optional<double> floor_c;  // dew-point floor; the higher of the two governs
  measurement supply_c;           // needed
  measurement return_c;           // the rest improves the feed-forward; without it the last one stays
  measurement flow_lpm;
  measurement facility_c;
  measurement racks_kw;
  measurement asked_lpm;  // sum of the racks' flow targets: leads the measured flow by the valves' stroke
  measurement valve;      // read-back, 0..1
};

struct supply_temperature_state {
  pi_state correction;
  position_state position;
  std::optional<instant> last;
  std::optional<instant> missing_since;
  std::optional<double> flow_lpm, return_c, facility_c, supply_c, asked_lpm, answered_lpm;  // filtered
  double heat_kw = 0;     // leaving the plates, by the model
  double modelled_c = 0;  // what the return sensor would show, by the model
  double bias_c = 0;      // measured return less modelled
  std::array<double, 8> pipe_c{};
  bool pipe_filled = false;
  std::array<double, 3> cold_c{};
  double expected_c = 0;  // what the supply sensor would show, by the model and the stem's read position
  double off_c = 0;       // supply less expected: what the nameplate does not know
  double hot_now_c = 0;   // entering the exchanger
  std::optional<double> opening;  // wanted, after the rate limit
  double set_point_c = 0;
};

struct supply_temperature_outputs {
  double valve_command = 0;
  loop_mode mode = loop_mode::automatic;
  double aim_c = 0;          // what the inversion aimed at
  double set_point_c = 0;    // after the floor
  bool saturated = false;    // the valve is at an end: the set-point cannot be held
  bool feed_forward = true;  // false: the prediction leans on values that are no longer there
};

struct supply_temperature_step {
  supply_temperature_state state;
  supply_temperature_outputs outputs;
};

supply_temperature_step step(const supply_temperature_gains& gains, supply_temperature_state state,
                             const supply_temperature_inputs& inputs, instant now);

}  // namespace busbar::plant
