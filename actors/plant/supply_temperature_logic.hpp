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

// Gains with four digits come from a search over the 20 drawn plants of deploy/bench cooling.
struct supply_temperature_gains {
  exchanger_model exchanger;
  pi_gains correction{0.2698, 18.8, 15.0, -8.0, 8.0, 0.6, 0.08};  // K per K
  position_gains position{.dead_band = 0.004};
  loop_limits limits;
  double period_s = 1.0;
  double rate_per_s = 0.10;     // of the facility valve
  double pipe_l = 150.0;        // coolant between the racks' cold plates and the exchanger
  double plate_s = 6.0;         // heat's own lag through dies and plates
  double sensor_lag_s = 2.0;    // of the return temperature
  double lead_s = 1.156;        // valve travel and sensor lag that the prediction makes up for
  double cold_l = 63.0;         // coolant between the exchanger and the supply sensor
  double off_filter_s = 34.39;  // of what the model is off by, at rated flow
  double flow_filter_s = 2.086;
  double bias_filter_s = 9.704;     // measured return against the model's
  double supply_l = 63.0;           // coolant between the supply sensor and the cold plates
  double answer_rate_per_s = 0.12;  // of rated flow: as fast as racks let their flow follow what they want
  double answer_s = 4.818;          // valves, pumps and sensor behind that
  double facility_filter_s = 20.0;
  double valve_learn_s = 8.0;         // measured facility flow against the nameplate's, valve at rest
  double ua_learn_s = 154.1;          // the exchanger's UA, at steady heat
  double ua_spread = 0.2;             // how far a nameplate's UA is off, standard deviation
  double temperature_doubt_k = 0.15;  // of the steady difference between two sensors
  double settled_s = 5.0;  // of steady heat, before what is seen is taken for the model's error at full pace
  double pace_moving = 0.1;    // of that learning until then: most of what is seen is on its way, not wrong
  double steady_share = 0.05;  // of heat: steady while power stays this near to its mean
  double steady_s = 90.0;  // before UA is learned: dies, pipes and both sides of the exchanger have settled
  double supply_filter_s = 1.528;
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
  measurement facility_lpm;  // corrects what the nameplate says of valve and exchanger
  measurement racks_kw;
  measurement asked_lpm;  // sum of the racks' flow targets: leads the measured flow by the valves' stroke
  measurement valve;      // read-back, 0..1
};

struct supply_temperature_state {
  pi_state correction;
  position_state position;
  std::optional<instant> last;
  std::optional<instant> missing_since;
  std::optional<double> flow_lpm, return_c, facility_c, supply_c, asked_lpm;  // filtered
  std::optional<double> ramped_lpm, answered_lpm,
      compared_lpm;       // asked flow as it arrives, as the sensor, as the filter shows it
  double heat_kw = 0;     // leaving the plates, by the model
  double modelled_c = 0;  // what the return sensor would show, by the model
  double bias_c = 0;      // measured return less modelled
  std::array<double, 8> pipe_c{};
  std::array<double, 6> hose_c{};
  bool pipe_filled = false;
  std::array<double, 3> cold_c{};
  double expected_c = 0;  // what the supply sensor would show, by the model and the stem's read position
  exchanger_learned learned;
  std::optional<double> facility_lpm;  // filtered like the sensor of the coolant's flow
  std::optional<double> mean_kw, mean_supply_c;
  double steady_for_s = 0;
  double off_c = 0;               // supply less expected: what the nameplate does not know
  double hot_now_c = 0;           // entering the exchanger
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
