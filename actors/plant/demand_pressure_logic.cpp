#include "actors/plant/demand_pressure_logic.hpp"

#include <algorithm>

namespace busbar::plant {

demand_pressure_step step(const demand_pressure_gains& gains, demand_pressure_state state,
                          const std::vector<asked_flow>& racks, double dt_s) {
  double share = 0;
  bool starved = false;
  bool ample = !racks.empty();  // an unmeasured rack may be the hungry one
  for (const asked_flow& rack : racks) {
    share = std::max(share, rack.rated_lpm > 0 ? rack.asked_lpm / rack.rated_lpm : 1.0);
    starved = starved || (rack.measured_lpm && *rack.measured_lpm < gains.short_share * rack.asked_lpm);
    ample = ample && rack.measured_lpm && *rack.measured_lpm > gains.ample_share * rack.asked_lpm;
  }
  const double forward = gains.rated_kpa * share * share;
  if (starved) state.trim_kpa += gains.trim_kpa_per_s * dt_s;
  if (ample) state.trim_kpa -= gains.trim_kpa_per_s * dt_s;
  // No wind-up: what the bounds swallow is not kept.
  const double lowest = std::max(-gains.most_trim_kpa, std::min(0.0, gains.least_kpa - forward));
  const double highest = std::min(gains.most_trim_kpa, std::max(0.0, gains.most_kpa - forward));
  state.trim_kpa = std::clamp(state.trim_kpa, lowest, highest);
  return {state, std::clamp(forward + state.trim_kpa, gains.least_kpa, gains.most_kpa)};
}

}  // namespace busbar::plant
