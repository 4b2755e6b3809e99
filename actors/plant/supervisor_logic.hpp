// Loop 4: the pressure set-point. The widest rack valve is kept between two openings: wider means that some
// rack is short of pressure, narrower that pumps push against valves. Up is fast and led by what the racks
// ask for; down is slow.
#pragma once

#include <optional>
#include <vector>

#include "actors/plant/loop_mode.hpp"
#include "actors/plant/rack_flow_logic.hpp"

namespace busbar::plant {

struct supervisor_gains {
  rack_flow_gains rack;  // the branch's nameplate
  double widest_low = 0.80;
  double widest_high = 0.90;
  double least_kpa = 50.0;
  double most_kpa = 170.0;
  double up_kpa_per_s = 30.0;    // towards what racks ask for, when it is far
  double slow_kpa_per_s = 0.20;  // otherwise, both ways: slow enough for the pressure loop to follow unseen
  double trim_kpa_per_s = 0.15;  // while the widest valve is outside its band
  double most_trim_kpa = 40.0;
  double ask_filter_s = 2.0;
  double far_kpa = 10.0;
  double move_kpa = 2.0;  // the set-point rests while what is asked for stays this near
  double period_s = 1.0;
  loop_limits limits;
};

struct rack_demand {
  bool automatic = true;  // a valve in manual takes no part
  double target_lpm = 0.0;
  measurement valve;
  bool saturated = false;
  bool sticking = false;  // its valve moves in jumps only: no reason to move pressure for its opening
};

struct supervisor_state {
  std::optional<double> set_point_kpa;
  std::optional<double> asked_kpa;
  double trim_kpa = 0.0;
  bool moving = false;
  std::optional<instant> last;
  std::optional<instant> missing_since;
};

struct supervisor_outputs {
  double set_point_kpa = 0.0;
  loop_mode mode = loop_mode::automatic;
  std::optional<std::size_t> widest;  // the rack that governs
};

struct supervisor_step {
  supervisor_state state;
  supervisor_outputs outputs;
};

// present_kpa: the set-point in force when the loop starts (restart, return from manual): it moves on from
// there.
supervisor_step step(const supervisor_gains& gains, supervisor_state state,
                     const std::vector<rack_demand>& racks, double present_kpa, instant now);

}  // namespace busbar::plant
