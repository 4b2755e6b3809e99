// Water that no detector has met yet: pressure and level of a closed loop fall together, by more than cooling
// coolant explains. Raises a suspicion, an alarm for people; it trips nothing.
#pragma once

#include <deque>
#include <optional>

#include "actors/plant/measurement.hpp"

namespace busbar::plant {

struct leak_suspicion_limits {
  double vessel_l = 24.0;
  double gas_l = 12.0;        // at the pressure below
  double gas_at_kpa = 250.0;  // absolute
  double coolant_l = 260.0;   // in the loop
  double expansion_per_k = 4.8e-4;
  double suspect_l_per_min = 0.08;  // by pressure and by level, each
  double restless_k_per_min = 1.5;  // coolant that warms or cools faster hides a leak: no judgement then
  instant calm = std::chrono::seconds{90};     // and for so long after
  instant confirm = std::chrono::seconds{15};  // of unbroken evidence
  double load_share =
      0.10;  // load this far from its lagged self will move temperatures that no sensor shows yet
  double load_lag_s = 60.0;
  double agreement = 4.0;  // the two estimates within this factor
  instant window = std::chrono::seconds{40};
  std::size_t least_points = 20;
  instant max_age = std::chrono::seconds{3};
  instant keep = std::chrono::minutes{5};  // the suspicion stays this long after the last evidence
};

enum class leak_suspicion { unknown, none, suspected };
std::string_view name_of(leak_suspicion verdict);

struct loop_point {
  instant at{};
  double pressure_kpa = 0;
  double level = 0;
  double coolant_c = 0;
};

struct leak_suspicion_state {
  std::deque<loop_point> points;
  std::optional<instant> evidence_since;
  std::optional<instant> evidence_at;  // last confirmed
  std::optional<instant> restless_at;
  std::optional<double> lagged_kw;
  std::optional<instant> last;
};

struct leak_suspicion_outputs {
  leak_suspicion verdict = leak_suspicion::unknown;
  std::optional<double> loss_l_per_min;  // the smaller of the two estimates
};

struct leak_suspicion_step {
  leak_suspicion_state state;
  leak_suspicion_outputs outputs;
};

// level 0..1 of the vessel; coolant_c the loop's mean temperature, load_kw what heats it. Pressure absolute.
leak_suspicion_step step(const leak_suspicion_limits& limits, leak_suspicion_state state,
                         const measurement& pressure_kpa, const measurement& level,
                         const measurement& coolant_c, const measurement& load_kw, instant now);

}  // namespace busbar::plant
