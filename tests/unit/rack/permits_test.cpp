// Who may turn on, restart or go blind: each refusal has a fault and words, and no door leads around it.
#include <gtest/gtest.h>

#include "tests/unit/rack/rack_bench.hpp"

namespace busbar::rack::test {
namespace {

using core::fault;
using node::permit_kind;

void ask(rack_bench& bench, const std::string& name, permit_kind kind = permit_kind::power_on) {
  bench.give(permit_wanted{name, kind});
}

void expect_refused(const rack_bench& bench, const std::string& name, fault code) {
  const node::permit_answer* const answer = bench.last_answer(name);
  ASSERT_NE(answer, nullptr);
  EXPECT_FALSE(answer->granted);
  ASSERT_TRUE(answer->fault.has_value());
  EXPECT_EQ(*answer->fault, code) << answer->why;
  EXPECT_FALSE(answer->why.empty());
}

TEST(permits, a_switch_tray_goes_on_when_all_is_proven) {
  rack_bench bench;
  bench.reach(journal::COOLED);
  ask(bench, slot('s', 1));
  EXPECT_EQ(bench.granted(), std::vector<std::string>{slot('s', 1)});
}

TEST(permits, no_host_power_before_the_rack_is_cooled) {
  rack_bench bench;
  bench.reach(journal::INGESTED);
  ask(bench, slot('s', 1));
  expect_refused(bench, slot('s', 1), fault::POWER_FLOW_NOT_PROVEN);
}

TEST(permits, no_host_power_while_flow_is_not_proven) {
  rack_bench bench;
  bench.reach(journal::COOLED);
  bench.cool(100.0);
  ask(bench, slot('s', 1));
  expect_refused(bench, slot('s', 1), fault::POWER_FLOW_NOT_PROVEN);
  bench.cool(std::nullopt);
  ask(bench, slot('s', 2), permit_kind::restart);
  expect_refused(bench, slot('s', 2), fault::POWER_FLOW_NOT_PROVEN);
}

TEST(permits, no_host_power_on_a_stale_reading) {
  rack_bench bench;
  bench.reach(journal::COOLED);
  bench.wait_ns(5'000'000'000);
  ask(bench, slot('s', 1));
  EXPECT_TRUE(bench.granted().empty());
}

TEST(permits, no_host_power_while_the_interlock_is_not_armed_silent_blind_or_latched) {
  struct row {
    std::function<void(interlock::Status&)> how;
    fault code;
  };
  const auto device = [](interlock::Status& status) -> interlock::DeviceStatus& {
    for (auto& one : *status.mutable_devices()) {
      if (one.name() == slot('s', 1)) return one;
    }
    return *status.mutable_devices(0);
  };
  for (const row& bad :
       {row{[](interlock::Status& status) { status.set_armed_rack(false); },
            fault::POWER_INTERLOCK_NOT_ARMED},
        row{[](interlock::Status& status) { status.clear_devices(); }, fault::POWER_INTERLOCK_NOT_ARMED},
        row{[device](interlock::Status& status) { device(status).set_armed(false); },
            fault::POWER_INTERLOCK_NOT_ARMED},
        row{[device](interlock::Status& status) { device(status).set_blind(true); },
            fault::POWER_INTERLOCK_NOT_ARMED},
        row{[device](interlock::Status& status) { device(status).set_latched(true); },
            fault::POWER_LEAK_LATCHED},
        row{[device](interlock::Status& status) { device(status).clear_detectors(); },
            fault::POWER_DETECTOR_UNKNOWN},
        row{[device](interlock::Status& status) {
              device(status).mutable_detectors(0)->set_verdict(interlock::DetectorReading::UNKNOWN);
            },
            fault::POWER_DETECTOR_UNKNOWN}}) {
    rack_bench bench;
    bench.reach(journal::COOLED);
    bench.arm(bad.how);
    ask(bench, slot('s', 1));
    expect_refused(bench, slot('s', 1), bad.code);
  }
}

TEST(permits, no_host_power_while_the_interlock_is_dead) {
  rack_bench bench;
  bench.reach(journal::COOLED);
  auto view = std::make_shared<interlock_view>(*bench.state.run.interlock);
  view->life = interlock_life::dead;
  view->age = std::chrono::seconds(4);
  bench.give(interlock_heard{view});
  ask(bench, slot('s', 1));
  expect_refused(bench, slot('s', 1), fault::POWER_INTERLOCK_NOT_ARMED);
}

// Each reason not to give a permit is one to take it back while its act has not left yet.
TEST(permits, are_taken_back_when_their_reasons_are_gone_before_the_act) {
  using change = std::function<void(rack_bench&)>;
  const change reasons[] = {
      [](rack_bench& bench) {
        auto view = std::make_shared<interlock_view>(*bench.state.run.interlock);
        view->life = interlock_life::dead;
        view->age = std::chrono::seconds(4);
        bench.give(interlock_heard{view});
      },
      [](rack_bench& bench) { bench.arm([](interlock::Status& status) { status.set_armed_rack(false); }); },
      [](rack_bench& bench) {
        bench.arm([](interlock::Status& status) {
          for (auto& one : *status.mutable_devices()) one.set_latched(true);
        });
      },
      [](rack_bench& bench) { bench.cool(100.0); },
      [](rack_bench& bench) { bench.cool(std::nullopt); },
      [](rack_bench& bench) {
        bench.change(slot('s', 1), [](journal::Node& node) { node.set_leak_latched(true); });
      },
      [](rack_bench& bench) {
        bench.change_all(journal::POWER_SHELF, [](journal::Node& node) {
          node.mutable_power()->set_observed(journal::POWER_UNKNOWN);
        });
      },
      [](rack_bench& bench) { bench.give(begin_shutdown{"operations/2"}); },
      [](rack_bench& bench) {
        bench.wait_ns(5'000'000'000);
        bench.give(wake{});
      },
      [](rack_bench& bench) { bench.give(permit_released{slot('s', 1)}); },
  };
  for (const change& reason : reasons) {
    rack_bench bench;
    bench.reach(journal::COOLED);
    ask(bench, slot('s', 1));
    const auto* const answer = bench.last_answer(slot('s', 1));
    ASSERT_TRUE(answer != nullptr && answer->granted && answer->lease != nullptr);
    const auto lease = answer->lease;
    bench.give(wake{});
    EXPECT_TRUE(lease->holds()) << "taken back for nothing";
    reason(bench);
    EXPECT_FALSE(lease->holds()) << "reason " << &reason - reasons;
  }
}

// A rack that waits for its journal judges nothing, and hears its interlock all the same.
TEST(permits, are_taken_back_by_a_heartbeat_alone) {
  rack_bench bench;
  bench.reach(journal::COOLED);
  ask(bench, slot('s', 1));
  ask(bench, slot('s', 2));
  const auto wet = bench.last_answer(slot('s', 1))->lease, dry = bench.last_answer(slot('s', 2))->lease;
  interlock_view heard = *bench.state.run.interlock;
  interlock::Status status = *heard.status;
  for (auto& one : *status.mutable_devices()) {
    if (one.name() == slot('s', 1))
      one.mutable_detectors(0)->set_verdict(interlock::DetectorReading::UNKNOWN);
  }
  heard.status = std::make_shared<const interlock::Status>(status);
  withdraw_where_shut(bench.state.run, heard);
  EXPECT_FALSE(wet->holds());
  EXPECT_TRUE(dry->holds());
}

TEST(permits, given_at_one_moment_count_in_the_budget_of_each_other) {
  rack_bench bench;
  bench.reach(journal::COOLED);
  bench.spec().mutable_manifest()->mutable_power()->set_rack_limit_kw(5.0);
  ask(bench, slot('s', 1));
  ask(bench, slot('s', 2));
  EXPECT_EQ(bench.granted(), std::vector<std::string>{slot('s', 1)});
  expect_refused(bench, slot('s', 2), fault::POWER_OVER_BUDGET);
}

TEST(permits, no_host_power_for_a_tray_with_a_latched_leak) {
  rack_bench bench;
  bench.reach(journal::COOLED);
  bench.change(slot('s', 1), [](journal::Node& node) { node.set_leak_latched(true); });
  ask(bench, slot('s', 1));
  expect_refused(bench, slot('s', 1), fault::POWER_LEAK_LATCHED);
}

TEST(permits, no_host_power_over_the_racks_limit_or_what_the_shelves_give) {
  rack_bench bench;
  bench.reach(journal::COOLED);
  bench.spec().mutable_manifest()->mutable_power()->set_rack_limit_kw(2.9);
  ask(bench, slot('s', 1));
  expect_refused(bench, slot('s', 1), fault::POWER_OVER_BUDGET);
  bench.spec().mutable_manifest()->mutable_power()->set_rack_limit_kw(230);
  bench.change_all(journal::POWER_SHELF,
                   [](journal::Node& node) { node.mutable_power()->set_observed(journal::POWER_UNKNOWN); });
  ask(bench, slot('s', 2));
  expect_refused(bench, slot('s', 2), fault::POWER_OVER_BUDGET);
}

TEST(permits, a_host_that_is_read_on_counts_in_the_budget_whoever_turned_it_on) {
  rack_bench bench;
  bench.reach(journal::COOLED);
  bench.spec().mutable_manifest()->mutable_power()->set_rack_limit_kw(5.0);
  bench.change(slot('s', 2),
               [](journal::Node& node) { node.mutable_power()->set_observed(journal::POWER_ON); });
  ask(bench, slot('s', 1));
  expect_refused(bench, slot('s', 1), fault::POWER_OVER_BUDGET);
}

TEST(permits, a_refusal_is_told_once_and_granted_when_it_is_over) {
  rack_bench bench;
  bench.reach(journal::COOLED);
  bench.cool(100.0);
  ask(bench, slot('s', 1));
  bench.give(wake{});
  bench.give(wake{});
  EXPECT_EQ(bench.effects_of<answer_permit>().size(), 1U);
  bench.soak();
  EXPECT_EQ(bench.granted(), std::vector<std::string>{slot('s', 1)});
}

TEST(permits, switch_trays_go_on_before_compute_trays) {
  rack_bench bench;
  bench.reach(journal::COOLED);
  ask(bench, slot('c', 1));
  ASSERT_NE(bench.last_answer(slot('c', 1)), nullptr);
  EXPECT_FALSE(bench.last_answer(slot('c', 1))->granted);
  bench.change_all(journal::SWITCH_TRAY,
                   [](journal::Node& node) { node.mutable_power()->set_observed(journal::POWER_ON); });
  EXPECT_EQ(bench.granted(), std::vector<std::string>{slot('c', 1)});
}

TEST(permits, hosts_go_on_in_groups_under_the_inrush_limit) {
  rack_bench bench;
  bench.reach(journal::COOLED);
  bench.change_all(journal::SWITCH_TRAY,
                   [](journal::Node& node) { node.mutable_power()->set_observed(journal::POWER_ON); });
  for (unsigned i = 1; i <= 18; ++i) ask(bench, slot('c', i));
  EXPECT_EQ(bench.granted().size(), 7U) << "900 A hold 7 trays of 120 A";
  bench.wait_ns(199'999'999);
  bench.give(wake{});
  EXPECT_EQ(bench.granted().size(), 7U);
  bench.wait_ns(1);
  bench.give(wake{});
  EXPECT_EQ(bench.granted().size(), 14U);
  bench.wake_when_due();
  bench.wake_when_due();
  EXPECT_EQ(bench.granted().size(), 18U);
}

TEST(permits, shelves_go_on_from_standby) {
  rack_bench bench;
  bench.bring_up();
  ask(bench, slot('p', 1));
  EXPECT_TRUE(bench.granted().empty());
  rack_bench later;
  later.reach(journal::STANDBY);
  ask(later, slot('p', 1));
  EXPECT_EQ(later.granted(), std::vector<std::string>{slot('p', 1)});
}

TEST(blind_windows, at_most_six_at_once) {
  rack_bench bench;
  bench.reach(journal::POWERED);
  for (unsigned i = 1; i <= 8; ++i) ask(bench, slot('c', i), permit_kind::blind_window);
  EXPECT_EQ(bench.granted().size(), 6U);
  EXPECT_EQ(bench.effects_of<announce_blind>().size(), 6U) << "each is told to the interlock";
  expect_refused(bench, slot('c', 7), fault::POWER_DETECTOR_UNKNOWN);
  bench.give(permit_released{slot('c', 1)});
  EXPECT_EQ(bench.granted().size(), 7U);
  EXPECT_FALSE(bench.effects_of<announce_blind>().at(6).begins) << "the end is told as well";
}

TEST(blind_windows, those_left_open_by_a_restart_count) {
  rack_bench bench;
  bench.reach(journal::POWERED);
  for (unsigned i = 1; i <= 6; ++i)
    bench.change(slot('c', i), [](journal::Node& node) { node.set_blind_window(true); });
  ask(bench, slot('c', 7), permit_kind::blind_window);
  expect_refused(bench, slot('c', 7), fault::POWER_DETECTOR_UNKNOWN);
  ask(bench, slot('c', 1), permit_kind::blind_window);
  EXPECT_EQ(bench.granted(), std::vector<std::string>{slot('c', 1)}) << "its own window goes on";
}

TEST(blind_windows, not_without_flow_or_with_a_wet_rack_while_the_host_is_not_known_to_be_off) {
  for (const auto state : {journal::POWER_ON, journal::POWER_UNKNOWN}) {
    rack_bench bench;
    bench.reach(journal::POWERED);
    bench.change(slot('c', 1), [state](journal::Node& node) { node.mutable_power()->set_observed(state); });
    bench.cool(100.0);
    ask(bench, slot('c', 1), permit_kind::blind_window);
    expect_refused(bench, slot('c', 1), fault::POWER_FLOW_NOT_PROVEN);
  }
  rack_bench bench;
  bench.reach(journal::POWERED);
  bench.change(slot('c', 1),
               [](journal::Node& node) { node.mutable_power()->set_observed(journal::POWER_OFF); });
  bench.cool(100.0);
  ask(bench, slot('c', 1), permit_kind::blind_window);
  EXPECT_EQ(bench.granted(), std::vector<std::string>{slot('c', 1)}) << "a host that is off needs no eyes";
}

// ---- shutdown
// -------------------------------------------------------------------------------------------------------------------

void turn_off(rack_bench& bench, journal::MemberKind kind) {
  bench.change_all(kind, [](journal::Node& node) {
    node.set_step(journal::CREDENTIALED);
    node.mutable_power()->set_observed(journal::POWER_OFF);
    node.mutable_power()->set_wanted(journal::POWER_OFF);
  });
}

rack_bench in_production() {
  rack_bench bench;
  bench.reach(journal::RACK_PRODUCTION);
  bench.raise_all(journal::PRODUCTION);
  bench.change_all(journal::POWER_SHELF, [](journal::Node& node) { node.set_step(journal::PRODUCTION); });
  bench.effects.clear();
  return bench;
}

TEST(shutdown, goes_in_reverse_each_kind_read_off_before_the_next) {
  rack_bench bench = in_production();
  bench.give(begin_shutdown{"operations/1"});
  EXPECT_EQ(bench.goal(slot('c', 1)), journal::CREDENTIALED);
  EXPECT_GE(bench.goal(slot('s', 1)), journal::STAGED);
  EXPECT_GE(bench.goal(slot('p', 1)), journal::STAGED);
  turn_off(bench, journal::COMPUTE_TRAY);
  EXPECT_EQ(bench.goal(slot('s', 1)), journal::CREDENTIALED);
  EXPECT_GE(bench.goal(slot('p', 1)), journal::STAGED);
  turn_off(bench, journal::SWITCH_TRAY);
  EXPECT_EQ(bench.goal(slot('p', 1)), journal::CREDENTIALED);
  EXPECT_EQ(bench.operation_state(), "");
  turn_off(bench, journal::POWER_SHELF);
  EXPECT_EQ(bench.operation_state(), "SUCCEEDED");
  EXPECT_EQ(bench.state.rack.step(), journal::PLANNED);
  EXPECT_EQ(bench.goal(slot('c', 1)), journal::CREDENTIALED) << "nothing goes on by itself";
}

TEST(shutdown, refuses_every_power_on) {
  rack_bench bench = in_production();
  bench.give(begin_shutdown{"operations/1"});
  ask(bench, slot('c', 1), permit_kind::restart);
  expect_refused(bench, slot('c', 1), fault::PREEMPTED);
}

TEST(shutdown, a_host_that_is_not_read_off_keeps_its_supply_and_nothing_goes_on_again) {
  rack_bench bench = in_production();
  bench.give(begin_shutdown{"operations/1"});
  for (unsigned i = 2; i <= 18; ++i) {
    bench.change(slot('c', i), [](journal::Node& node) {
      node.set_step(journal::CREDENTIALED);
      node.mutable_power()->set_observed(journal::POWER_OFF);
      node.mutable_power()->set_wanted(journal::POWER_OFF);
    });
  }
  bench.change(slot('c', 1), [](journal::Node& node) {
    node.mutable_failure()->set_fault("POWER_OFF_NOT_CONFIRMED");
    node.mutable_failure()->set_step(node.step());
  });
  EXPECT_EQ(bench.operation_state(), "FAILED");
  EXPECT_EQ(bench.state.rack.failure().fault(), "POWER_OFF_NOT_CONFIRMED");
  EXPECT_GE(bench.goal(slot('p', 1)), journal::STAGED);
  for (unsigned i = 2; i <= 18; ++i)
    EXPECT_LT(bench.goal(slot('c', i)), journal::STAGED) << "told to go on again";
}

TEST(shutdown, a_cancelled_one_turns_nothing_on_again) {
  rack_bench bench = in_production();
  bench.give(begin_shutdown{"operations/1"});
  turn_off(bench, journal::COMPUTE_TRAY);
  bench.give(cancel_operation{"operations/1"});
  EXPECT_EQ(bench.operation_state(), "CANCELLED");
  EXPECT_LT(bench.goal(slot('c', 1)), journal::STAGED);
  EXPECT_GE(bench.goal(slot('s', 1)), journal::STAGED) << "and nothing else off";
  EXPECT_EQ(bench.state.rack.step(), journal::COOLED) << "what was proven of the whole rack no longer holds";
  EXPECT_EQ(bench.wake_at_ns, core::never_ns);
}

}  // namespace
}  // namespace busbar::rack::test
