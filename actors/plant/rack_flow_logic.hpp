// Loop 3: a rack's flow, by its valve.
//
// Feed-forward: litres per kW as a map of inlet temperature, times measured power. A slow PI on the return
// temperature trims the map (its outlet is a rule of constant temperature); a PI on flow corrects the valve's
// nameplate; the inner position loop leaves a sticking valve at rest. While any GPU is on the flow never
// falls under its floor, whatever the other inputs say.
#pragma once

#include <array>
#include <optional>

#include "actors/plant/loop_mode.hpp"
#include "actors/plant/pi_logic.hpp"
#include "actors/plant/position_logic.hpp"

namespace busbar::plant {

struct flow_map_point {
  double inlet_c;
  double lpm_per_kw;
};

// Between the points straight lines, beyond them the nearest.
struct flow_map {
  std::array<flow_map_point, 5> points{{{25, 0.4}, {30, 0.5}, {35, 0.7}, {40, 0.9}, {45, 1.3}}};
  double lpm_per_kw(double inlet_c) const;
};

struct rack_flow_gains {
  flow_map map;
  double rated_lpm = 119.0;
  double most_lpm = 150.0;
  double floor_share = 0.30;  // of rated, while any GPU is on
  double kw_per_lpm_k = 0.0669;
  // the branch's nameplate: opening for a flow
  double valve_kv_max = 14.0;
  double valve_rangeability = 40.0;
  double pipe_kpa = 78.0;                                      // at rated flow, without the valve
  pi_gains flow{0.20, 8.0, 8.0, -0.35, 0.35, 0.03, 0.0};       // opening per unit of relative flow error
  pi_gains trim{0.004, 120.0, 60.0, -0.25, 0.25, 0.005, 1.0};  // share of flow per K of return error
  position_gains position{.dead_band = 0.012,
                          .fine = false,
                          .dwell_s = 15.0,
                          .coarse_jump = 0.0133,
                          .jump_share = 1.1};  // a few percent of flow matter less than rest
  loop_limits limits;
  double flow_dead_band = 0.012;  // relative error that is not integrated
  double flow_filter_s = 6.0;
  double answer_s = 6.0;  // valve and pressure: flow is compared with the target of this long ago
  double return_filter_s = 10.0;
  double power_filter_s = 1.0;
  double inlet_filter_s = 60.0;
  double inlet_band_k = 0.8;   // the map's inlet rests likewise: at 40 C it asks for 8 % more flow a kelvin
  double target_band = 0.015;  // the target rests while what is asked for stays this near, relative
  double flow_rate_per_s = 0.12;  // of rated flow, the target: no faster than a facility valve can follow
  double period_s = 1.0;
  double fail_safe_opening = 0.85;  // lost for good: open, because loss of flow harms faster
};

struct rack_flow_inputs {
  bool automatic = true;
  std::optional<bool> any_gpu_on;    // nothing: taken as on, the floor stays
  measurement rack_kw;               // needed
  measurement inlet_c;               // needed
  measurement dp_kpa;                // for the feed-forward; the last one stays
  std::optional<double> dp_set_kpa;  // what the CDU is asked to hold: where pressure is going
  measurement flow_lpm;              // for the correction
  measurement return_c;              // for the trim
  measurement valve;                 // read-back, 0..1
};

struct rack_flow_state {
  pi_state flow;
  pi_state trim;
  position_state position;
  std::optional<instant> last;
  std::optional<instant> missing_since;
  std::optional<double> kw, inlet_c, dp_kpa, flow_lpm, return_c;  // filtered
  std::optional<double> mapped_inlet_c;                           // what the map is asked with
  std::optional<double> target_lpm;
  bool moving = false;  // the target
  std::optional<double> reference_lpm,
      compared_lpm;       // the target as flow, and the filtered meter, can follow it
  double steady_s = 0.0;  // for how long power has been steady
};

struct rack_flow_outputs {
  double valve_command = 0.0;
  double target_lpm = 0.0;  // what the valve is to let through now
  double wanted_lpm = 0.0;  // where the target is going: what the CDU should make ready for
  loop_mode mode = loop_mode::automatic;
  bool at_floor = false;
  bool sticking = false;   // the valve moves in jumps only
  bool saturated = false;  // the valve is open and the flow is short: the supervisor must raise pressure
};

struct rack_flow_step {
  rack_flow_state state;
  rack_flow_outputs outputs;
};

rack_flow_step step(const rack_flow_gains& gains, rack_flow_state state, const rack_flow_inputs& inputs,
                    instant now);

// Nameplate of the branch, both ways; the supervisor asks it too.
double opening_for_flow(const rack_flow_gains& gains, double lpm, double dp_kpa);
double pressure_for_flow(const rack_flow_gains& gains, double lpm, double opening);

}  // namespace busbar::plant
