#include <gtest/gtest.h>

#include <limits>

#include "actors/valve/valve_logic.hpp"

namespace busbar::valve {
namespace {

using std::chrono::seconds;

// A valve as the tests move it: position follows the command at the stroke's speed unless it is held.
struct bench {
  valve_spec spec{.name = "r01/supply"};
  valve_state state;
  instant now = seconds{1000};
  double stem = 0.5;
  double goal = 0.5;
  double flow_per_opening = 120;
  bool stuck = false;
  std::optional<double> claims;  // what the device says instead of the truth
  std::vector<effect> effects;

  void send(const event& what) {
    valve_step next = step(spec, state, what, now);
    state = std::move(next.state);
    for (const effect& each : next.effects) {
      if (const auto* write = std::get_if<write_position>(&each)) goal = write->opening;
      effects.push_back(each);
    }
  }
  void second() {
    now += seconds{1};
    const double reach = 1.0 / 15.0;
    if (!stuck) stem += std::clamp(goal - stem, -reach, reach);
    send(reading{claims ? claims : stem, flow_per_opening * stem, 100.0});
    send(tick{});
  }
  // Seconds until the condition is seen, or none within the limit.
  std::optional<int> until(condition wanted, int limit) {
    for (int s = 1; s <= limit; ++s) {
      second();
      if (state.seen == wanted) return s;
    }
    return std::nullopt;
  }
  void run(int count) {
    for (int s = 0; s < count; ++s) second();
  }
  const refusal* refused() const { return effects.empty() ? nullptr : std::get_if<refusal>(&effects.back()); }
};

TEST(valve, proves_a_command_by_position_and_flow) {
  bench b;
  b.run(2);
  b.send(set_position{"", 0.8, "1"});
  EXPECT_EQ(b.state.proven, proof::moving);
  b.run(10);
  EXPECT_EQ(b.state.proven, proof::proven);
  EXPECT_EQ(b.state.seen, condition::sound);
}

TEST(valve, t19_finds_a_stuck_valve_within_twice_its_stroke) {
  for (const double target : {0.0, 0.40, 0.56, 0.9, 1.0}) {
    bench b;
    b.run(2);
    b.stuck = true;
    b.send(set_position{"", target, "1"});
    const auto found = b.until(condition::stuck, 60);
    ASSERT_TRUE(found) << target;
    EXPECT_LE(*found, 30) << target;
    EXPECT_EQ(b.state.proven, proof::failed) << target;
  }
}

TEST(valve, t19_finds_a_stem_off_its_shaft_by_the_flow_that_does_not_follow) {
  bench b;
  b.run(2);
  b.stuck = true;
  b.claims = 0.8;  // the read-back repeats the command
  b.send(set_position{"", 0.8, "1"});
  const auto found = b.until(condition::stuck, 60);
  ASSERT_TRUE(found);
  EXPECT_LE(*found, 30);
}

TEST(valve, says_closed_while_flow_goes_on_is_a_failure_and_never_proven) {
  bench b;
  b.run(2);
  b.stuck = true;
  b.send(set_position{"", 0.0, "1"});
  b.claims = 0.0;
  for (int s = 0; s < 60; ++s) {
    b.second();
    EXPECT_NE(b.state.proven, proof::proven);
  }
  EXPECT_EQ(b.state.seen, condition::contradicted);
}

TEST(valve, closed_valve_that_begins_to_pass_flow_later_is_found_too) {
  bench b;
  b.run(2);
  b.send(set_position{"", 0.0, "1"});
  b.run(25);
  ASSERT_EQ(b.state.proven, proof::proven);
  b.claims = 0.0;
  b.stem = 0.3;
  b.stuck = true;
  b.run(2);
  EXPECT_EQ(b.state.seen, condition::contradicted);
  EXPECT_EQ(b.state.proven, proof::failed);
}

TEST(valve, moving_away_without_a_command_is_drift) {
  bench b;
  b.run(2);
  b.send(set_position{"", 0.8, "1"});
  b.run(20);
  b.stuck = true;
  b.stem = 0.74;
  b.run(1);
  EXPECT_EQ(b.state.seen, condition::drifting);
}

TEST(valve, a_stem_that_hangs_at_each_reversal_is_sticking) {
  bench b;
  b.run(2);
  double target = 0.7;
  for (int turn = 0; turn < 4; ++turn) {
    b.send(set_position{"", target, std::to_string(turn)});
    b.stuck = true;
    b.run(4);
    b.stuck = false;
    b.run(20);
    target = target > 0.6 ? 0.5 : 0.7;
  }
  EXPECT_EQ(b.state.seen, condition::sticking);
  EXPECT_EQ(b.state.proven, proof::proven);
}

TEST(valve, without_a_position_a_command_is_unproven_and_the_valve_unknown) {
  bench b;
  b.run(2);
  b.send(set_position{"", 0.8, "1"});
  for (int s = 0; s < 30; ++s) {
    b.now += seconds{1};
    const double bad = s % 2 == 0 ? std::numeric_limits<double>::quiet_NaN() : 7.0;
    b.send(reading{bad, std::nullopt, std::nullopt});
    EXPECT_NE(b.state.proven, proof::proven);
  }
  EXPECT_EQ(b.state.proven, proof::unproven);
  EXPECT_EQ(b.state.seen, condition::unknown);
}

TEST(valve, set_point_outside_its_limits_is_refused_with_the_limit) {
  bench b;
  b.spec.least = 0.2;
  b.spec.most = 0.9;
  for (const double opening : {0.1, 0.95, -1.0, 2.0}) {
    b.effects.clear();
    b.send(set_position{"", opening, "x"});
    ASSERT_NE(b.refused(), nullptr) << opening;
    EXPECT_EQ(b.refused()->kind, refusal_kind::limit);
    EXPECT_NE(b.refused()->text.find("20.0 to 90.0 %"), std::string::npos) << b.refused()->text;
  }
  b.send(set_position{"", std::numeric_limits<double>::quiet_NaN(), "nan"});
  EXPECT_EQ(b.refused()->kind, refusal_kind::malformed);
  EXPECT_FALSE(b.state.given);
}

TEST(valve, second_operator_is_refused_by_the_name_of_the_first) {
  bench b;
  b.send(take_lease{"alice", "flushing", seconds{600}});
  b.send(take_lease{"bob", "testing", seconds{600}});
  ASSERT_NE(b.refused(), nullptr);
  EXPECT_EQ(b.refused()->kind, refusal_kind::held);
  EXPECT_NE(b.refused()->text.find("alice"), std::string::npos);
  b.effects.clear();
  b.send(set_position{"bob", 0.3, "1"});
  ASSERT_NE(b.refused(), nullptr);
  EXPECT_NE(b.refused()->text.find("alice"), std::string::npos);
  EXPECT_FALSE(b.state.given);
}

TEST(valve, loops_respect_manual_mode_until_the_lease_lapses) {
  bench b;
  b.run(1);
  b.send(take_lease{"alice", "flushing", seconds{30}});
  b.send(set_position{"alice", 0.9, "1"});
  EXPECT_EQ(b.state.mode, valve_mode::manual);
  b.effects.clear();
  b.send(set_position{"", 0.4, "loop"});
  ASSERT_NE(b.refused(), nullptr);
  b.run(29);
  EXPECT_EQ(b.state.mode, valve_mode::manual);
  b.run(1);
  EXPECT_EQ(b.state.mode, valve_mode::automatic);
  b.send(set_position{"", 0.4, "loop2"});
  EXPECT_DOUBLE_EQ(b.state.given->opening, 0.4);
}

TEST(valve, a_renewed_lease_lives_on_and_a_lapsed_one_cannot_be_renewed) {
  bench b;
  b.send(take_lease{"alice", "flushing", seconds{10}});
  b.run(8);
  b.send(renew_lease{"alice", seconds{10}});
  b.run(8);
  EXPECT_EQ(b.state.mode, valve_mode::manual);
  b.run(5);
  b.effects.clear();
  b.send(renew_lease{"alice", seconds{10}});
  ASSERT_NE(b.refused(), nullptr);
  EXPECT_EQ(b.refused()->kind, refusal_kind::no_lease);
}

TEST(valve, no_lease_without_holder_reason_and_a_bounded_length) {
  for (const take_lease& bad :
       {take_lease{"", "x", seconds{10}}, take_lease{"a", "", seconds{10}}, take_lease{"a", "x", seconds{0}},
        take_lease{"a", "x", seconds{-5}}, take_lease{"a", "x", seconds{7201}}}) {
    bench b;
    b.send(bad);
    ASSERT_NE(b.refused(), nullptr);
    EXPECT_FALSE(b.state.held);
  }
}

TEST(valve, authority_decides_who_is_told) {
  for (const authority who : {authority::busbar, authority::bms, authority::device}) {
    bench b;
    b.spec.commanded_by = who;
    b.send(set_position{"", 0.8, "1"});
    ASSERT_FALSE(b.effects.empty());
    EXPECT_EQ(std::holds_alternative<write_position>(b.effects.front()), who == authority::busbar);
    EXPECT_EQ(std::holds_alternative<ask_bms>(b.effects.front()), who == authority::bms);
    EXPECT_EQ(std::holds_alternative<write_set_point>(b.effects.front()), who == authority::device);
  }
}

TEST(valve, a_bms_that_refuses_fails_the_command) {
  bench b;
  b.spec.commanded_by = authority::bms;
  b.run(1);
  b.send(set_position{"", 0.8, "1"});
  b.send(bms_answer{false});
  EXPECT_EQ(b.state.proven, proof::failed);
}

TEST(valve, lost_communication_leads_to_the_configured_fail_position) {
  for (const auto& [position, wanted] : {std::pair{fail_position::open, 1.0}, {fail_position::closed, 0.0}}) {
    bench b;
    b.spec.on_loss = position;
    b.run(3);
    b.now += seconds{2};
    b.send(tick{});
    EXPECT_EQ(b.state.mode, valve_mode::fail_safe);
    EXPECT_EQ(b.state.seen, condition::unknown);
    ASSERT_TRUE(b.state.given);
    EXPECT_EQ(b.state.given->opening, wanted);
  }
  bench b;
  b.run(3);
  b.effects.clear();
  b.now += seconds{2};
  b.send(tick{});
  EXPECT_EQ(b.state.mode, valve_mode::fail_safe);
  for (const effect& each : b.effects) EXPECT_FALSE(std::holds_alternative<write_position>(each));
}

TEST(valve, the_same_command_twice_is_given_once) {
  bench b;
  b.run(1);
  b.send(set_position{"", 0.8, "same"});
  const std::size_t before = b.effects.size();
  b.send(set_position{"", 0.8, "same"});
  EXPECT_EQ(b.effects.size(), before);
}

TEST(valve, an_isolation_valve_is_open_or_closed) {
  bench b;
  b.spec.kind = valve_kind::isolation;
  b.send(set_position{"", 0.5, "1"});
  ASSERT_NE(b.refused(), nullptr);
  b.effects.clear();
  b.send(set_position{"", 0.0, "2"});
  EXPECT_EQ(b.refused(), nullptr);
}

}  // namespace
}  // namespace busbar::valve
