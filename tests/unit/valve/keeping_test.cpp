// A valve as it is kept: intent before command, leases, hosts that need the liquid, trips, restarts.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "actors/core/errors.hpp"
#include "actors/valve/valve_keeping.hpp"

namespace busbar::valve {
namespace {

using namespace std::chrono_literals;
using core::fault;

// A keeper with a valve under it that follows what is sent, as its controller would.
struct bench {
  explicit bench(const journal::ValveSpec& spec = isolation()) {
    kept = begin_keeping(declared_valve("r01", spec, "u1"), now);
  }

  static journal::ValveSpec isolation() {
    journal::ValveSpec spec;
    spec.set_name("supply");
    spec.set_kind("isolation");
    spec.set_member("m01");
    spec.set_authority("busbar");
    spec.set_fail_position("hold");
    spec.mutable_stroke()->set_seconds(15);
    return spec;
  }
  static journal::ValveSpec control() {
    journal::ValveSpec spec = isolation();
    spec.set_name("flow");
    spec.set_kind("control");
    spec.set_least_percent(10);
    return spec;
  }

  core::command ask(const std::string& who, double percent, double lease_s = 600) const {
    core::command what;
    what.verb = "valve_set";
    what.target = kept.record.name();
    what.principal.set_name(who);
    what.reason = "work on the hose";
    what.arguments = {{"opening_percent", std::to_string(percent)}, {"lease_s", std::to_string(lease_s)}};
    return what;
  }
  absl::Status refused(const core::command& what) const { return refuse(kept, what, around, now); }
  void begin(const core::command& what, const std::string& operation) {
    ASSERT_TRUE(refused(what).ok()) << refused(what);
    give(operation_began{what, operation});
  }
  void give(const keeping_event& event) {
    keeping_step made = step(kept, event, around, now);
    if (made.durable) {
      stored = kept.record;
      ++commits;
    }
    for (const auto& each : made.effects) {
      if (const auto* write = std::get_if<send_write>(&each)) {
        // Nothing leaves before it is durable.
        if (write->id != "loop" && !made.durable) ADD_FAILURE() << "a write without a commit";
        writes.push_back(write->percent);
        if (obeys) goal = write->percent;
      }
      if (const auto* end = std::get_if<core::operation_end>(&each))
        ended[end->operation_id] = end->state + " " + end->fault;
    }
    for (auto& event_row : made.events) events.push_back(event_row.type());
  }
  void second() {
    now.monotonic_ns += 1'000'000'000;
    now.wall_ns += 1'000'000'000;
    stem += std::clamp(goal - stem, -100.0 / 15.0, 100.0 / 15.0);
    if (!answers) return give(tick{});
    devices::valve_facts facts;
    facts.position_percent = claims ? claims : std::optional(stem);
    facts.flow_lpm = flow;
    give(port_read{facts});
  }
  void seconds(int count) {
    for (int i = 0; i < count; ++i) second();
  }
  // kill -9 and the next start: what is stored comes back, nothing else.
  void restart() {
    now.monotonic_ns += 1'000'000;
    kept = begin_keeping(stored, now);
  }
  std::string proof_word() const { return kept.record.proof(); }

  core::instant now{1'000'000'000'000, 1'790'000'000'000'000'000};
  surroundings around;
  keeper kept;
  journal::Valve stored;
  double stem = 100, goal = 100;
  bool answers = true, obeys = true;
  std::optional<double> claims, flow;
  std::vector<double> writes;
  std::vector<std::string> events;
  std::map<std::string, std::string> ended;
  int commits = 0;
};

TEST(keeping, closes_a_valve_and_ends_the_operation_by_what_is_read) {
  bench b;
  b.seconds(2);
  b.begin(b.ask("alice", 0), "operations/1");
  EXPECT_EQ(b.writes, std::vector<double>{0});
  EXPECT_EQ(b.stored.intents_size(), 1);
  EXPECT_EQ(b.proof_word(), "moving");
  b.seconds(5);
  EXPECT_TRUE(b.ended.empty());
  b.seconds(15);
  EXPECT_EQ(b.ended["operations/1"], "SUCCEEDED ");
  EXPECT_EQ(b.stored.proof(), "proven");
  EXPECT_EQ(b.stored.proven_percent(), 0);
  EXPECT_EQ(b.stored.intents_size(), 0);
  EXPECT_EQ(b.stored.mode(), "manual");
  EXPECT_EQ(b.stored.lease().holder(), "alice");
}

TEST(keeping, a_valve_at_rest_writes_nothing) {
  bench b;
  b.seconds(3);
  const int before = b.commits;
  b.seconds(100);
  EXPECT_EQ(b.commits, before);
}

TEST(keeping, takes_no_liquid_from_hosts_that_are_not_read_off) {
  for (const journal::ValveSpec& spec : {bench::isolation(), bench::control()}) {
    bench b(spec);
    b.seconds(2);
    b.around.hosts = {"r01/c01", "r01/c02"};
    journal::ValveSpec wide = spec;
    wide.set_least_percent(0);
    b.kept.spec = spec_of(b.kept.record.name(), wide);
    const absl::Status no = b.refused(b.ask("alice", 0));
    EXPECT_EQ(core::fault_of(no), fault::COOLING_NEEDED);
    EXPECT_NE(std::string(no.message()).find("r01/c01, r01/c02"), std::string::npos);
    EXPECT_TRUE(b.refused(b.ask("alice", 100)).ok());
    b.around.hosts.clear();
    EXPECT_TRUE(b.refused(b.ask("alice", 0)).ok());
  }
}

TEST(keeping, a_control_valve_may_be_throttled_but_not_below_its_floor) {
  bench b(bench::control());
  b.seconds(2);
  b.around.hosts = {"r01/c01"};
  EXPECT_TRUE(b.refused(b.ask("alice", 40)).ok());
  EXPECT_EQ(core::fault_of(b.refused(b.ask("alice", 5))), fault::SETPOINT_LIMIT);
  EXPECT_EQ(core::fault_of(b.refused(b.ask("alice", 101))), fault::SETPOINT_LIMIT);
}

TEST(keeping, of_two_operators_the_second_is_refused_by_the_name_of_the_first) {
  bench b;
  b.seconds(2);
  b.begin(b.ask("alice", 0), "operations/1");
  const absl::Status no = b.refused(b.ask("bob", 100));
  EXPECT_EQ(core::fault_of(no), fault::LEASE_HELD);
  EXPECT_NE(std::string(no.message()).find("alice (work on the hose)"), std::string::npos);
  core::command give_up = b.ask("bob", 0);
  give_up.verb = "valve_release";
  EXPECT_EQ(core::fault_of(b.refused(give_up)), fault::LEASE_HELD);
  b.seconds(20);
  give_up.principal.set_name("alice");
  b.begin(give_up, "operations/2");
  EXPECT_EQ(b.ended["operations/2"], "SUCCEEDED ");
  EXPECT_EQ(b.stored.mode(), "automatic");
  EXPECT_FALSE(b.stored.has_lease());
  EXPECT_TRUE(b.refused(b.ask("bob", 100)).ok());
}

TEST(keeping, the_same_operator_may_turn_back_in_mid_stroke) {
  bench b;
  b.seconds(2);
  b.begin(b.ask("alice", 0), "operations/1");
  b.seconds(3);
  b.begin(b.ask("alice", 100), "operations/2");
  EXPECT_EQ(b.ended["operations/1"], "CANCELLED ");
  b.seconds(20);
  EXPECT_EQ(b.ended["operations/2"], "SUCCEEDED ");
  EXPECT_EQ(b.writes, (std::vector<double>{0, 100}));
}

TEST(keeping, a_lease_lapses_also_while_the_daemon_is_down) {
  bench b;
  b.seconds(2);
  b.begin(b.ask("alice", 0, 60), "operations/1");
  b.seconds(20);
  ASSERT_EQ(b.stored.mode(), "manual");
  b.now.wall_ns += 3'600'000'000'000;
  b.restart();
  EXPECT_EQ(b.kept.logic.mode, valve_mode::manual) << "until the first look at the clock";
  b.second();
  EXPECT_EQ(b.stored.mode(), "automatic");
  EXPECT_FALSE(b.stored.has_lease());
  EXPECT_EQ(b.writes.size(), 1U) << "fail position hold: it stays where it is";
}

TEST(keeping, a_lapsed_lease_leads_to_the_fail_position_where_no_loop_speaks) {
  journal::ValveSpec spec = bench::isolation();
  spec.set_fail_position("open");
  bench b(spec);
  b.seconds(2);
  b.begin(b.ask("alice", 0, 30), "operations/1");
  b.seconds(28);
  EXPECT_EQ(b.writes, std::vector<double>{0});
  b.seconds(25);
  EXPECT_EQ(b.writes, (std::vector<double>{0, 100}));
  EXPECT_EQ(b.stored.proof(), "proven");
}

TEST(keeping, a_kill_between_intent_and_write_asks_once_after_the_restart) {
  bench b;
  b.seconds(2);
  b.obeys = false;  // the write never left
  b.begin(b.ask("alice", 0), "operations/1");
  b.writes.clear();
  b.obeys = true;
  b.restart();
  b.seconds(30);
  EXPECT_EQ(b.writes, std::vector<double>{0});
  EXPECT_EQ(b.ended["operations/1"], "SUCCEEDED ");
}

TEST(keeping, a_kill_after_the_write_asks_nothing_again) {
  for (const int moved_for : {1, 5, 14, 20}) {
    bench b;
    b.seconds(2);
    b.begin(b.ask("alice", 0), "operations/1");
    b.writes.clear();
    b.stem -= moved_for * 100.0 / 15.0;
    b.stem = std::max(0.0, b.stem);
    b.restart();
    b.seconds(30);
    EXPECT_TRUE(b.writes.empty()) << "moved for " << moved_for << " s before the restart";
    EXPECT_EQ(b.ended["operations/1"], "SUCCEEDED ");
  }
}

TEST(keeping, a_command_that_ended_unproven_is_not_asked_again_by_a_later_life) {
  bench b;
  b.seconds(2);
  b.obeys = false;
  b.claims = 900;  // no position
  b.begin(b.ask("alice", 0), "operations/1");
  b.seconds(40);
  ASSERT_EQ(b.ended["operations/1"], "FAILED VALVE_UNPROVEN");
  b.writes.clear();
  b.claims.reset();
  b.restart();
  b.seconds(40);
  EXPECT_TRUE(b.writes.empty());
  EXPECT_EQ(b.stored.proof(), "failed");
  EXPECT_EQ(b.stored.intents_size(), 0);
}

TEST(keeping, hosts_that_came_on_while_the_daemon_was_down_keep_their_liquid) {
  bench b;
  b.seconds(2);
  b.obeys = false;
  b.begin(b.ask("alice", 0), "operations/1");
  b.writes.clear();
  b.restart();
  b.around.hosts = {"r01/c03"};
  b.seconds(30);
  EXPECT_TRUE(b.writes.empty());
  EXPECT_EQ(b.ended["operations/1"], "FAILED COOLING_NEEDED");
  EXPECT_EQ(b.stored.intents_size(), 0);
}

TEST(keeping, a_lost_answer_is_no_reason_to_ask_what_moves) {
  bench b;
  b.seconds(2);
  b.begin(b.ask("alice", 0), "operations/1");
  b.give(port_wrote{b.stored.intents(0).id(), core::make_fault(fault::BMC_SLOW, "no answer within 10 s")});
  b.seconds(25);
  EXPECT_EQ(b.writes, std::vector<double>{0});
  EXPECT_EQ(b.ended["operations/1"], "SUCCEEDED ");
}

TEST(keeping, a_refused_write_ends_at_once_with_what_the_controller_said) {
  bench b;
  b.seconds(2);
  b.obeys = false;
  b.begin(b.ask("alice", 0), "operations/1");
  b.give(port_wrote{b.stored.intents(0).id(),
                    core::make_fault(fault::CONFIG_READ_ONLY, "offers [Open], not Closed")});
  EXPECT_EQ(b.ended["operations/1"], "FAILED CONFIG_READ_ONLY");
  EXPECT_EQ(b.stored.proof(), "failed");
  EXPECT_EQ(b.stored.intents_size(), 0);
}

TEST(keeping, names_what_a_valve_does_wrong) {
  struct row {
    const char* name;
    std::function<void(bench&)> spoil;
    const char* ends;
  };
  const row rows[] = {
      {"stuck", [](bench& b) { b.obeys = false; }, "FAILED VALVE_STUCK"},
      {"stops short", [](bench& b) { b.goal = 50; }, "FAILED VALVE_STICKING"},
      {"lies closed", [](bench& b) { b.flow = 80; }, "FAILED VALVE_CONTRADICTED"},
      {"gives no position", [](bench& b) { b.claims = 900; }, "FAILED VALVE_UNPROVEN"},
  };
  for (const row& each : rows) {
    journal::ValveSpec spec = bench::isolation();
    spec.set_rated_lpm(120);
    bench b(spec);
    b.flow = 0;
    b.seconds(2);
    if (std::string(each.name) == "stuck") each.spoil(b);
    b.begin(b.ask("alice", 0), "operations/1");
    each.spoil(b);
    b.seconds(40);
    EXPECT_EQ(b.ended["operations/1"], each.ends) << each.name;
    EXPECT_NE(b.stored.health(), journal::HEALTH_GOOD) << each.name;
  }
}

TEST(keeping, a_closed_valve_is_proven_when_the_flow_has_followed) {
  journal::ValveSpec spec = bench::isolation();
  spec.set_rated_lpm(120);
  bench b(spec);
  b.flow = 100;
  b.seconds(2);
  b.begin(b.ask("alice", 0), "operations/1");
  b.seconds(16);
  EXPECT_TRUE(b.ended.empty()) << "the meter lags";
  b.flow = 0.1;
  b.second();
  EXPECT_EQ(b.ended["operations/1"], "SUCCEEDED ");
}

TEST(keeping, drift_is_a_condition_until_it_is_back) {
  bench b;
  b.seconds(2);
  b.begin(b.ask("alice", 0), "operations/1");
  b.seconds(20);
  b.goal = 30;  // somebody's hand
  b.seconds(10);
  ASSERT_EQ(b.stored.conditions_size(), 1);
  EXPECT_EQ(b.stored.conditions(0).type(), "VALVE_DRIFTING");
  EXPECT_EQ(b.stored.health(), journal::HEALTH_BAD);
  b.goal = 0;
  b.seconds(20);
  EXPECT_EQ(b.stored.conditions_size(), 0);
  EXPECT_EQ(b.stored.health(), journal::HEALTH_GOOD);
}

TEST(keeping, a_trip_ends_what_was_asked_and_nothing_opens_against_it) {
  bench b;
  b.seconds(2);
  b.begin(b.ask("alice", 100), "operations/1");
  b.around.trip = "trip 3 of r01: two trays leak";
  b.around.no_opening = b.around.trip;
  b.goal = 0;  // the interlock's hand
  b.seconds(30);
  EXPECT_EQ(b.ended["operations/1"], "FAILED PREEMPTED");
  EXPECT_EQ(b.writes, std::vector<double>{100}) << "shown, not fought";
  EXPECT_FALSE(b.stored.has_lease());
  ASSERT_EQ(b.stored.conditions_size(), 1);
  EXPECT_EQ(b.stored.conditions(0).type(), "TRIP_OPEN");
  EXPECT_EQ(core::fault_of(b.refused(b.ask("alice", 100))), fault::TRIP_OPEN);
  b.restart();
  b.seconds(5);
  EXPECT_EQ(b.stored.conditions_size(), 1);
  b.around = {};
  b.seconds(5);
  EXPECT_EQ(b.stored.conditions_size(), 0);
  EXPECT_EQ(b.writes.size(), 1U) << "after the reset it waits for a person";
  EXPECT_TRUE(b.refused(b.ask("alice", 100)).ok());
}

TEST(keeping, a_latch_of_one_tray_keeps_a_valve_from_opening_and_nothing_else) {
  bench b;
  b.around.no_opening = "a leak is latched on r01/c04";
  b.stem = b.goal = 0;
  b.seconds(2);
  EXPECT_EQ(core::fault_of(b.refused(b.ask("alice", 100))), fault::TRIP_OPEN);
  EXPECT_TRUE(b.refused(b.ask("alice", 0)).ok());
  EXPECT_EQ(b.stored.conditions_size(), 0);
}

TEST(keeping, lost_communication_shows_unknown_and_the_fail_position_obeys_the_hosts) {
  journal::ValveSpec spec = bench::isolation();
  spec.set_fail_position("closed");
  bench b(spec);
  b.seconds(3);
  EXPECT_EQ(b.stored.health(), journal::HEALTH_GOOD);
  b.around.hosts = {"r01/c01"};
  b.answers = false;
  b.seconds(6);
  EXPECT_EQ(b.stored.mode(), "fail_safe");
  EXPECT_EQ(b.stored.health(), journal::HEALTH_UNKNOWN);
  EXPECT_TRUE(b.writes.empty()) << "hosts are on: no liquid is taken from them";
  b.answers = true;
  b.seconds(3);
  EXPECT_EQ(b.stored.mode(), "automatic");
  EXPECT_EQ(b.stored.health(), journal::HEALTH_GOOD);
}

TEST(keeping, a_loop_moves_the_valve_only_while_nobody_holds_it_and_writes_no_journal) {
  bench b(bench::control());
  b.seconds(3);
  const int before = b.commits;
  for (int i = 0; i < 30; ++i) {
    b.give(loop_wants{60.0 + i});
    b.second();
  }
  EXPECT_EQ(b.writes.size(), 30U);
  EXPECT_LE(b.commits, before + 2) << "readings and loops are not state";
  b.begin(b.ask("alice", 40), "operations/1");
  b.give(loop_wants{80});
  EXPECT_EQ(b.writes.back(), 40);
}

TEST(keeping, the_bms_own_valves_are_not_commanded) {
  journal::ValveSpec spec = bench::isolation();
  spec.set_authority("bms");
  bench b(spec);
  b.seconds(2);
  EXPECT_EQ(core::fault_of(b.refused(b.ask("alice", 0))), fault::AUTHORITY_ELSEWHERE);
}

TEST(keeping, a_lease_has_a_bounded_length_and_a_reason) {
  bench b;
  b.seconds(2);
  EXPECT_FALSE(b.refused(b.ask("alice", 0, 3 * 3600)).ok());
  EXPECT_FALSE(b.refused(b.ask("alice", 0, 0)).ok());
  EXPECT_FALSE(b.refused(b.ask("alice", 0, -5)).ok());
  core::command mute = b.ask("alice", 0);
  mute.reason.clear();
  EXPECT_FALSE(b.refused(mute).ok());
  mute.validate_only = true;
  EXPECT_TRUE(b.refused(mute).ok());
}

TEST(keeping, says_what_a_dry_run_would_touch) {
  bench b;
  b.seconds(2);
  b.around.hosts = {"r01/c01"};
  const std::string text = would_do(b.kept, b.ask("alice", 0), b.around);
  for (const char* part : {"isolation valve r01/supply", "m01", "100.0 %", "0 %", "600 s", "1 hosts"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " in: " << text;
}

TEST(keeping, a_shut_valve_shuts_hosts_off) {
  journal::Valve valve = declared_valve("r01", bench::isolation(), "u");
  EXPECT_FALSE(shuts_off(valve));
  valve.set_commanded_percent(0);
  EXPECT_TRUE(shuts_off(valve));
  valve.set_commanded_percent(100);
  EXPECT_FALSE(shuts_off(valve));
  valve.clear_commanded_percent();
  valve.set_proven_percent(0);
  EXPECT_TRUE(shuts_off(valve));
}

}  // namespace
}  // namespace busbar::valve
