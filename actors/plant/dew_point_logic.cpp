#include "actors/plant/dew_point_logic.hpp"

#include <algorithm>
#include <cmath>

namespace busbar::plant {

double dew_point_c(double air_c, double relative_humidity_percent) {
  const double gamma = std::log(relative_humidity_percent / 100.0) + 17.62 * air_c / (243.12 + air_c);
  return 243.12 * gamma / (17.62 - gamma);
}

dew_point_step step(const dew_point_limits& limits, dew_point_state state, const measurement& air_c,
                    const measurement& humidity_percent, const measurement& supply_c, instant now) {
  dew_point_outputs out;
  const instant age = limits.common.max_age;
  const auto air = usable(air_c, now, age);
  const auto humidity = usable(humidity_percent, now, age);
  const bool known = air && humidity && *humidity > 0 && *humidity <= 100 && *air > -40 && *air < 80;
  out.mode = hold_or_fail(state.missing_since, known, now, limits.common.hold);
  if (known) {
    out.dew_point_c = dew_point_c(*air, *humidity);
    state.floor_c = *out.dew_point_c + limits.margin_k;
  } else if (out.mode == loop_mode::fail_safe) {
    state.floor_c = std::max(state.floor_c.value_or(limits.blind_floor_c), limits.blind_floor_c);
  }
  out.floor_c = state.floor_c.value_or(limits.blind_floor_c);
  const auto supply = usable(supply_c, now, age);
  if (out.dew_point_c && supply) out.alarm = *supply < *out.dew_point_c + limits.alarm_k;
  return {state, out};
}

}  // namespace busbar::plant
