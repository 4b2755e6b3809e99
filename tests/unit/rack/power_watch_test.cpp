// When a rack has its members' power read again, and what it does not say before it was.
#include <gtest/gtest.h>

#include <map>

#include "tests/unit/rack/rack_bench.hpp"

namespace busbar::rack::test {
namespace {

constexpr std::int64_t ns_per_s = 1'000'000'000;

void all_in_production(rack_bench& bench) {
  for (const auto kind : {journal::COMPUTE_TRAY, journal::SWITCH_TRAY, journal::POWER_SHELF}) {
    bench.change_all(kind, [](journal::Node& node) {
      node.set_step(journal::PRODUCTION);
      node.mutable_power()->set_observed(journal::POWER_ON);
      node.mutable_power()->set_wanted(journal::POWER_ON);
    });
  }
}

void reach_production(rack_bench& bench) {
  bench.reach(journal::RACK_PRODUCTION);
  all_in_production(bench);
  ASSERT_EQ(bench.operation_state(), "SUCCEEDED");
  bench.effects.clear();
}

std::map<std::string, int> looks_of(const rack_bench& bench) {
  std::map<std::string, int> found;
  for (const look_power& look : bench.effects_of<look_power>()) ++found[look.member];
  return found;
}

void lose(rack_bench& bench, const std::string& name) {
  bench.change(name, [](journal::Node& node) {
    node.set_step(journal::CREDENTIALED);
    node.mutable_power()->set_observed(journal::POWER_OFF);
    node.mutable_power()->set_wanted(journal::POWER_OFF);
    node.mutable_failure()->set_fault("POWER_ON_NOT_CONFIRMED");
    node.mutable_failure()->set_step(journal::STAGED);
    (*node.mutable_facts())["power_lost"] = "nothing of ours turned it off";
  });
}

TEST(power_watch, every_member_is_read_every_thirty_seconds_and_not_all_at_once) {
  rack_bench bench;
  reach_production(bench);
  std::size_t most = 0;
  for (int second = 0; second < 65; ++second) {
    const auto before = bench.effects_of<look_power>().size();
    bench.wait_ns(ns_per_s);
    bench.cool();
    most = std::max(most, bench.effects_of<look_power>().size() - before);
  }
  const auto looks = looks_of(bench);
  EXPECT_EQ(looks.size(), bench.state.run.members.size());
  for (const auto& [name, count] : looks) {
    EXPECT_GE(count, 2) << name;
    EXPECT_LE(count, 3) << name;
  }
}

TEST(power_watch, a_trip_has_those_it_concerns_read_at_once_and_often) {
  struct row {
    const char* scope;
    std::size_t members;
  };
  for (const row& one : {row{"r01", 35}, row{"r01/c03", 1}}) {
    rack_bench bench;
    reach_production(bench);
    bench.arm([&one](interlock::Status& status) {
      auto& trip = *status.add_open_trips();
      trip.set_number(4);
      trip.set_scope(one.scope);
    });
    const auto looks = bench.effects_of<look_power>();
    EXPECT_EQ(looks.size(), one.members) << one.scope;
    for (const look_power& look : looks) EXPECT_NE(look.tripped.find("trip 4"), std::string::npos);
    bench.wait_ns(2 * ns_per_s);
    bench.cool();
    EXPECT_GE(bench.effects_of<look_power>().size(), 2 * one.members) << "until it is known to be off";
  }
}

TEST(power_watch, a_latch_or_a_shut_gate_has_its_tray_read_at_once) {
  for (const bool latched : {true, false}) {
    rack_bench bench;
    reach_production(bench);
    const auto shut = [latched](interlock::Status& status) {
      status.mutable_devices(2)->set_latched(latched);
      status.mutable_devices(2)->set_gate_open(false);
    };
    bench.arm(shut);
    ASSERT_EQ(bench.effects_of<look_power>().size(), 1U);
    EXPECT_EQ(bench.effects_of<look_power>()[0].tripped.empty(), !latched);
    bench.arm(shut);
    EXPECT_EQ(bench.effects_of<look_power>().size(), 1U) << "the same heartbeat again says nothing new";
  }
}

TEST(power_watch, a_bring_up_in_production_says_nothing_before_every_member_was_read) {
  rack_bench bench;
  reach_production(bench);
  bench.answers_looks = false;
  bench.give(begin_bringup{"operations/1"});
  EXPECT_EQ(bench.operation_state(), "");
  const auto looks = looks_of(bench);
  EXPECT_EQ(looks.size(), bench.state.run.members.size());
  for (const auto& [name, count] : looks) {
    EXPECT_EQ(bench.operation_state(), "") << "before " << name;
    bench.give(power_read{name, true, journal::POWER_ON});
  }
  EXPECT_EQ(bench.operation_state(), "SUCCEEDED");
}

TEST(power_watch, a_bring_up_does_not_succeed_with_a_member_off_unknown_or_silent) {
  for (int what = 0; what < 3; ++what) {
    for (const char* of : {"r01/c03", "r01/s02", "r01/p01"}) {
      rack_bench bench;
      reach_production(bench);
      bench.answers_looks = false;
      bench.give(begin_bringup{"operations/1"});
      for (const auto& [name, count] : looks_of(bench)) {
        if (name != of) bench.give(power_read{name, true, journal::POWER_ON});
      }
      if (what == 0) bench.give(power_read{of, true, journal::POWERING_OFF});
      if (what == 1) bench.give(power_read{of, false, journal::POWER_UNKNOWN});
      if (what == 2) bench.wait_ns(31 * ns_per_s);
      bench.cool();
      EXPECT_EQ(bench.operation_state(), "FAILED") << of << " case " << what;
    }
  }
}

TEST(power_watch, a_bring_up_does_not_succeed_while_the_interlock_is_not_heard) {
  rack_bench bench;
  reach_production(bench);
  auto dead = std::make_shared<interlock_view>(*bench.state.run.interlock);
  dead->life = interlock_life::dead;
  dead->age = std::chrono::milliseconds(3000);
  bench.give(interlock_heard{dead});
  bench.give(begin_bringup{"operations/1"});
  EXPECT_EQ(bench.operation_state(), "");
  bench.wait_ns(31 * ns_per_s);
  bench.cool();
  EXPECT_EQ(bench.operation_state(), "FAILED");
  const auto ends = bench.effects_of<core::operation_end>();
  EXPECT_EQ(ends.back().fault, "POWER_INTERLOCK_NOT_ARMED");
}

TEST(power_watch, a_member_that_lost_its_power_lowers_the_rack_and_a_bring_up_begins_at_cooled) {
  rack_bench bench;
  reach_production(bench);
  lose(bench, slot('s', 1));
  EXPECT_EQ(bench.state.rack.state(), "cordoned");
  bench.give(begin_bringup{"operations/2"});
  EXPECT_FALSE(bench.state.rack.has_failure());
  EXPECT_EQ(bench.state.rack.step(), journal::COOLED);
}

TEST(power_watch, no_compute_tray_is_let_on_before_each_switch_tray_is_read_on_failed_or_not) {
  for (const bool failed : {true, false}) {
    rack_bench bench;
    bench.reach(journal::COOLED);
    bench.change_all(journal::SWITCH_TRAY,
                     [](journal::Node& node) { node.mutable_power()->set_observed(journal::POWER_ON); });
    bench.change(slot('s', 1), [failed](journal::Node& node) {
      node.mutable_power()->set_observed(journal::POWER_OFF);
      if (failed) node.mutable_failure()->set_fault("POWER_ON_NOT_CONFIRMED");
    });
    bench.give(permit_wanted{slot('c', 1), node::permit_kind::power_on});
    ASSERT_NE(bench.last_answer(slot('c', 1)), nullptr);
    EXPECT_FALSE(bench.last_answer(slot('c', 1))->granted) << failed;
  }
}

TEST(sight, members_are_told_once_when_their_detectors_are_not_known_and_when_they_are_again) {
  const std::map<std::string, std::function<void(interlock_view&, interlock::Status&)>> ways{
      {"dead", [](interlock_view& view, interlock::Status&) { view.life = interlock_life::dead; }},
      {"unknown detector",
       [](interlock_view&, interlock::Status& status) {
         for (auto& row : *status.mutable_devices())
           row.mutable_detectors(0)->set_verdict(interlock::DetectorReading::UNKNOWN);
       }},
      {"no whole poll",
       [](interlock_view&, interlock::Status& status) {
         for (auto& row : *status.mutable_devices()) row.set_armed(false);
       }},
      {"no row", [](interlock_view&, interlock::Status& status) { status.clear_devices(); }},
  };
  for (const auto& [what, how] : ways) {
    rack_bench bench;
    reach_production(bench);
    auto status = std::make_shared<interlock::Status>(*bench.state.run.interlock->status);
    auto view = std::make_shared<interlock_view>();
    view->life = interlock_life::alive;
    how(*view, *status);
    view->status = status;
    for (int beat = 0; beat < 10; ++beat) {
      bench.give(interlock_heard{view});
      bench.wait_ns(ns_per_s / 2);
    }
    const auto told = bench.effects_of<tell_sight>();
    EXPECT_EQ(told.size(), 27U) << what;
    for (const tell_sight& one : told) EXPECT_FALSE(one.lost.empty()) << what;
    bench.effects.clear();
    bench.arm();
    EXPECT_EQ(bench.effects_of<tell_sight>().size(), 27U) << what;
    for (const tell_sight& one : bench.effects_of<tell_sight>()) EXPECT_TRUE(one.lost.empty()) << what;
  }
}

TEST(sight, one_that_was_never_heard_watches_nothing) {
  rack_bench bench;
  all_in_production(bench);
  EXPECT_TRUE(bench.effects_of<tell_sight>().empty()) << "it has three seconds to be heard";
  bench.wait_ns(3 * ns_per_s);
  bench.cool();
  EXPECT_EQ(bench.effects_of<tell_sight>().size(), 27U);
}

}  // namespace
}  // namespace busbar::rack::test
