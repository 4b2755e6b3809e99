#include "actors/shelf/power_cap_logic.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace busbar::shelf {
namespace {

constexpr std::int64_t second = 1'000'000'000;

std::vector<gpu_limits> rack_of(int gpus, int low_priority = 0) {
  std::vector<gpu_limits> list;
  for (int at = 0; at < gpus; ++at) {
    list.push_back(
        {fmt::format("r01/c{:02}/gpu{}", at / 4 + 1, at % 4), at < low_priority ? 0 : 1, 300, 1800});
  }
  return list;
}

constexpr cap_policy policy{.rack_limit_w = 130'000, .others_w = 40'000};

struct bench {
  explicit bench(std::vector<gpu_limits> gpus, double capacity_w = 264'000)
      : state(begin_caps(policy, capacity_w, gpus)) {}

  std::vector<cap_effect> feed(const cap_event& event) {
    auto effects = step(state, event, now);
    for (const auto& effect : effects) {
      if (const auto* cap = std::get_if<set_cap>(&effect)) asked[cap->gpu] = cap->watts;
      if (const auto* told = std::get_if<condition_changed>(&effect)) conditions[told->which] = told->holds;
    }
    return effects;
  }
  // What was asked is what the devices do and show.
  void obey() {
    for (const auto& [gpu, watts] : asked) feed(cap_read{gpu, watts});
  }
  double caps_w() const {
    double sum = 0;
    for (const auto& [name, gpu] : state.gpus) sum += gpu.wanted_w;
    return sum;
  }

  cap_state state;
  std::int64_t now = 0;
  std::map<std::string, double> asked;
  std::map<cap_condition, bool> conditions;
};

TEST(power_cap, nothing_moves_below_the_upper_band) {
  bench b(rack_of(72));
  EXPECT_TRUE(b.feed(rack_measured{125'000, 85'000}).empty());
  EXPECT_FALSE(b.state.capped);
}

TEST(power_cap, above_the_band_what_can_be_drawn_fits_the_aim) {
  bench b(rack_of(72));
  b.feed(rack_measured{135'000, 95'000});
  EXPECT_LE(b.caps_w() + 40'000, 0.95 * 130'000);
  EXPECT_GT(b.caps_w() + 40'000, 0.95 * 130'000 - 72 * 10);
  EXPECT_TRUE(b.conditions[cap_condition::capped]);
}

TEST(power_cap, low_priority_is_cut_to_its_least_before_high_priority_is_touched) {
  bench b(rack_of(72, 36));
  b.feed(rack_measured{135'000, 95'000});
  for (const auto& [name, gpu] : b.state.gpus) {
    if (gpu.limits.priority == 0) {
      EXPECT_LT(gpu.wanted_w, 700) << name;
    } else {
      EXPECT_GT(gpu.wanted_w, 1700) << name;
    }
  }
}

TEST(power_cap, no_cap_goes_below_what_the_device_takes_and_the_shortfall_is_said) {
  bench b(rack_of(72));
  const auto effects = b.feed(rack_measured{135'000, 30'000});  // 105 kW of others
  for (const auto& [name, gpu] : b.state.gpus) EXPECT_GE(gpu.wanted_w, 300);
  EXPECT_FALSE(b.conditions[cap_condition::caps_not_enough]);  // 105 + 21.6 is under 130
  b.feed(rack_measured{140'000, 20'000});
  EXPECT_TRUE(b.conditions[cap_condition::caps_not_enough]);
  EXPECT_DOUBLE_EQ(b.state.shortfall_w, 120'000 + 21'600 - 130'000);
}

TEST(power_cap, between_the_bands_caps_stay_and_below_they_are_released_in_steps) {
  bench b(rack_of(72));
  b.feed(rack_measured{135'000, 95'000});
  b.obey();
  const double capped_w = b.caps_w();
  for (int at = 1; at <= 60; ++at) {
    b.now = at * second;
    b.feed(rack_measured{120'000, 80'000});
  }
  EXPECT_EQ(b.caps_w(), capped_w);
  double before_w = capped_w;
  for (int at = 61; at <= 1200 && b.state.capped; ++at) {
    b.now = at * second;
    b.feed(rack_measured{100'000, 60'000});
    EXPECT_GE(b.caps_w(), before_w);
    EXPECT_LE(b.caps_w() - before_w, 0.1 * (72 * 1800 - before_w) + 72 * 10 + 1);
    before_w = b.caps_w();
  }
  EXPECT_FALSE(b.state.capped);
  EXPECT_EQ(b.caps_w(), 72 * 1800);
}

TEST(power_cap, a_short_dip_releases_nothing) {
  bench b(rack_of(72));
  b.feed(rack_measured{135'000, 95'000});
  const double capped_w = b.caps_w();
  for (int at = 1; at <= 100; ++at) {
    b.now = at * second;
    b.feed(rack_measured{at % 4 == 0 ? 122'000.0 : 100'000.0, 60'000});
  }
  EXPECT_EQ(b.caps_w(), capped_w);
}

TEST(power_cap, a_lost_shelf_caps_at_once_without_waiting_for_a_measurement) {
  bench b(rack_of(72), 132'000);
  b.feed(rack_measured{120'000, 80'000});
  b.feed(supply_changed{99'000});
  EXPECT_LE(b.caps_w() + 40'000, 0.95 * 99'000);
}

TEST(power_cap, a_shelf_that_is_not_needed_changes_nothing) {
  bench b(rack_of(72), 264'000);
  b.feed(rack_measured{120'000, 80'000});
  EXPECT_TRUE(b.feed(supply_changed{231'000}).empty());
}

// Every way in which the measurement can be missing: never, too old, not a number, negative, nothing.
TEST(power_cap, without_a_measurement_the_caps_hold_the_load) {
  for (const std::optional<double> nothing :
       {std::optional<double>(), std::optional(std::nan("")), std::optional(-1.0),
        std::optional(std::numeric_limits<double>::infinity())}) {
    bench b(rack_of(72));
    b.feed(rack_measured{nothing, nothing});
    EXPECT_TRUE(b.conditions[cap_condition::measurement_stale]);
    EXPECT_LE(b.caps_w() + 40'000, 0.95 * 130'000);
  }
  bench b(rack_of(72));
  b.feed(rack_measured{80'000, 40'000});
  EXPECT_EQ(b.caps_w(), 72 * 1800);
  b.now = 4 * second;
  b.feed(tick{});
  EXPECT_TRUE(b.conditions[cap_condition::measurement_stale]);
  EXPECT_LE(b.caps_w() + 40'000, 0.95 * 130'000);
}

TEST(power_cap, an_unproven_cap_counts_with_the_most_the_gpu_may_draw) {
  bench b(rack_of(4));
  b.feed(cap_read{"r01/c01/gpu0", std::nullopt});
  EXPECT_DOUBLE_EQ(b.state.can_draw_w(), 40'000 + 4 * 1800);
  b.state.gpus.at("r01/c01/gpu1").wanted_w = 500;  // asked, not read back
  EXPECT_DOUBLE_EQ(b.state.can_draw_w(), 40'000 + 4 * 1800);
  b.feed(cap_read{"r01/c01/gpu1", 500.0});
  EXPECT_DOUBLE_EQ(b.state.can_draw_w(), 40'000 + 3 * 1800 + 500);
}

TEST(power_cap, a_cap_that_reads_back_higher_is_asked_again) {
  bench b(rack_of(72));
  b.feed(rack_measured{135'000, 95'000});
  const auto again = b.feed(cap_read{"r01/c01/gpu0", 1800.0});
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(std::get<set_cap>(again.front()).watts, b.state.gpus.at("r01/c01/gpu0").wanted_w);
}

TEST(power_cap, a_cap_that_is_not_read_back_is_asked_again_with_patience) {
  bench b(rack_of(4), 40'000 + 4'000);
  b.feed(tick{});
  std::size_t asked = 0;
  for (int at = 1; at <= 40; ++at) {
    b.now = at * second / 4;
    for (const auto& effect : b.feed(tick{})) asked += std::holds_alternative<set_cap>(effect) ? 1U : 0U;
  }
  EXPECT_EQ(asked, 4U * 5);  // 10 s, every 2 s
}

// Random racks and events: no cap leaves the device's range, and the caps fit whenever the least ones could.
TEST(power_cap, holds_its_bounds_whatever_happens) {
  for (unsigned seed = 1; seed <= 300; ++seed) {
    std::mt19937 random(seed);
    const auto uniform = [&random](double low, double high) {
      return std::uniform_real_distribution(low, high)(random);
    };
    std::vector<gpu_limits> gpus;
    for (int at = 0; at < 8; ++at) {
      const double least = uniform(100, 500);
      gpus.push_back(
          {fmt::format("g{}", at), static_cast<int>(random() % 3), least, least + uniform(0, 1500)});
    }
    cap_state state = begin_caps({.rack_limit_w = 12'000, .others_w = 2'000}, 15'000, gpus);
    for (std::int64_t now = 0; now < 100 * second; now += second) {
      cap_event event = tick{};
      const unsigned what = random() % 8;
      if (what < 5) event = rack_measured{uniform(0, 16'000), uniform(0, 10'000)};
      if (what == 5) event = supply_changed{uniform(0, 20'000)};
      if (what == 6) event = cap_read{fmt::format("g{}", random() % 8), uniform(0, 3'000)};
      const auto effects = step(state, event, now);
      for (const auto& effect : effects) {
        const auto* cap = std::get_if<set_cap>(&effect);
        if (cap == nullptr) continue;
        const auto& limits = state.gpus.at(cap->gpu).limits;
        EXPECT_GE(cap->watts, limits.min_w);
        EXPECT_LE(cap->watts, limits.max_w);
      }
      if (std::holds_alternative<rack_measured>(event) && *state.rack_w > 0.985 * state.limit_w() &&
          state.shortfall_w == 0) {
        double caps_w = state.others_w.value_or(2'000);
        for (const auto& [name, gpu] : state.gpus) caps_w += gpu.wanted_w;
        EXPECT_LE(caps_w, state.limit_w() + 1e-6) << "seed " << seed;
      }
    }
  }
}

}  // namespace
}  // namespace busbar::shelf
