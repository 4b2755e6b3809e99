// A rack PDU as it is kept: what depends on an outlet, intents, restarts, and a PDU that cannot be read.
#include <gtest/gtest.h>

#include <map>

#include "actors/core/errors.hpp"
#include "actors/pdu/pdu_keeping.hpp"

namespace busbar::pdu {
namespace {

using core::fault;
using devices::outlet_state;

// A PDU of two outlets under a keeper; its relays follow an ask, or not.
struct bench {
  bench() {
    journal::PduSpec spec;
    spec.set_name("u01");
    spec.set_protocol("snmp");
    for (const auto& [id, feeds] : {std::pair{"3", "p01"}, std::pair{"4", "p02"}}) {
      journal::OutletSpec& row = *spec.add_outlets();
      row.set_id(id);
      row.set_feeds(feeds);
    }
    kept = begin_keeping(declared_pdu("r01", spec, "u"), now);
    relays = {{"3", outlet_state::on}, {"4", outlet_state::on}, {"9", outlet_state::on}};
  }

  core::command ask_for(const std::string& wish_word, const std::string& outlet = "3") const {
    core::command what;
    what.verb = "outlet_switch";
    what.target = "r01/u01";
    what.reason = "swap the cord";
    what.principal.set_name("alice");
    what.arguments = {{"outlet", outlet}, {"wish", wish_word}};
    return what;
  }
  absl::Status refused(const core::command& what) const {
    return refuse(kept, what, [this](const std::string& outlet) {
      const auto found = losing.find(outlet);
      return found == losing.end() ? std::vector<std::string>() : found->second;
    });
  }
  void begin(const core::command& what, const std::string& operation) {
    ASSERT_TRUE(refused(what).ok()) << refused(what);
    give(operation_began{what, operation});
  }
  void give(const keeping_event& what) {
    keeping_step made = step(kept, what, now);
    if (made.durable) {
      stored = kept.record;
      ++commits;
    }
    wake_at_ns = made.wake_at_ns;
    bool read_wanted = false;
    for (const auto& each : made.effects) {
      if (std::holds_alternative<read_bank>(each)) read_wanted = true;
      if (const auto* act = std::get_if<ask_outlet>(&each)) {
        asks.push_back(act->outlet + " " + std::string(devices::name_of(act->act)));
        EXPECT_GT(stored.intents_size(), 0) << "nothing is asked without a durable intent";
        if (obeys)
          relays[act->outlet] = act->act == devices::outlet_act::on ? outlet_state::on : outlet_state::off;
        if (answers) give(outlet_answered{act->outlet, absl::OkStatus()});
      }
      if (const auto* end = std::get_if<core::operation_end>(&each))
        ended[end->operation_id] = end->state + " " + end->fault;
    }
    if (read_wanted) read();
  }
  void read() {
    ++reads;
    if (!answers) return give(outlets_read{absl::DeadlineExceededError("no answer in 3 s")});
    std::vector<devices::outlet_facts> facts;
    for (const auto& [id, state] : relays) {
      devices::outlet_facts one;
      one.id = id;
      one.state = state;
      one.current_a = state == outlet_state::on || leaks ? 3.0 : 0.0;
      facts.push_back(one);
    }
    give(outlets_read{facts});
  }
  void seconds(int count) {
    for (int i = 0; i < count; ++i) {
      now.monotonic_ns += 1'000'000'000;
      now.wall_ns += 1'000'000'000;
      give(tick{});
    }
  }
  void restart() { kept = begin_keeping(stored, now); }
  journal::Outlet row(int index) const { return kept.record.outlets(index); }

  core::instant now{1'000'000'000'000, 1'790'000'000'000'000'000};
  keeper kept;
  journal::Pdu stored;
  std::map<std::string, outlet_state> relays;
  std::map<std::string, std::vector<std::string>> losing;
  bool obeys = true, answers = true, leaks = false;
  std::vector<std::string> asks;
  std::map<std::string, std::string> ended;
  std::int64_t wake_at_ns = 0;
  int commits = 0, reads = 0;
};

TEST(pdu_keeping, reads_at_rest_every_ten_seconds_and_writes_only_changes) {
  bench b;
  b.seconds(1);
  EXPECT_EQ(b.row(0).state(), journal::Outlet::ON);
  EXPECT_EQ(b.kept.record.outlets_size(), 2) << "an outlet that is not declared is nobody's";
  const int commits = b.commits;
  const int reads = b.reads;
  b.seconds(100);
  EXPECT_EQ(b.commits, commits);
  EXPECT_EQ(b.reads, reads + 10);
}

TEST(pdu_keeping, an_outlet_is_off_when_it_is_read_off) {
  bench b;
  b.seconds(1);
  b.begin(b.ask_for("off"), "operations/1");
  b.seconds(3);
  EXPECT_EQ(b.ended["operations/1"], "SUCCEEDED ");
  EXPECT_EQ(b.asks, std::vector<std::string>{"3 off"});
  EXPECT_EQ(b.stored.outlets(0).proof(), "proven");
  EXPECT_EQ(b.stored.outlets(0).state(), journal::Outlet::OFF);
  EXPECT_EQ(b.stored.intents_size(), 0);
}

TEST(pdu_keeping, a_pdu_that_acknowledges_and_does_not_switch_has_failed) {
  bench b;
  b.seconds(1);
  b.obeys = false;
  b.begin(b.ask_for("off"), "operations/1");
  b.seconds(40);
  EXPECT_EQ(b.ended["operations/1"], "FAILED OUTLET_NOT_SWITCHED");
  EXPECT_EQ(b.asks.size(), 1U) << "it is not toggled again";
  EXPECT_EQ(b.stored.outlets(0).proof(), "failed");
}

TEST(pdu_keeping, off_that_delivers_is_on) {
  bench b;
  b.seconds(1);
  b.leaks = true;
  b.begin(b.ask_for("off"), "operations/1");
  b.seconds(40);
  EXPECT_EQ(b.ended["operations/1"], "FAILED OUTLET_NOT_SWITCHED");
  EXPECT_EQ(b.stored.outlets(0).state(), journal::Outlet::ON);
}

TEST(pdu_keeping, what_running_hosts_need_is_not_turned_off) {
  bench b;
  b.losing["3"] = {"r01/c01", "r01/c02"};
  b.seconds(1);
  for (const char* wish_word : {"off", "cycle"}) {
    const absl::Status no = b.refused(b.ask_for(wish_word));
    EXPECT_EQ(core::fault_of(no), fault::OUTLET_FEEDS_HOSTS);
    EXPECT_NE(std::string(no.message()).find("r01/c01, r01/c02"), std::string::npos);
  }
  EXPECT_TRUE(b.refused(b.ask_for("on")).ok());
  EXPECT_TRUE(b.refused(b.ask_for("off", "4")).ok());
}

TEST(pdu_keeping, refuses_what_it_does_not_know) {
  bench b;
  b.seconds(1);
  EXPECT_EQ(core::fault_of(b.refused(b.ask_for("off", "9"))), fault::UNKNOWN_TARGET);
  EXPECT_FALSE(b.refused(b.ask_for("toggle")).ok());
  core::command mute = b.ask_for("off");
  mute.reason.clear();
  EXPECT_FALSE(b.refused(mute).ok());
}

TEST(pdu_keeping, the_second_operator_of_an_outlet_waits_and_another_outlet_does_not) {
  bench b;
  b.seconds(1);
  b.obeys = false;
  b.begin(b.ask_for("off"), "operations/1");
  EXPECT_EQ(core::fault_of(b.refused(b.ask_for("on"))), fault::LEASE_HELD);
  b.obeys = true;
  b.begin(b.ask_for("off", "4"), "operations/2");
  b.seconds(3);
  EXPECT_EQ(b.ended["operations/2"], "SUCCEEDED ");
}

TEST(pdu_keeping, a_kill_between_intent_and_ask_asks_after_the_restart) {
  bench b;
  b.seconds(1);
  b.answers = false;
  b.begin(b.ask_for("off"), "operations/1");
  EXPECT_TRUE(b.asks.empty());
  b.answers = true;
  b.restart();
  b.seconds(4);
  EXPECT_EQ(b.asks, std::vector<std::string>{"3 off"});
  EXPECT_EQ(b.ended["operations/1"], "SUCCEEDED ");
}

TEST(pdu_keeping, a_kill_after_the_ask_asks_nothing_again) {
  bench b;
  b.seconds(1);
  b.begin(b.ask_for("off"), "operations/1");
  b.stored.mutable_intents()->Clear();
  journal::Intent& open = *b.stored.add_intents();
  open.set_id("r01/u01/3/0");
  open.set_operation_id("operations/1");
  (*open.mutable_arguments())["outlet"] = "3";
  (*open.mutable_arguments())["wish"] = "off";
  b.asks.clear();
  b.ended.clear();
  b.restart();
  b.seconds(4);
  EXPECT_TRUE(b.asks.empty());
  EXPECT_EQ(b.ended["operations/1"], "SUCCEEDED ");
}

TEST(pdu_keeping, a_cycle_cut_by_a_restart_is_finished_where_it_is_off_and_unproven_where_it_is_on) {
  for (const outlet_state found : {outlet_state::off, outlet_state::on}) {
    bench b;
    b.seconds(1);
    b.answers = false;
    b.begin(b.ask_for("cycle"), "operations/1");
    b.answers = true;
    b.relays["3"] = found;
    b.restart();
    b.seconds(6);
    const bool off = found == outlet_state::off;
    EXPECT_EQ(b.ended["operations/1"], off ? "SUCCEEDED " : "FAILED OUTLET_UNPROVEN");
    EXPECT_EQ(b.asks, off ? std::vector<std::string>{"3 on"} : std::vector<std::string>{});
    EXPECT_EQ(b.stored.intents_size(), 0);
  }
}

TEST(pdu_keeping, a_silent_pdu_has_no_known_outlet) {
  bench b;
  b.seconds(1);
  EXPECT_EQ(b.stored.health(), journal::HEALTH_GOOD);
  b.answers = false;
  b.seconds(60);
  EXPECT_EQ(b.stored.health(), journal::HEALTH_UNKNOWN);
  EXPECT_EQ(b.stored.outlets(0).state(), journal::Outlet::UNKNOWN);
  ASSERT_EQ(b.stored.conditions_size(), 1);
  EXPECT_EQ(b.stored.conditions(0).type(), "PDU_UNREACHABLE");
  b.answers = true;
  b.seconds(11);
  EXPECT_EQ(b.stored.conditions_size(), 0);
  EXPECT_EQ(b.stored.outlets(0).state(), journal::Outlet::ON);
}

TEST(pdu_keeping, a_changed_declaration_keeps_what_is_known_of_the_outlets_that_stay) {
  bench b;
  b.seconds(1);
  journal::Pdu changed = b.stored;
  changed.mutable_spec()->mutable_outlets()->DeleteSubrange(0, 1);
  changed.mutable_spec()->add_outlets()->set_id("5");
  declare_outlets(changed);
  ASSERT_EQ(changed.outlets_size(), 2);
  EXPECT_EQ(changed.outlets(0).id(), "4");
  EXPECT_EQ(changed.outlets(0).state(), journal::Outlet::ON);
  EXPECT_EQ(changed.outlets(1).state(), journal::Outlet::UNKNOWN);
}

}  // namespace
}  // namespace busbar::pdu
