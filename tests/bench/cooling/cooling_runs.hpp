// The events behind each figure of `deploy/bench cooling`, each a run on one plant, recorded as rows. Figures
// are computed from rows alone, here and in tests/bench/recompute.py.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/bench/cooling/cooling_rig.hpp"

namespace busbar::bench {

// One row of a run: what really was, not what sensors showed.
struct cooling_row {
  double at_s = 0;  // since the event
  double supply_error_c = 0;
  double dp_kpa = 0;
  double dp_set_kpa = 0;
  double flow_share = 0;  // of the first rack, over rated
  double pump_kw = 0;
  double hottest_c = 0;
};
using cooling_rows = std::vector<cooling_row>;

inline constexpr int plants_drawn = 20;
inline constexpr double drawn_spread = 0.20;

sim::physics::plant_design plant_number(int number);

cooling_rows run_steady(int plant, double load);           // T6, T9: 600 s after 900 s of settling
cooling_rows run_step(int plant, double from, double to);  // T7, T8
cooling_rows run_pump_loss(int plant);                     // T10: ten rows a second
cooling_rows run_valve_closes(int plant);                  // T9
cooling_rows run_stiction(int plant);                      // T20: 5 % stiction
struct day_rows {
  cooling_rows controlled;  // a row a minute
  cooling_rows constant;    // constant flow sized for the peak, at the same hottest die
};
day_rows run_day(int plant);  // T11

double steady_c(const cooling_rows& rows);
double steady_dp_kpa(const cooling_rows& rows);
double overshoot_c(const cooling_rows& rows);
double settle_s(const cooling_rows& rows, double band_c);
double pump_recovery_s(const cooling_rows& rows);
double pump_dip(const cooling_rows& rows);
double stiction_swing(const cooling_rows& rows);
double energy_saved(const day_rows& rows);
double hottest_c(const cooling_rows& rows);

}  // namespace busbar::bench
