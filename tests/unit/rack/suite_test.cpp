// The fabric and the rack suite: declared members, fail-closed; cancel, retry and what is accepted at the
// door.
#include <gtest/gtest.h>

#include "tests/unit/rack/rack_bench.hpp"

namespace busbar::rack::test {
namespace {

using core::fault;

TEST(rack_suite, runs_on_every_declared_tray_with_its_ranks) {
  rack_bench bench;
  bench.reach(journal::NODE_VALIDATED);
  const auto runs = bench.effects_of<run_rack_test>();
  ASSERT_EQ(runs.size(), 18U);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    EXPECT_EQ(runs[i].size, 72U);
    EXPECT_EQ(runs[i].rank, 4 * i);
  }
  EXPECT_EQ(bench.state.rack.suite().members_size(), 18);
  EXPECT_TRUE(bench.told("suite_started", "declared for 18 trays"));
}

TEST(rack_suite, is_not_started_before_every_tray_is_validated) {
  rack_bench bench;
  bench.reach(journal::NVLINK_READY);
  for (unsigned i = 1; i <= 17; ++i)
    bench.change(slot('c', i), [](journal::Node& node) { node.set_step(journal::VALIDATED); });
  EXPECT_TRUE(bench.effects_of<run_rack_test>().empty());
  EXPECT_EQ(bench.state.rack.step(), journal::NVLINK_READY);
}

TEST(rack_suite, a_result_of_another_run_is_ignored) {
  rack_bench bench;
  bench.reach(journal::NODE_VALIDATED);
  bench.finish_tests();
  ASSERT_TRUE(bench.state.run.judging);
  journal::SuiteResult other = bench.state.rack.suite();
  other.set_run_id("r01/rack/0");
  other.set_verdict(journal::SuiteResult::PASS);
  bench.give(suite_judged{other});
  EXPECT_EQ(bench.state.rack.step(), journal::NODE_VALIDATED);
  EXPECT_TRUE(bench.state.run.judging);
}

TEST(rack_suite, a_test_done_of_another_run_or_test_counts_for_nothing) {
  rack_bench bench;
  bench.reach(journal::NODE_VALIDATED);
  for (unsigned i = 1; i <= 18; ++i) {
    validation::agent_event done;
    done.what = validation::agent_event::kind::test_done;
    done.member = slot('c', i);
    done.test_done.set_run_id(i % 2 == 0 ? "r01/rack/0" : bench.state.rack.suite().run_id());
    done.test_done.set_test(i % 2 == 0 ? "all_reduce" : "all_to_all");
    bench.give(agent_said{done});
  }
  EXPECT_EQ(bench.state.run.test, 0U);
}

TEST(rack_suite, a_silent_tray_ends_the_test_at_its_deadline_and_the_judge_is_asked) {
  rack_bench bench;
  bench.reach(journal::NODE_VALIDATED);
  bench.finish_tests(1);
  EXPECT_TRUE(bench.state.run.judging);
  const auto judge = bench.effects_of<judge_rack_suite>();
  ASSERT_EQ(judge.size(), 1U);
  EXPECT_EQ(judge[0].members.size(), 18U) << "declared members, not those that answered";
}

TEST(rack_suite, no_verdict_but_a_whole_pass_opens_the_gate) {
  using result = journal::SuiteResult;
  for (const auto verdict :
       {result::FAIL, result::INCOMPLETE, result::NOT_RUN, result::RUNNING, result::NOT_REQUIRED}) {
    rack_bench bench;
    bench.reach(journal::NODE_VALIDATED);
    bench.finish_tests();
    bench.judged(verdict);
    EXPECT_EQ(bench.state.rack.step(), journal::NODE_VALIDATED) << result::Verdict_Name(verdict);
    EXPECT_EQ(bench.state.rack.gates().at("rack"), "failed");
    EXPECT_EQ(bench.operation_state(), "FAILED");
    EXPECT_EQ(bench.state.rack.failure().fault(),
              verdict == result::FAIL ? "SUITE_BELOW_LIMIT" : "SUITE_INCOMPLETE");
    EXPECT_LT(bench.goal(slot('c', 1)), journal::READY);
  }
}

TEST(rack_suite, none_of_none_is_no_pass) {
  rack_bench bench;
  bench.reach(journal::NODE_VALIDATED);
  bench.finish_tests();
  journal::SuiteResult empty = bench.state.rack.suite();
  empty.set_verdict(journal::SuiteResult::PASS);
  bench.give(suite_judged{empty});
  EXPECT_EQ(bench.state.rack.step(), journal::NODE_VALIDATED);
  EXPECT_EQ(bench.state.rack.failure().fault(), "SUITE_INCOMPLETE");
  EXPECT_EQ(bench.state.rack.suite().verdict(), journal::SuiteResult::INCOMPLETE);
}

TEST(rack_suite, a_member_outside_the_run_never_reaches_production) {
  rack_bench bench;
  bench.break_member(slot('c', 18));
  bench.reach(journal::RACK_PRODUCTION);
  ASSERT_EQ(bench.state.rack.step(), journal::RACK_PRODUCTION);
  bench.change(slot('c', 18), [](journal::Node& node) {
    node.clear_failure();
    node.set_step(journal::VALIDATED);
  });
  EXPECT_EQ(bench.goal(slot('c', 18)), journal::VALIDATED);
  EXPECT_EQ(bench.goal(slot('c', 1)), journal::PRODUCTION);
  bench.raise_all(journal::PRODUCTION);
  bench.give(begin_bringup{"operations/1"});
  EXPECT_EQ(bench.state.rack.suite().members_size(), 18) << "a new bring-up declares the run again, with it";
}

TEST(rack_suite, a_cancelled_run_is_over_and_the_next_bring_up_declares_another) {
  rack_bench bench;
  bench.reach(journal::NODE_VALIDATED);
  const std::string first = bench.state.rack.suite().run_id();
  bench.give(cancel_operation{"operations/1"});
  EXPECT_EQ(bench.operation_state(), "CANCELLED");
  EXPECT_EQ(bench.wake_at_ns, core::never_ns) << "nothing of a cancelled run is waited for";
  bench.wait_ns(1'000'000'000'000);
  bench.give(wake{});
  EXPECT_EQ(bench.wake_at_ns, core::never_ns);
  EXPECT_FALSE(bench.state.rack.has_failure());
  bench.give(begin_bringup{"operations/2"});
  bench.soak();
  EXPECT_NE(bench.state.rack.suite().run_id(), first);
  EXPECT_TRUE(bench.state.run.test_running);
}

TEST(operations, a_cancelled_bring_up_leaves_every_member_where_it_is) {
  rack_bench bench;
  bench.reach(journal::POWERED);
  bench.give(cancel_operation{"operations/1"});
  for (unsigned i = 1; i <= 18; ++i) EXPECT_EQ(bench.goal(slot('c', i)), bench.node(slot('c', i)).step());
  EXPECT_TRUE(bench.state.rack.operation_id().empty());
}

TEST(operations, a_retry_ends_with_its_member_and_not_with_its_old_failure) {
  rack_bench bench;
  bench.reach(journal::POWERED);
  bench.break_member(slot('c', 1));
  bench.give(watch_member{"operations/7", slot('c', 1)});
  EXPECT_TRUE(bench.effects_of<core::operation_end>().empty()) << "the retry has not even begun";
  bench.change(slot('c', 1), [](journal::Node& node) {
    node.clear_failure();
    node.set_operation_id("operations/7");
    node.set_goal(journal::CONFIGURED);
  });
  EXPECT_TRUE(bench.effects_of<core::operation_end>().empty());
  bench.change(slot('c', 1), [](journal::Node& node) { node.set_step(journal::CONFIGURED); });
  ASSERT_EQ(bench.effects_of<core::operation_end>().size(), 1U);
  EXPECT_EQ(bench.effects_of<core::operation_end>()[0].state, "SUCCEEDED");
}

TEST(operations, a_retry_that_fails_again_ends_failed_with_its_fault) {
  rack_bench bench;
  bench.reach(journal::POWERED);
  bench.break_member(slot('c', 1));
  bench.give(watch_member{"operations/7", slot('c', 1)});
  bench.change(slot('c', 1), [](journal::Node& node) { node.set_operation_id("operations/7"); });
  ASSERT_EQ(bench.effects_of<core::operation_end>().size(), 1U);
  EXPECT_EQ(bench.effects_of<core::operation_end>()[0].state, "FAILED");
  EXPECT_EQ(bench.effects_of<core::operation_end>()[0].fault, "INVENTORY_MISSING");
}

// ---- the fabric, read from both sides
// ---------------------------------------------------------------------------------------------

std::optional<refusal> judge_fabric(
    const std::function<void(std::map<std::string, devices::nvlink_facts>&)>& how) {
  rack_bench bench;
  bench.reach(journal::POWERED);
  bench.raise_all(journal::CONFIGURED);
  bench.answer_fabric();
  auto read = bench.fabric;
  how(read);
  return fabric_not_proven(bench.spec(), bench.state.run.members, read);
}

TEST(fabric, is_proven_only_by_one_primary_one_clique_and_equal_links_on_both_sides) {
  EXPECT_FALSE(judge_fabric([](auto&) {}).has_value());
  const auto code = [](const std::optional<refusal>& no) {
    return no.has_value() ? core::name_of(no->code) : std::string_view("proven");
  };
  EXPECT_EQ(code(judge_fabric([](auto& read) { read[slot('s', 1)].fabric_primary = false; })),
            "NVLINK_PRIMARY");
  EXPECT_EQ(code(judge_fabric([](auto& read) { read[slot('s', 2)].fabric_primary = true; })),
            "NVLINK_PRIMARY");
  EXPECT_EQ(code(judge_fabric([](auto& read) { read[slot('s', 2)].fabric_primary.reset(); })),
            "NVLINK_PRIMARY");
  EXPECT_EQ(code(judge_fabric([](auto& read) { read[slot('c', 5)].clique_id = "2"; })), "NVLINK_PARTITION");
  EXPECT_EQ(code(judge_fabric([](auto& read) { read[slot('c', 5)].clique_id.reset(); })), "NVLINK_PARTITION");
  EXPECT_EQ(code(judge_fabric([](auto& read) { read[slot('s', 5)].partition = "other"; })),
            "NVLINK_PARTITION");
  EXPECT_EQ(code(judge_fabric([](auto& read) { read[slot('c', 5)].links_up["GPU_2"] = 17; })),
            "NVLINK_LINK_COUNT");
  EXPECT_EQ(code(judge_fabric([](auto& read) { read[slot('c', 5)].links_up.erase("GPU_2"); })),
            "NVLINK_LINK_COUNT");
  EXPECT_EQ(code(judge_fabric([](auto& read) { read[slot('s', 5)].links_up["NVSwitch_0"] -= 1; })),
            "NVLINK_LINK_COUNT");
  EXPECT_EQ(code(judge_fabric([](auto& read) { read[slot('c', 5)].complete = false; })), "NVLINK_LINK_COUNT");
  EXPECT_EQ(code(judge_fabric([](auto& read) { read.erase(slot('c', 5)); })), "NVLINK_LINK_COUNT");
}

// ---- at the door
// --------------------------------------------------------------------------------------------------------------------

core::command command(std::string verb, std::string target = "r01",
                      std::map<std::string, std::string> arguments = {}) {
  core::command what;
  what.verb = std::move(verb);
  what.target = std::move(target);
  what.arguments = std::move(arguments);
  return what;
}

TEST(commands, a_retry_names_a_failed_member_or_an_earlier_step) {
  rack_bench bench;
  bench.reach(journal::POWERED);
  const auto refused = [&bench](const core::command& what) {
    return !refuse_command(what, bench.state, false).ok();
  };
  EXPECT_TRUE(refused(command("node_retry", "r01/c99")));
  EXPECT_TRUE(refused(command("node_retry", slot('c', 1)))) << "it has not failed";
  EXPECT_TRUE(refused(command("node_retry", slot('c', 1), {{"from", "validated"}}))) << "only backwards";
  EXPECT_TRUE(refused(command("node_retry", slot('c', 1), {{"from", "nowhere"}})));
  EXPECT_TRUE(refused(command("node_retry", slot('c', 1), {{"from", "declared"}})))
      << "nothing reaches declared";
  EXPECT_FALSE(refused(command("node_retry", slot('c', 1), {{"from", "staged"}})));
  EXPECT_FALSE(refused(command("node_retry", slot('c', 1), {{"from", "discovered"}})));
  bench.break_member(slot('c', 1));
  EXPECT_FALSE(refused(command("node_retry", slot('c', 1))));
}

TEST(commands, before_a_manifest_nothing_is_known) {
  rack_state state;
  state.rack.set_name("r01");
  EXPECT_EQ(core::fault_of(refuse_command(command("rack_bringup"), state, false)), fault::UNKNOWN_TARGET);
}

// ---- failure stories of other control planes
// ---------------------------------------------------------------------------------------

TEST(control_plane_cases, c3_a_second_command_on_a_held_rack_is_refused_at_every_door) {
  rack_bench bench;
  bench.reach(journal::STANDBY);
  for (const char* verb : {"rack_bringup", "rack_shutdown"}) {
    EXPECT_EQ(core::fault_of(refuse_command(command(verb), bench.state, false)), fault::OPERATION_CONFLICT)
        << verb;
  }
  core::command apply = command("manifest_apply");
  apply.spec = std::make_shared<const journal::RackSpec>(bench.spec());
  EXPECT_EQ(core::fault_of(refuse_command(apply, bench.state, false)), fault::OPERATION_CONFLICT);
  const std::string words(refuse_command(apply, bench.state, false).message());
  EXPECT_NE(words.find("busbar ops cancel r01/operations/1"), std::string::npos) << words;
}

TEST(control_plane_cases, c5_an_unknown_rack_detector_refuses_power_and_is_no_leak) {
  rack_bench bench;
  bench.reach(journal::COOLED);
  devices::cooling_facts facts;
  facts.flow_lpm = 200;
  facts.dp_kpa = 60;
  facts.detectors = {{"rope", journal::Detector::UNKNOWN, "Unavailable", std::nullopt}};
  bench.give(cooling_read{facts});
  bench.give(permit_wanted{slot('s', 1), node::permit_kind::power_on});
  ASSERT_NE(bench.last_answer(slot('s', 1)), nullptr);
  EXPECT_FALSE(bench.last_answer(slot('s', 1))->granted);
  EXPECT_EQ(bench.last_answer(slot('s', 1))->fault, fault::POWER_DETECTOR_UNKNOWN);
  EXPECT_TRUE(bench.told("condition_set", "RACK_DETECTORS_DRY"));
}

TEST(control_plane_cases, c8_a_restart_while_a_leak_is_latched_is_refused_like_a_power_on) {
  rack_bench bench;
  bench.reach(journal::POWERED);
  bench.change(slot('c', 1), [](journal::Node& node) { node.set_leak_latched(true); });
  for (const auto kind : {node::permit_kind::power_on, node::permit_kind::restart}) {
    bench.give(permit_wanted{slot('c', 1), kind});
    EXPECT_FALSE(bench.last_answer(slot('c', 1))->granted);
    EXPECT_EQ(bench.last_answer(slot('c', 1))->fault, fault::POWER_LEAK_LATCHED);
  }
}

TEST(control_plane_cases, c10_a_failed_fabric_keeps_the_rack_from_ready_though_every_tray_is) {
  rack_bench bench;
  bench.reach(journal::POWERED);
  bench.raise_all(journal::CONFIGURED);
  devices::nvlink_facts primary;
  primary.fabric_primary = false;
  primary.clique_id = "1";
  primary.links_up["NVSwitch_0"] = 18 * 72 / 9;
  bench.fabric[slot('s', 1)] = primary;
  bench.answer_fabric();
  EXPECT_EQ(bench.state.rack.step(), journal::POWERED);
  EXPECT_EQ(bench.goal(slot('c', 1)), journal::CONFIGURED);
  for (int i = 0; i < 20000 && !bench.state.rack.has_failure(); ++i) {
    bench.wake_when_due();
    if (bench.state.run.nvlink.empty()) bench.answer_fabric();
  }
  ASSERT_TRUE(bench.state.rack.has_failure());
  EXPECT_EQ(bench.operation_state(), "FAILED");
}

TEST(control_plane_cases, c11_a_command_for_an_unknown_target_is_refused_whole) {
  rack_bench bench;
  bench.reach(journal::POWERED);
  EXPECT_EQ(core::fault_of(refuse_command(command("node_retry", "r01/c42"), bench.state, false)),
            fault::UNKNOWN_TARGET);
  EXPECT_FALSE(refuse_command(command("rack_paint"), bench.state, false).ok());
  core::command apply = command("manifest_apply");
  auto other = std::make_shared<journal::RackSpec>(bench.spec());
  other->mutable_manifest()->set_rack("r02");
  apply.spec = other;
  bench.give(cancel_operation{"operations/1"});
  EXPECT_EQ(core::fault_of(refuse_command(apply, bench.state, false)), fault::UNKNOWN_TARGET);
}

TEST(control_plane_cases, c12_seventeen_of_eighteen_labels_is_incomplete) {
  rack_bench bench;
  bench.reach(journal::NODE_VALIDATED);
  bench.finish_tests(1);
  journal::SuiteResult result = bench.state.rack.suite();
  result.mutable_members()->RemoveLast();  // a judge that forgot a declared member
  result.set_verdict(journal::SuiteResult::PASS);
  result.set_expected(17);
  result.set_results(17);
  bench.give(suite_judged{result});
  EXPECT_EQ(bench.state.rack.step(), journal::NODE_VALIDATED);
  EXPECT_EQ(bench.state.rack.failure().fault(), "SUITE_INCOMPLETE");
  EXPECT_EQ(bench.state.rack.gates().at("rack"), "failed");
}

TEST(control_plane_cases, c22_the_third_tray_out_cordons_once_and_two_out_are_degraded_again) {
  rack_bench bench;
  bench.reach(journal::POWERED);
  for (unsigned i = 1; i <= 5; ++i) bench.break_member(slot('c', i));
  EXPECT_EQ(bench.state.rack.state(), "cordoned");
  EXPECT_EQ(bench.count_told("step_failed"), 1U);
  for (unsigned i = 1; i <= 3; ++i)
    bench.change(slot('c', i), [](journal::Node& node) { node.clear_failure(); });
  EXPECT_EQ(bench.state.rack.ceiling(), "degraded");
  EXPECT_EQ(bench.state.rack.state(), "cordoned") << "raised by a person's bring-up, not by itself";
  bench.give(begin_bringup{"operations/2"});
  EXPECT_FALSE(bench.state.rack.has_failure());
  EXPECT_NE(bench.state.rack.state(), "cordoned");
}

}  // namespace
}  // namespace busbar::rack::test
