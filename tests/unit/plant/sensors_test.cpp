#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "actors/plant/dew_point_logic.hpp"
#include "actors/plant/heat_balance_logic.hpp"
#include "actors/plant/leak_suspicion_logic.hpp"
#include "actors/plant/validation_logic.hpp"
#include "tests/bench/cooling/cooling_rig.hpp"

namespace busbar::plant {
namespace {

using std::chrono::seconds;
constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinite = std::numeric_limits<double>::infinity();

TEST(measurement, nothing_but_a_good_finite_fresh_value_is_usable) {
  const instant now = seconds{100};
  EXPECT_EQ(usable(good(4.0, now), now, seconds{3}), 4.0);
  for (const double bad : {nan, infinite, -infinite}) EXPECT_FALSE(usable(good(bad, now), now, seconds{3}));
  for (const quality each : {quality::unknown, quality::bad, quality::stale}) {
    EXPECT_FALSE(usable({4.0, each, now}, now, seconds{3}));
  }
  EXPECT_FALSE(usable(good(4.0, seconds{96}), now, seconds{3}));
  EXPECT_FALSE(usable(good(4.0, seconds{101}), now, seconds{3}));  // from the future
  EXPECT_FALSE(usable({}, now, seconds{3}));
}

struct watched {
  sensor_limits limits{.least = 0, .most = 100, .most_rate_per_s = 5, .freeze_spread = 0.01};
  sensor_state state;
  instant now = seconds{0};
  validated see(double value, quality state_of = quality::good, int age_s = 0) {
    now += seconds{1};
    sensor_step next = step(limits, state, {value, state_of, now - seconds{age_s}}, now);
    state = next.state;
    return next.outcome;
  }
};

TEST(validation, names_what_is_wrong_and_lets_none_of_it_through) {
  const struct {
    double value;
    quality state;
    int age_s;
    sensor_verdict wanted;
  } cases[] = {{nan, quality::good, 0, sensor_verdict::no_value},
               {infinite, quality::good, 0, sensor_verdict::no_value},
               {50, quality::unknown, 0, sensor_verdict::no_value},
               {50, quality::bad, 0, sensor_verdict::no_value},
               {50, quality::stale, 0, sensor_verdict::stale},
               {50, quality::good, 9, sensor_verdict::stale},
               {-1, quality::good, 0, sensor_verdict::out_of_range},
               {101, quality::good, 0, sensor_verdict::out_of_range},
               {80, quality::good, 0, sensor_verdict::too_fast}};
  for (const auto& each : cases) {
    watched sensor;
    for (int s = 0; s < 5; ++s) EXPECT_EQ(sensor.see(50 + 0.1 * s).verdict, sensor_verdict::valid);
    const validated seen = sensor.see(each.value, each.state, each.age_s);
    EXPECT_EQ(seen.verdict, each.wanted) << name_of(each.wanted);
    EXPECT_FALSE(usable(seen.reading, sensor.now, seconds{3})) << name_of(each.wanted);
  }
}

TEST(validation, a_sensor_that_never_moves_is_frozen_after_a_minute_and_not_before) {
  watched sensor;
  for (int s = 0; s < 60; ++s) EXPECT_EQ(sensor.see(50).verdict, sensor_verdict::valid) << s;
  EXPECT_EQ(sensor.see(50).verdict, sensor_verdict::frozen);
  watched alive;
  for (int s = 0; s < 300; ++s) EXPECT_EQ(alive.see(50 + 0.02 * (s % 2)).verdict, sensor_verdict::valid) << s;
}

TEST(validation, comes_back_after_three_good_readings) {
  watched sensor;
  for (int s = 0; s < 5; ++s) sensor.see(50 + 0.1 * s);
  sensor.see(nan);
  EXPECT_EQ(sensor.see(50.2).verdict, sensor_verdict::recovering);
  EXPECT_EQ(sensor.see(50.3).verdict, sensor_verdict::recovering);
  EXPECT_EQ(sensor.see(50.4).verdict, sensor_verdict::valid);
}

TEST(validation, the_same_reading_twice_proves_no_recovery) {
  watched sensor;
  for (int s = 0; s < 5; ++s) sensor.see(50 + 0.1 * s);
  sensor.see(nan);
  const measurement once = good(50.2, sensor.now);
  for (int s = 0; s < 3; ++s) {
    sensor_step next = step(sensor.limits, sensor.state, once, sensor.now);
    sensor.state = next.state;
    EXPECT_NE(next.outcome.verdict, sensor_verdict::valid);
  }
}

TEST(vote, median_of_three_names_the_outlier) {
  const instant now = seconds{10};
  const voted result = vote({good(40.0, now), good(40.2, now), good(55.0, now)}, 1.0, now, seconds{3});
  EXPECT_EQ(usable(result.reading, now, seconds{3}), 40.2);
  EXPECT_EQ(result.outlier, 2u);
  EXPECT_EQ(result.believed, 3);
}

TEST(vote, two_that_contradict_each_other_are_unknown_and_so_are_three_opinions) {
  const instant now = seconds{10};
  EXPECT_FALSE(
      usable(vote({good(40, now), good(45, now), {}}, 1.0, now, seconds{3}).reading, now, seconds{3}));
  EXPECT_FALSE(usable(vote({good(40, now), good(45, now), good(50, now)}, 1.0, now, seconds{3}).reading, now,
                      seconds{3}));
  EXPECT_FALSE(usable(vote({}, 1.0, now, seconds{3}).reading, now, seconds{3}));
}

TEST(vote, two_that_agree_are_averaged_and_a_nan_has_no_vote) {
  const instant now = seconds{10};
  const voted result = vote({good(nan, now), good(40.0, now), good(40.4, now)}, 1.0, now, seconds{3});
  EXPECT_NEAR(*usable(result.reading, now, seconds{3}), 40.2, 1e-9);
  EXPECT_EQ(result.believed, 2);
}

TEST(dew_point, agrees_with_known_values) {
  EXPECT_NEAR(dew_point_c(25, 60), 16.7, 0.05);
  EXPECT_NEAR(dew_point_c(27, 60), 18.6, 0.05);
  EXPECT_NEAR(dew_point_c(32, 60), 23.3, 0.1);
}

TEST(dew_point, floor_is_two_kelvin_above_and_the_alarm_at_three) {
  const instant now = seconds{10};
  const auto close = step(dew_point_limits{}, {}, good(32, now), good(60, now), good(25.9, now), now);
  EXPECT_NEAR(close.outputs.floor_c, 25.2, 0.2);
  EXPECT_EQ(close.outputs.alarm, true);
  const auto far = step(dew_point_limits{}, {}, good(25, now), good(60, now), good(30, now), now);
  EXPECT_EQ(far.outputs.alarm, false);
}

TEST(dew_point, unknown_air_holds_the_floor_then_takes_the_careful_one_and_never_says_no_alarm) {
  dew_point_state state;
  auto first = step(dew_point_limits{}, state, good(25, seconds{1}), good(50, seconds{1}),
                    good(30, seconds{1}), seconds{1});
  const double known = first.outputs.floor_c;
  state = first.state;
  for (int s = 2; s < 60; ++s) {
    const instant now = seconds{s};
    auto next = step(dew_point_limits{}, state, good(nan, now), good(0, now), good(30, now), now);
    state = next.state;
    EXPECT_FALSE(next.outputs.alarm.has_value());
    if (s < 31) {
      EXPECT_EQ(next.outputs.floor_c, known) << s;
    }
    if (s > 33) {
      EXPECT_GE(next.outputs.floor_c, dew_point_limits{}.blind_floor_c) << s;
    }
  }
}

// A rack's balance over the simulated plant, all sensors with their noise.
struct balance_watch {
  bench::cooling_rig rig{sim::physics::plant_design{}, {}, 0.7};
  heat_balance_state state;
  heat_balance_outputs seen;
  void second() {
    rig.step();
    const instant now = from_seconds(rig.elapsed_s());
    const auto& rack = rig.shown.racks[0];
    const auto value = [now](double v) { return std::isfinite(v) ? good(v, now) : measurement{}; };
    auto next = step(heat_balance_limits{}, state, value(rack.kw), value(rack.flow_lpm), value(rack.inlet_c),
                     value(rack.return_c), now);
    state = next.state;
    seen = next.outputs;
  }
};

TEST(heat_balance, t21_finds_a_five_percent_flow_error_within_five_minutes) {
  for (const double error : {0.05, -0.05}) {
    balance_watch watch;
    for (int s = 0; s < 1500; ++s) {
      watch.second();
      EXPECT_NE(watch.seen.verdict, balance_verdict::drifting) << s;
      EXPECT_NE(watch.seen.verdict, balance_verdict::broken) << s;
    }
    ASSERT_EQ(watch.seen.verdict, balance_verdict::closed);
    watch.rig.plant.fault(0, sim::physics::rack_sensor::flow, sim::physics::sensor_fault::scaled, error);
    int found = 0;
    for (int s = 1; s <= 300 && found == 0; ++s) {
      watch.second();
      if (watch.seen.verdict == balance_verdict::drifting) found = s;
    }
    EXPECT_GT(found, 0) << error;
  }
}

TEST(heat_balance, a_dead_sensor_makes_the_verdict_unknown_and_never_closed) {
  balance_watch watch;
  for (int s = 0; s < 900; ++s) watch.second();
  watch.rig.plant.fault(0, sim::physics::rack_sensor::return_, sim::physics::sensor_fault::dead);
  for (int s = 0; s < 60; ++s) {
    watch.second();
    EXPECT_EQ(watch.seen.verdict, balance_verdict::unknown);
  }
}

// The loop as the CDU's pressure and level sensors show it.
struct leak_watch {
  bench::cooling_rig rig{sim::physics::plant_design{}, {}, 0.7};
  leak_suspicion_state state;
  leak_suspicion_outputs seen;
  void second() {
    rig.step();
    const instant now = from_seconds(rig.elapsed_s());
    const auto value = [now](double v) { return std::isfinite(v) ? good(v, now) : measurement{}; };
    double kw = 0;
    for (const auto& rack : rig.shown.racks) kw += rack.kw;
    auto next =
        step(leak_suspicion_limits{}, state, value(rig.shown.system_kpa), value(rig.shown.vessel_level),
             value(0.5 * (rig.shown.supply_c + rig.shown.return_c)), value(kw), now);
    state = next.state;
    seen = next.outputs;
  }
};

TEST(leak_suspicion, c14_slow_weep_is_suspected_within_a_minute_with_all_detectors_dry) {
  leak_watch watch;
  for (int s = 0; s < 600; ++s) watch.second();
  ASSERT_EQ(watch.seen.verdict, leak_suspicion::none);
  // Pressure falls by about 18 % in four minutes; no detector is reached for an hour.
  watch.rig.plant.open_leak({sim::physics::leak_area_mm2(600, 150, 1014), 3600, 5, true});
  const double before = watch.rig.plant.truth().system_kpa;
  int found = 0;
  for (int s = 1; s <= 240; ++s) {
    watch.second();
    EXPECT_FALSE(watch.rig.plant.truth().leak_detector_wet);
    if (found == 0 && watch.seen.verdict == leak_suspicion::suspected) found = s;
  }
  EXPECT_GT(found, 0);
  EXPECT_LE(found, 60);
  EXPECT_NEAR(watch.rig.plant.truth().system_kpa / before, 0.82, 0.06);
}

TEST(leak_suspicion, a_load_drop_that_cools_the_loop_is_no_leak) {
  leak_watch watch;
  for (int s = 0; s < 600; ++s) watch.second();
  for (const double load : {0.1, 1.0, 0.3, 0.9}) {
    watch.rig.set_load(load);
    for (int s = 0; s < 300; ++s) {
      watch.second();
      EXPECT_NE(watch.seen.verdict, leak_suspicion::suspected) << load << ' ' << s;
    }
  }
}

TEST(leak_suspicion, without_its_sensors_it_is_unknown_and_a_suspicion_survives_the_gap) {
  leak_suspicion_state state;
  leak_suspicion_outputs seen;
  for (int s = 0; s < 120; ++s) {
    const instant now = seconds{s};
    const bool dead = s >= 60;
    auto next = step(leak_suspicion_limits{}, state, dead ? measurement{} : good(250 - 0.2 * s, now),
                     good(0.5 - 0.0004 * s, now), good(45, now), good(300, now), now);
    state = next.state;
    seen = next.outputs;
    if (s < 15) {
      EXPECT_EQ(seen.verdict, leak_suspicion::unknown) << s;
    }
  }
  EXPECT_EQ(seen.verdict, leak_suspicion::suspected);
  leak_suspicion_state blind;
  for (int s = 0; s < 120; ++s) {
    auto next = step(leak_suspicion_limits{}, blind, {}, {}, {}, {}, seconds{s});
    blind = next.state;
    EXPECT_EQ(next.outputs.verdict, leak_suspicion::unknown);
  }
}

}  // namespace
}  // namespace busbar::plant
