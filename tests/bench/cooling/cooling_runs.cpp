#include "tests/bench/cooling/cooling_runs.hpp"

#include <algorithm>
#include <cmath>

#include "daemon/sim/physics/load_pattern.hpp"

namespace busbar::bench {

namespace {

using sim::physics::cooling_plant;
using sim::physics::load_pattern;
using sim::physics::load_share;
using sim::physics::plant_design;

constexpr double settle_first_s = 900.0;
constexpr double pump_load = 0.8;
constexpr double stiction_load = 0.6;
constexpr double day_s = 86'400.0;
constexpr double die_tolerance_k = 0.5;

cooling_row row_of(const cooling_rig& rig, double since_s) {
  const auto truth = rig.plant.truth();
  const auto rack = rig.plant.rack(0);
  return {.at_s = rig.elapsed_s() - since_s,
          .supply_error_c = truth.supply_c - rig.set_point_c,
          .dp_kpa = truth.dp_kpa,
          .dp_set_kpa = rig.pressure_set_kpa(),
          .flow_share = rack.flow_lpm / rig.plant.design().rack_rated_lpm,
          .pump_kw = truth.pump_kw,
          .hottest_c = rack.hottest_die_c};
}

cooling_rows record(cooling_rig& rig, double seconds, double since_s, int rows_per_s = 1) {
  cooling_rows rows;
  int tenth = 0;
  for (double done = 0; done < seconds; done += 1.0) {
    rig.step([&rows, &rig, &tenth, since_s, rows_per_s] {
      ++tenth;
      if (tenth % (10 / rows_per_s) == 0) rows.push_back(row_of(rig, since_s));
    });
  }
  return rows;
}

}  // namespace

plant_design plant_number(int number) {
  plant_design nominal;
  if (number == 0) return nominal;
  return sim::physics::drawn_around(nominal, drawn_spread, static_cast<std::uint64_t>(number));
}

cooling_rows run_steady(int plant, double load) {
  cooling_rig rig(plant_number(plant), {}, load);
  rig.run(settle_first_s);
  return record(rig, 600, rig.elapsed_s());
}

cooling_rows run_step(int plant, double from, double to) {
  cooling_rig rig(plant_number(plant), {}, from);
  rig.run(settle_first_s);
  rig.set_load(to);
  return record(rig, 300, rig.elapsed_s());
}

cooling_rows run_pump_loss(int plant) {
  cooling_rig rig(plant_number(plant), {}, pump_load);
  rig.run(settle_first_s);
  rig.plant.fail_pump(1);  // right after a reading: the loop learns of it a whole period later
  return record(rig, 60, rig.elapsed_s(), 10);
}

cooling_rows run_valve_closes(int plant) {
  cooling_rig rig(plant_number(plant), {}, pump_load);
  rig.run(settle_first_s);
  rig.forced_valves[3] = 0.0;
  return record(rig, 120, rig.elapsed_s());
}

cooling_rows run_stiction(int plant) {
  plant_design design = plant_number(plant);
  const double drawn = design.rack_actuator.stiction / plant_design{}.rack_actuator.stiction;
  design.rack_actuator.stiction = 0.05 * drawn;
  cooling_rig rig(design, {}, stiction_load);
  rig.run(settle_first_s + 900);
  return record(rig, 1200, rig.elapsed_s());
}

namespace {

// Constant flow: valves and pumps stand, the supply temperature is held at the set-point by the same loop.
cooling_rows constant_day(const plant_design& design, double valve, double speed, std::uint64_t seed) {
  cooling_rig rig(design, {}, load_share(load_pattern::day, 0, seed));
  rig.automatic = true;
  rig.gains.pressure.least_speed = rig.gains.pressure.most_speed = speed;
  for (auto& forced : rig.forced_valves) forced = valve;
  rig.run(settle_first_s);
  const double since = rig.elapsed_s();
  cooling_rows rows;
  for (double at = 0; at < day_s; at += 60) {
    double kw = 0;
    double hottest = -273;
    for (int second = 0; second < 60; ++second) {
      rig.set_load(load_share(load_pattern::day, at + second, seed));
      rig.step();
      kw += rig.plant.truth().pump_kw / 60;
      hottest = std::max(hottest, rig.plant.rack(0).hottest_die_c);
    }
    rows.push_back(row_of(rig, since));
    rows.back().pump_kw = kw;
    rows.back().hottest_c = hottest;
  }
  return rows;
}

cooling_rows controlled_day(const plant_design& design, std::uint64_t seed) {
  cooling_rig rig(design, {}, load_share(load_pattern::day, 0, seed));
  rig.run(settle_first_s);
  const double since = rig.elapsed_s();
  cooling_rows rows;
  for (double at = 0; at < day_s; at += 60) {
    double kw = 0;
    double hottest = -273;
    for (int second = 0; second < 60; ++second) {
      rig.set_load(load_share(load_pattern::day, at + second, seed));
      rig.step();
      kw += rig.plant.truth().pump_kw / 60;
      hottest = std::max(hottest, rig.plant.rack(0).hottest_die_c);
    }
    rows.push_back(row_of(rig, since));
    rows.back().pump_kw = kw;
    rows.back().hottest_c = hottest;
  }
  return rows;
}

// The hottest die of constant flow at the pattern's peak, at rest: no day needed to know it.
double peak_die_c(const plant_design& design, double valve, double speed, double peak) {
  cooling_rig rig(design, {}, peak);
  rig.gains.pressure.least_speed = rig.gains.pressure.most_speed = speed;
  for (auto& forced : rig.forced_valves) forced = valve;
  rig.run(settle_first_s);
  return rig.plant.rack(0).hottest_die_c;
}

}  // namespace

day_rows run_day(int plant) {
  const plant_design design = plant_number(plant);
  const auto seed = static_cast<std::uint64_t>(plant) + 100;
  day_rows days;
  days.controlled = controlled_day(design, seed);
  const double wanted = hottest_c(days.controlled);
  double peak = 0;
  for (double at = 0; at < day_s; at += 10) peak = std::max(peak, load_share(load_pattern::day, at, seed));
  // The speed, valves at the middle of the supervisor's band, at which constant flow keeps the same hottest
  // die.
  const double valve = 0.85;
  double low = 0.2;
  double high = 1.0;
  for (int round = 0; round < 12; ++round) {
    const double speed = 0.5 * (low + high);
    const double here = peak_die_c(design, valve, speed, peak);
    if (std::abs(here - wanted) < 0.1 * die_tolerance_k) {
      low = high = speed;
      break;
    }
    (here > wanted ? low : high) = speed;
  }
  days.constant = constant_day(design, valve, 0.5 * (low + high), seed);
  return days;
}

double steady_c(const cooling_rows& rows) {
  double worst = 0;
  for (const cooling_row& row : rows) worst = std::max(worst, std::abs(row.supply_error_c));
  return worst;
}

double steady_dp_kpa(const cooling_rows& rows) {
  double worst = 0;
  for (const cooling_row& row : rows) worst = std::max(worst, std::abs(row.dp_kpa - row.dp_set_kpa));
  return worst;
}

double overshoot_c(const cooling_rows& rows) {
  double worst = 0;
  for (const cooling_row& row : rows) worst = std::max(worst, row.supply_error_c);
  return worst;
}

double settle_s(const cooling_rows& rows, double band_c) {
  double last = 0;
  for (const cooling_row& row : rows) {
    if (std::abs(row.supply_error_c) > band_c) last = row.at_s;
  }
  return last;
}

double pump_recovery_s(const cooling_rows& rows) {
  double last = 0;
  for (const cooling_row& row : rows) {
    if (std::abs(row.dp_kpa / row.dp_set_kpa - 1.0) > 0.05) last = row.at_s;
  }
  return last;
}

double pump_dip(const cooling_rows& rows) {
  double worst = 0;
  for (const cooling_row& row : rows) worst = std::max(worst, 1.0 - row.dp_kpa / row.dp_set_kpa);
  return worst;
}

double stiction_swing(const cooling_rows& rows) {
  double low = 1e9;
  double high = -1e9;
  for (const cooling_row& row : rows) {
    low = std::min(low, row.flow_share);
    high = std::max(high, row.flow_share);
  }
  return 0.5 * (high - low);
}

double hottest_c(const cooling_rows& rows) {
  double worst = -273;
  for (const cooling_row& row : rows) worst = std::max(worst, row.hottest_c);
  return worst;
}

double energy_saved(const day_rows& rows) {
  double controlled = 0;
  double constant = 0;
  for (const cooling_row& row : rows.controlled) controlled += row.pump_kw;
  for (const cooling_row& row : rows.constant) constant += row.pump_kw;
  return constant > 0 ? 1.0 - controlled / constant : 0.0;
}

}  // namespace busbar::bench
