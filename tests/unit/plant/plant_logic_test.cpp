// One CDU under its plant: which set-points, proven by what is read; leases; silent racks; restarts.
#include "actors/plant/plant_logic.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "actors/core/errors.hpp"
#include "actors/devices/cdu_fake.hpp"

namespace busbar::plant {
namespace {

using devices::cdu_value;
using ::testing::HasSubstr;

journal::CduSpec usual_spec() {
  journal::CduSpec spec;
  spec.set_name("cdu01");
  spec.set_protocol("redfish");
  for (const char* rack : {"r01", "r02"}) {
    journal::FedRack& row = *spec.add_racks();
    row.set_rack(rack);
    row.set_rated_lpm(120);
  }
  spec.set_authority("device");
  spec.set_supply_c(40);
  spec.set_supply_min_c(20);
  spec.set_supply_max_c(45);
  spec.set_dp_kpa(60);
  spec.set_dp_min_kpa(20);
  spec.set_dp_max_kpa(120);
  spec.set_pumps(2);
  return spec;
}

// A plant of one CDU and the CDU itself: effects are carried out, readings come once a second.
class one_cdu {
 public:
  explicit one_cdu(const journal::CduSpec& spec = usual_spec()) {
    state.cdu = declare(spec, nullptr, "uid");
    unit.truth.connectors = {{"r01", 120, 60, 40, 52, {}}, {"r02", 120, 60, 40, 52, {}}};
  }

  cdu_step give(const cdu_event& event) {
    cdu_step out = step(state, event, now);
    for (const auto& each : out.events) events.push_back(each);
    for (const plant_effect& each : out.effects) {
      if (const auto* end = std::get_if<core::operation_end>(&each)) ends.push_back(*end);
      const auto* write = std::get_if<write_set_point>(&each);
      if (write == nullptr) continue;
      unit.write(write->what, write->value, [this, write](absl::Status answer) {
        answers.push_back({write->what, write->value, std::move(answer)});
      });
    }
    while (!answers.empty()) {
      const write_answered answer = answers.back();
      answers.pop_back();
      give(answer);
    }
    return out;
  }
  void read() {
    unit.read([this](absl::StatusOr<devices::cdu_facts> facts) { give(cdu_read{std::move(facts)}); });
  }
  void pass(int seconds) {
    for (int i = 0; i < seconds; ++i) {
      now.monotonic_ns += ns_per_s;
      now.wall_ns += ns_per_s;
      unit.pass(std::chrono::seconds(1));
      for (const auto& [rack, flow] : asking) give(demand_heard{rack, flow, 100.0, std::nullopt, false});
      read();
    }
  }
  void restart() { state = restore(state.cdu, now); }
  absl::Status set(const std::string& holder, std::optional<double> supply_c, std::optional<double> dp_kpa,
                   std::int64_t lease_s = 600) {
    override_wanted wanted{
        "operations/" + std::to_string(++operation), holder, "test", supply_c, dp_kpa, lease_s * ns_per_s};
    const absl::Status refusal = refuse_override(state, wanted);
    if (refusal.ok()) give(wanted);
    return refusal;
  }
  bool told(std::string_view type) const {
    return std::any_of(events.begin(), events.end(),
                       [type](const auto& each) { return each.type() == type; });
  }
  const journal::Condition* condition(std::string_view type) const {
    for (const auto& row : state.cdu.conditions()) {
      if (row.type() == type) return &row;
    }
    return nullptr;
  }

  cdu_state state;
  devices::cdu_fake unit;
  core::instant now{1'000'000'000'000, 1'767'225'600'000'000'000};
  std::map<std::string, double> asking = {{"r01", 120}, {"r02", 120}};
  std::vector<journal::Event> events;
  std::vector<core::operation_end> ends;
  std::vector<write_answered> answers;
  int operation = 0;
};

TEST(plant, adopts_what_it_reads_and_writes_nothing_while_that_is_what_it_wants) {
  one_cdu plant;
  plant.pass(60);
  EXPECT_TRUE(plant.unit.writes.empty());
  EXPECT_EQ(plant.state.cdu.mode(), "automatic");
  EXPECT_EQ(plant.state.cdu.supply().proven(), 40);
  EXPECT_EQ(plant.state.cdu.dp().proof(), "proven");
  EXPECT_EQ(plant.state.cdu.health(), journal::HEALTH_UNKNOWN);  // no detector is shown: not known dry
}

TEST(plant, moves_slowly_from_what_it_finds_to_what_is_declared) {
  one_cdu plant;
  plant.unit.truth.supply_set_point.value = 30;
  plant.pass(2);
  EXPECT_EQ(plant.state.cdu.supply().asked(), 30);
  double before = 30;
  for (int minute = 0; minute < 14; ++minute) {
    plant.pass(60);
    const double held = *plant.unit.truth.supply_set_point.value;
    EXPECT_LE(held - before, 1.2) << "more than 1 K in a minute";
    before = held;
  }
  EXPECT_NEAR(*plant.unit.truth.supply_set_point.value, 40, 0.11);
  EXPECT_EQ(plant.state.cdu.supply().proof(), "proven");
}

TEST(plant, t26_a_restart_changes_no_set_point) {
  one_cdu plant;
  plant.unit.truth.supply_set_point.value = 33;  // on its way to 40
  plant.pass(20);
  const double held = *plant.unit.truth.supply_set_point.value;
  plant.unit.writes.clear();
  plant.restart();
  plant.pass(3);
  EXPECT_TRUE(plant.state.run.adopted);
  for (const auto& write : plant.unit.writes)
    EXPECT_LT(std::abs(write.value - held), 0.3) << name_of(write.what);
}

TEST(plant, a_set_point_is_proven_by_what_is_read_and_by_nothing_else) {
  one_cdu plant;
  plant.pass(3);
  plant.unit.how.ignores = true;  // says OK and keeps what it had
  ASSERT_TRUE(plant.set("uid:1", 38.0, std::nullopt).ok());
  EXPECT_EQ(plant.state.cdu.supply().proof(), "waiting");
  plant.pass(5);
  EXPECT_EQ(plant.state.cdu.supply().proof(), "waiting");
  plant.pass(10);
  EXPECT_EQ(plant.state.cdu.supply().proof(), "failed");
  EXPECT_EQ(plant.state.cdu.supply().proven(), 40);
  ASSERT_EQ(plant.ends.size(), 1U);
  EXPECT_EQ(plant.ends.front().state, "FAILED");
  EXPECT_EQ(plant.ends.front().fault, "SETPOINT_NOT_PROVEN");
  ASSERT_NE(plant.condition("SUPPLY_SET_POINT"), nullptr);
  EXPECT_EQ(plant.condition("SUPPLY_SET_POINT")->health(), journal::HEALTH_BAD);
  plant.unit.how.ignores = false;
  plant.pass(45);  // it is tried again
  EXPECT_EQ(plant.state.cdu.supply().proof(), "proven");
  EXPECT_EQ(plant.condition("SUPPLY_SET_POINT")->health(), journal::HEALTH_GOOD);
}

TEST(plant, a_lost_answer_is_no_failure_when_the_value_is_read) {
  one_cdu plant;
  plant.pass(3);
  plant.unit.how.loses_answer = true;
  ASSERT_TRUE(plant.set("uid:1", std::nullopt, 80.0).ok());
  plant.pass(2);
  EXPECT_EQ(plant.state.cdu.dp().proof(), "proven");
  EXPECT_EQ(plant.ends.front().state, "SUCCEEDED");
}

TEST(plant, a_set_point_that_cannot_be_read_is_unproven_never_proven) {
  one_cdu plant;
  plant.pass(3);
  plant.unit.how.hides_set_points = true;
  plant.pass(1);
  ASSERT_TRUE(plant.set("uid:1", 39.0, std::nullopt).ok());
  plant.pass(15);
  EXPECT_EQ(plant.state.cdu.supply().proof(), "unproven");
  EXPECT_EQ(plant.condition("SUPPLY_SET_POINT")->health(), journal::HEALTH_UNKNOWN);
}

TEST(plant, a_refusal_of_the_device_fails_at_once_with_its_words) {
  one_cdu plant;
  plant.pass(3);
  plant.unit.how.refuses = true;
  ASSERT_TRUE(plant.set("uid:1", 38.0, std::nullopt).ok());
  EXPECT_EQ(plant.state.cdu.supply().proof(), "failed");
  EXPECT_THAT(plant.state.cdu.supply().why(), HasSubstr("key switch"));
}

TEST(plant, every_intent_is_opened_before_its_write_and_closed_once) {
  one_cdu plant;
  plant.pass(3);
  const cdu_step out = plant.give(override_wanted{"operations/1", "uid:1", "", 38.0, 70.0, 600 * ns_per_s});
  EXPECT_EQ(out.intents_opened.size(), 2U);
  EXPECT_TRUE(out.durable);
  EXPECT_EQ(plant.state.cdu.intents_size(), 2);
  plant.pass(2);
  EXPECT_EQ(plant.state.cdu.intents_size(), 0);
}

TEST(plant, a_set_point_outside_its_limits_is_refused_with_the_limit) {
  one_cdu plant;
  plant.pass(3);
  for (const auto& [supply, dp, limit] :
       {std::tuple<std::optional<double>, std::optional<double>, const char*>{46.0, {}, "45"},
        {19.0, {}, "20"},
        {{}, 121.0, "120"},
        {{}, 5.0, "20"}}) {
    const absl::Status refused = plant.set("uid:1", supply, dp);
    EXPECT_EQ(core::fault_of(refused), core::fault::SETPOINT_LIMIT);
    EXPECT_THAT(std::string(refused.message()), HasSubstr(limit));
  }
  EXPECT_EQ(core::fault_of(plant.set("uid:1", 38.0, {}, 7'201)), core::fault::SETPOINT_LIMIT);
  EXPECT_EQ(core::fault_of(plant.set("uid:1", 38.0, {}, 0)), core::fault::SETPOINT_LIMIT);
  EXPECT_EQ(core::fault_of(plant.set("uid:1", std::nan(""), {})), core::fault::SETPOINT_LIMIT);
  EXPECT_FALSE(plant.set("uid:1", {}, {}).ok());
  EXPECT_TRUE(plant.unit.writes.empty());
}

TEST(plant, a_supply_below_the_dew_point_is_refused_and_an_override_is_raised_when_the_air_becomes_damp) {
  one_cdu plant;
  plant.unit.truth.air_c = 32;
  plant.unit.truth.humidity_percent = 60;  // dew point 23.3 C
  plant.pass(3);
  const absl::Status refused = plant.set("uid:1", 24.0, {});
  EXPECT_EQ(core::fault_of(refused), core::fault::SETPOINT_LIMIT);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("25.3"));
  ASSERT_TRUE(plant.set("uid:1", 26.0, {}).ok());
  plant.pass(3);
  plant.unit.truth.humidity_percent = 80;  // 28.1 C
  plant.pass(40);
  EXPECT_GE(*plant.unit.truth.supply_set_point.value, 30.0);
}

TEST(plant, two_operators_are_kept_apart_by_name_and_the_holder_may_go_on) {
  one_cdu plant;
  plant.pass(3);
  ASSERT_TRUE(plant.set("uid:1", 38.0, {}).ok());
  const absl::Status refused = plant.set("uid:2", 39.0, {});
  EXPECT_EQ(core::fault_of(refused), core::fault::LEASE_HELD);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("uid:1"));
  EXPECT_EQ(core::fault_of(refuse_release(plant.state, "uid:2")), core::fault::LEASE_HELD);
  plant.pass(3);
  ASSERT_TRUE(plant.set("uid:1", 37.0, {}).ok());
  plant.pass(3);
  EXPECT_EQ(*plant.unit.truth.supply_set_point.value, 37);
  EXPECT_TRUE(refuse_release(plant.state, "uid:1").ok());
  plant.give(override_released{"operations/9"});
  EXPECT_TRUE(plant.set("uid:2", 39.0, {}).ok());
}

TEST(plant, of_two_overrides_that_were_let_through_together_the_second_fails) {
  one_cdu plant;
  plant.pass(3);
  plant.give(override_wanted{"operations/1", "uid:1", "", 38.0, {}, 600 * ns_per_s});
  plant.give(override_wanted{"operations/2", "uid:2", "", 39.0, {}, 600 * ns_per_s});
  ASSERT_EQ(plant.ends.size(), 1U);
  EXPECT_EQ(plant.ends.front().operation_id, "operations/2");
  EXPECT_EQ(plant.ends.front().fault, "LEASE_HELD");
  EXPECT_EQ(plant.state.cdu.lease().holder(), "uid:1");
}

TEST(plant, an_override_holds_both_set_points_and_lapses_without_a_bump) {
  one_cdu plant;
  plant.pass(3);
  ASSERT_TRUE(plant.set("uid:1", 36.0, std::nullopt, 60).ok());
  plant.pass(50);
  EXPECT_EQ(plant.state.cdu.mode(), "manual");
  EXPECT_EQ(*plant.unit.truth.supply_set_point.value, 36);
  plant.pass(15);
  EXPECT_EQ(plant.state.cdu.mode(), "automatic");
  EXPECT_FALSE(plant.state.cdu.has_lease());
  EXPECT_TRUE(plant.told("override_lapsed"));
  EXPECT_NEAR(*plant.unit.truth.supply_set_point.value, 36, 0.3);
  plant.pass(300);
  EXPECT_NEAR(*plant.unit.truth.supply_set_point.value, 40, 0.11);
}

TEST(plant, what_is_left_of_a_lease_outlives_a_restart_and_no_more) {
  one_cdu plant;
  plant.pass(3);
  ASSERT_TRUE(plant.set("uid:1", 36.0, std::nullopt, 60).ok());
  plant.pass(20);
  plant.restart();
  plant.pass(20);
  EXPECT_EQ(plant.state.cdu.mode(), "manual");
  EXPECT_EQ(*plant.unit.truth.supply_set_point.value, 36);
  plant.pass(25);
  EXPECT_FALSE(plant.state.cdu.has_lease());
}

TEST(plant, an_intent_of_the_last_life_is_closed_by_what_is_read) {
  for (const bool took : {true, false}) {
    one_cdu plant;
    plant.pass(3);
    plant.unit.how.silent = true;
    ASSERT_TRUE(plant.set("uid:1", 38.0, std::nullopt).ok());
    plant.unit.how.silent = false;
    if (took) plant.unit.truth.supply_set_point.value = 38;
    plant.restart();
    ASSERT_EQ(plant.state.cdu.intents_size(), 1);
    plant.pass(1);
    EXPECT_EQ(plant.state.cdu.intents_size(), 0);
    EXPECT_EQ(plant.state.cdu.supply().proof(), took ? "proven" : "failed");
    ASSERT_EQ(plant.ends.size(), 1U);
    EXPECT_EQ(plant.ends.front().state, took ? "SUCCEEDED" : "FAILED");
  }
}

TEST(plant, another_hand_on_the_cdu_is_told_and_moved_back_from_slowly) {
  one_cdu plant;
  plant.pass(3);
  plant.unit.truth.dp_set_point.value = 90;
  plant.pass(2);
  EXPECT_TRUE(plant.told("set_point_changed_elsewhere"));
  EXPECT_TRUE(plant.unit.writes.empty()) << "not fought at once";
  plant.pass(240);
  EXPECT_NEAR(*plant.unit.truth.dp_set_point.value, 60, 2.5);
}

TEST(plant, pressure_follows_what_racks_ask_for) {
  one_cdu plant;
  plant.asking = {{"r01", 80}, {"r02", 70}};
  plant.unit.truth.connectors = {{"r01", 80, {}, {}, {}, {}}, {"r02", 80, {}, {}, {}, {}}};
  plant.pass(300);
  EXPECT_NEAR(*plant.unit.truth.dp_set_point.value, 60.0 * 80 * 80 / (120 * 120), 3);
  EXPECT_EQ(plant.state.cdu.dp().proof(), "proven");
}

TEST(plant, a_silent_rack_counts_with_its_rated_flow) {
  one_cdu plant;
  plant.asking = {{"r01", 60}, {"r02", 60}};
  plant.unit.truth.connectors = {{"r01", 60, {}, {}, {}, {}}, {"r02", 60, {}, {}, {}, {}}};
  plant.pass(300);
  EXPECT_LT(*plant.unit.truth.dp_set_point.value, 30);
  plant.asking.erase("r02");
  plant.pass(12);
  EXPECT_TRUE(plant.told("demand_lapsed"));
  EXPECT_EQ(counted_flow_lpm(plant.state, plant.state.cdu.spec().racks(1), plant.now), 120);
  plant.pass(90);
  EXPECT_GT(*plant.unit.truth.dp_set_point.value, 55);
}

TEST(plant, what_racks_ask_for_is_not_written_each_second) {
  one_cdu plant;
  plant.pass(20);
  std::size_t durable = 0;
  for (int i = 0; i < 100; ++i) {
    plant.now.monotonic_ns += ns_per_s;
    if (plant.give(demand_heard{"r01", 118.0 + i % 4, 100.0, std::nullopt, false}).durable) ++durable;
    if (plant.give(demand_heard{"r02", 120.0, 100.0, std::nullopt, false}).durable) ++durable;
    plant.read();
  }
  EXPECT_LE(durable, 2U);
}

TEST(plant, a_cdu_that_is_not_read_is_left_to_its_own_controller) {
  one_cdu plant;
  plant.pass(10);
  plant.unit.how.silent = true;
  plant.pass(10);
  EXPECT_EQ(plant.state.cdu.mode(), "device");
  EXPECT_EQ(plant.state.cdu.health(), journal::HEALTH_BAD);
  EXPECT_EQ(plant.condition("CDU_READ")->health(), journal::HEALTH_BAD);
  EXPECT_TRUE(plant.unit.writes.empty());
  plant.unit.how.silent = false;
  plant.pass(2);
  EXPECT_EQ(plant.state.cdu.mode(), "automatic");
}

TEST(plant, the_bms_cdu_is_read_and_never_written) {
  journal::CduSpec spec = usual_spec();
  spec.set_authority("bms");
  spec.set_supply_c(30);
  one_cdu plant(spec);
  plant.pass(120);
  EXPECT_TRUE(plant.unit.writes.empty());
  EXPECT_EQ(plant.state.cdu.mode(), "device");
  EXPECT_FALSE(plant.set("uid:1", 38.0, {}).ok());
}

TEST(plant, pumps_that_stand_and_wet_detectors_are_bad_and_racks_are_told_they_are_short) {
  one_cdu plant;
  plant.unit.truth.detectors = {{"r01_rope", journal::Detector::DRY, "", {}}};
  plant.pass(10);
  EXPECT_EQ(plant.state.cdu.health(), journal::HEALTH_GOOD);
  plant.unit.truth.detectors[0].verdict = journal::Detector::LEAK;
  plant.pass(1);
  EXPECT_EQ(plant.condition("CDU_DETECTORS_DRY")->health(), journal::HEALTH_BAD);
  for (auto& pump : plant.unit.truth.pumps) pump.running = false;
  plant.pass(1);
  EXPECT_EQ(plant.condition("PUMPS")->health(), journal::HEALTH_BAD);
  EXPECT_THAT(plant.state.run.short_why, HasSubstr("stands"));
}

TEST(plant, less_flow_than_asked_for_half_a_minute_is_short) {
  one_cdu plant;
  plant.unit.truth.flow_lpm = 150;
  plant.pass(20);
  EXPECT_TRUE(plant.state.run.short_why.empty());
  plant.pass(20);
  EXPECT_THAT(plant.state.run.short_why, HasSubstr("150"));
}

TEST(plant, a_demand_that_is_no_number_counts_as_not_said) {
  one_cdu plant;
  plant.give(demand_heard{"r01", std::nan(""), -5.0, {}, false});
  EXPECT_EQ(counted_flow_lpm(plant.state, plant.state.cdu.spec().racks(0), plant.now), 120);
  plant.give(demand_heard{"r77", 10.0, 5.0, {}, false});  // not fed by this CDU
  EXPECT_FALSE(plant.state.run.needs.contains("r77"));
}

TEST(demand_pressure, the_trim_is_bounded_and_does_not_wind_up) {
  demand_pressure_gains gains;
  demand_pressure_state state;
  const std::vector<asked_flow> starving = {{100, 100, 50.0}};
  double held = 0;
  for (int i = 0; i < 10'000; ++i) {
    const auto moved = step(gains, state, starving, 1.0);
    state = moved.state;
    held = moved.set_point_kpa;
  }
  EXPECT_EQ(held, gains.rated_kpa + gains.most_trim_kpa);
  const auto down = step(gains, state, {{100, 100, 150.0}}, 1.0);
  EXPECT_LT(down.set_point_kpa, held);
}

}  // namespace
}  // namespace busbar::plant
