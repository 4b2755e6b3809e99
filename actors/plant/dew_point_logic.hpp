// Loop 4a: the lowest supply temperature that the room's air allows. Condensation on a cold hose is water
// where it should not be.
#pragma once

#include <optional>

#include "actors/plant/loop_mode.hpp"

namespace busbar::plant {

double dew_point_c(double air_c, double relative_humidity_percent);

struct dew_point_limits {
  double margin_k = 2.0;  // floor above the dew point
  double alarm_k = 3.0;   // supply closer than this: alarm
  double blind_floor_c =
      27.0;  // when the air is not known for longer than the hold: above what a hall's dew point reaches
  loop_limits common;
};

struct dew_point_state {
  std::optional<double> floor_c;
  std::optional<instant> missing_since;
};

struct dew_point_outputs {
  double floor_c = 0;
  std::optional<double> dew_point_c;
  std::optional<bool> alarm;  // nothing: air or supply not known
  loop_mode mode = loop_mode::automatic;
};

struct dew_point_step {
  dew_point_state state;
  dew_point_outputs outputs;
};

dew_point_step step(const dew_point_limits& limits, dew_point_state state, const measurement& air_c,
                    const measurement& humidity_percent, const measurement& supply_c, instant now);

}  // namespace busbar::plant
