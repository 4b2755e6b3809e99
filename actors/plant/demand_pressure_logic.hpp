// The pressure set-point out of what racks ask for, where no rack's control valve is read: feed-forward by
// the square of the hungriest rack's share of its rated flow, and a slow trim on the flow that is measured at
// its connector.
#pragma once

#include <optional>
#include <vector>

namespace busbar::plant {

struct demand_pressure_gains {
  double rated_kpa = 60;  // gives every rack its rated flow
  double least_kpa = 20;
  double most_kpa = 170;
  double short_share = 0.97;  // measured below this share of what is asked: raise
  double ample_share = 1.10;  // all above it: lower
  double trim_kpa_per_s = 0.15;
  double most_trim_kpa = 40;
};

struct asked_flow {
  double asked_lpm = 0;
  double rated_lpm = 0;                // 0: not declared; it then counts as asking for all
  std::optional<double> measured_lpm;  // at its connector of the CDU
};

struct demand_pressure_state {
  double trim_kpa = 0;
};

struct demand_pressure_step {
  demand_pressure_state state;
  double set_point_kpa = 0;
};

demand_pressure_step step(const demand_pressure_gains& gains, demand_pressure_state state,
                          const std::vector<asked_flow>& racks, double dt_s);

}  // namespace busbar::plant
