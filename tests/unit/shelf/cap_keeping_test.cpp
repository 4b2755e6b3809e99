// The rack's power limit as it is kept: shelves and trays seen each second, operators' limits, lost shelves.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "actors/core/errors.hpp"
#include "actors/shelf/cap_keeping.hpp"

namespace busbar::shelf {
namespace {

using core::fault;

// Four trays of four GPUs under two shelves of 33 kW; GPUs draw what they may, up to `load`.
struct bench {
  explicit bench(double limit_w = 36'000) {
    setting.rack = "r01";
    setting.rack_limit_w = limit_w;
    setting.gpu_min_w = 400;
    setting.gpu_max_w = 2300;
    setting.shelf_w = 33'000;
    setting.gpus_per_tray = 4;
    setting.others_w = 4'000;
    kept = begin_caps_keeping(setting, "", now);
    for (const char* tray : {"r01/c01", "r01/c02", "r01/c03", "r01/c04"}) limits[tray] = 2300;
  }
  core::command ask(std::optional<double> gpu_w, const std::string& target = "r01",
                    std::optional<double> lease_s = {}) const {
    core::command what;
    what.verb = "power_cap";
    what.target = target;
    what.reason = "the hall is warm";
    what.principal.set_name("alice");
    if (gpu_w) what.arguments["gpu_watts"] = std::to_string(*gpu_w);
    if (lease_s) what.arguments["lease_s"] = std::to_string(*lease_s);
    return what;
  }
  void begin(const core::command& what, const std::string& operation) {
    ASSERT_TRUE(refuse(kept, what, now).ok()) << refuse(kept, what, now);
    give(cap_commanded{what, operation});
  }
  double drawn() const {
    double sum = others_w;
    for (const auto& [tray, limit] : limits) sum += 4 * std::min(load, limit);
    return sum;
  }
  void give(const caps_event& event) {
    caps_step made = step(kept, event, now);
    if (made.durable) stored = stored_form(kept);
    for (const auto& each : made.effects) {
      if (const auto* told = std::get_if<limit_tray>(&each)) {
        ++writes;
        if (obeys) limits[told->tray] = told->gpu_w;
      }
      if (const auto* row = std::get_if<condition_judged>(&each)) {
        if (row->holds)
          conditions[row->type] = row->message;
        else
          conditions.erase(row->type);
      }
      if (const auto* over = std::get_if<core::operation_end>(&each))
        ended[over->operation_id] = over->state + " " + over->fault;
    }
  }
  void second() {
    now.monotonic_ns += 1'000'000'000;
    now.wall_ns += 1'000'000'000;
    cap_sight seen;
    for (const auto& [tray, limit] : limits)
      seen.trays.push_back(
          {tray, limits_read ? std::optional(limit) : std::nullopt, now.wall_ns, 4 * std::min(load, limit)});
    const double share = drawn() / static_cast<double>(std::count(delivers.begin(), delivers.end(), true));
    for (std::size_t i = 0; i < delivers.size(); ++i)
      seen.shelves.push_back({"r01/p0" + std::to_string(i + 1), true,
                              silent[i] ? std::nullopt : std::optional(delivers[i] ? share : 0.0)});
    give(sight_taken{seen});
    most_drawn = std::max(most_drawn, drawn());
  }
  void seconds(int count) {
    for (int i = 0; i < count; ++i) second();
  }
  double highest() const {
    double high = 0;
    for (const auto& [tray, limit] : limits) high = std::max(high, limit);
    return high;
  }

  cap_setting setting;
  core::instant now{1'000'000'000'000, 1'790'000'000'000'000'000};
  caps_keeper kept;
  std::map<std::string, double> limits;
  double load = 1000, others_w = 4'000, most_drawn = 0;
  std::array<bool, 2> delivers{true, true};
  std::array<bool, 2> silent{false, false};
  bool obeys = true, limits_read = true;
  int writes = 0;
  std::string stored;
  std::map<std::string, std::string> conditions, ended;
};

TEST(caps_keeping, a_rack_below_its_limit_is_left_alone) {
  bench b;
  b.seconds(60);
  EXPECT_EQ(b.writes, 0);
  EXPECT_TRUE(b.conditions.empty());
}

TEST(caps_keeping, a_load_step_is_capped_within_two_seconds_and_released_when_it_is_over) {
  bench b(30'000);
  b.seconds(5);
  b.load = 2300;
  b.seconds(2);
  EXPECT_LE(b.drawn(), 30'000);
  EXPECT_TRUE(b.conditions.contains("POWER_CAPPED"));
  b.seconds(30);
  EXPECT_LE(b.drawn(), 30'000);
  b.load = 500;
  b.seconds(200);
  EXPECT_EQ(b.highest(), 2300);
  EXPECT_FALSE(b.conditions.contains("POWER_CAPPED"));
}

TEST(caps_keeping, a_lost_shelf_caps_at_once_and_is_named) {
  bench b(60'000);
  b.load = 2000;  // 36 kW of 66
  b.seconds(5);
  ASSERT_TRUE(b.conditions.empty());
  b.delivers[0] = false;
  b.second();
  EXPECT_TRUE(b.conditions.contains("SHELF_LOST"));
  EXPECT_NE(b.conditions["SHELF_LOST"].find("r01/p01 delivers nothing"), std::string::npos);
  EXPECT_LE(b.drawn(), 33'000) << "told in the second in which it was read";
  b.delivers[0] = true;
  b.seconds(300);
  EXPECT_TRUE(b.conditions.empty()) << b.conditions.begin()->first;
}

TEST(caps_keeping, a_shelf_that_falls_silent_counts_no_more_and_the_measurement_is_stale) {
  bench b(60'000);
  b.load = 2000;
  b.seconds(5);
  b.silent[1] = true;
  b.seconds(4);
  EXPECT_TRUE(b.conditions.contains("POWER_MEASUREMENT_STALE"));
  EXPECT_NE(b.conditions["POWER_MEASUREMENT_STALE"].find("r01/p02"), std::string::npos);
  b.seconds(4);
  EXPECT_TRUE(b.conditions.contains("SHELF_LOST"));
  EXPECT_LE(b.drawn(), 33'000);
}

TEST(caps_keeping, an_operator_limits_every_tray_and_the_end_is_read) {
  bench b;
  b.load = 2000;
  b.setting.rack_limit_w = 60'000;
  b.seconds(3);
  b.obeys = false;
  b.begin(b.ask(1200), "operations/1");
  b.seconds(3);
  EXPECT_TRUE(b.ended.empty()) << "told is not done";
  for (auto& [tray, limit] : b.limits) limit = 1200;
  b.second();
  EXPECT_EQ(b.ended["operations/1"], "SUCCEEDED ");
  EXPECT_TRUE(b.conditions.contains("POWER_CAPPED"));
}

TEST(caps_keeping, a_limit_that_is_never_read_back_fails_by_name) {
  bench b;
  b.seconds(3);
  b.obeys = false;
  b.begin(b.ask(800, "r01/c02"), "operations/1");
  b.seconds(40);
  EXPECT_EQ(b.ended["operations/1"], "FAILED DEADLINE");
}

TEST(caps_keeping, an_operators_limit_holds_until_it_is_taken_back) {
  bench b(60'000);
  b.seconds(3);
  b.begin(b.ask(1200, "r01/c02"), "operations/1");
  b.seconds(3);
  EXPECT_EQ(b.limits["r01/c02"], 1200);
  EXPECT_EQ(b.limits["r01/c01"], 2300);
  b.seconds(600);
  EXPECT_EQ(b.limits["r01/c02"], 1200) << "no band releases what a person asked for";
  b.begin(b.ask(std::nullopt, "r01/c02"), "operations/2");
  EXPECT_EQ(b.ended["operations/2"], "SUCCEEDED ");
  b.seconds(3);
  EXPECT_EQ(b.limits["r01/c02"], 2300);
  EXPECT_FALSE(refuse(b.kept, b.ask(std::nullopt, "r01/c02"), b.now).ok());
}

TEST(caps_keeping, a_leased_limit_lapses_also_over_a_restart) {
  bench b(60'000);
  b.seconds(3);
  b.begin(b.ask(1200, "r01", 60), "operations/1");
  b.seconds(3);
  ASSERT_EQ(b.highest(), 1200);
  b.kept = begin_caps_keeping(b.setting, b.stored, b.now);
  b.seconds(20);
  EXPECT_EQ(b.highest(), 1200) << "a restart forgets no limit";
  b.seconds(60);
  EXPECT_EQ(b.highest(), 2300);
  EXPECT_TRUE(b.stored.empty());
}

TEST(caps_keeping, a_restart_raises_no_cap) {
  bench b(30'000);
  b.load = 2300;
  b.seconds(10);
  const double before = b.highest();
  ASSERT_LT(before, 2300);
  b.kept = begin_caps_keeping(b.setting, b.stored, b.now);
  b.most_drawn = 0;
  b.seconds(30);
  EXPECT_LE(b.most_drawn, 30'000);
}

TEST(caps_keeping, refuses_what_no_gpu_takes_and_what_has_no_reason) {
  bench b;
  b.second();
  EXPECT_EQ(core::fault_of(refuse(b.kept, b.ask(300), b.now)), fault::SETPOINT_LIMIT);
  EXPECT_EQ(core::fault_of(refuse(b.kept, b.ask(2400), b.now)), fault::SETPOINT_LIMIT);
  EXPECT_FALSE(refuse(b.kept, b.ask(1000, "r01", 0), b.now).ok());
  core::command mute = b.ask(1000);
  mute.reason.clear();
  EXPECT_FALSE(refuse(b.kept, mute, b.now).ok());
  b.kept.setting.gpu_max_w = 0;
  EXPECT_FALSE(refuse(b.kept, b.ask(1000), b.now).ok());
  EXPECT_NE(would_do(b.kept, b.ask(1000)).find("16 GPUs in 4 trays"), std::string::npos);
}

}  // namespace
}  // namespace busbar::shelf
