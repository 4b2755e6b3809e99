// Inspected, configured, validated, and the retry of each.
#include <gtest/gtest.h>

#include "actors/node/inspection_logic.hpp"
#include "actors/node/restart_phases.hpp"
#include "tests/unit/node/tray_bench.hpp"

namespace busbar::node::test {
namespace {

void set(google::protobuf::Map<std::string, journal::Attributes>& by_kind, const std::string& name,
         const std::string& value) {
  (*by_kind["compute_tray"].mutable_values())[name] = value;
}

// ---- inspected
// -------------------------------------------------------------------------------------------------------------

TEST(inspection, an_incomplete_inventory_is_never_equal) {
  tray_bench bench;
  bench.device->parts_not_shown = 1;
  bench.start_at(journal::STAGED);
  bench.aim(journal::INSPECTED);
  ASSERT_TRUE(bench.fails());
  EXPECT_EQ(bench.fault(), "INVENTORY_INCOMPLETE");
}

TEST(inspection, a_missing_part_is_named_with_both_counts) {
  tray_bench bench;
  bench.device->parts.pop_back();
  bench.start_at(journal::STAGED);
  bench.aim(journal::INSPECTED);
  ASSERT_TRUE(bench.fails());
  EXPECT_EQ(bench.fault(), "INVENTORY_MISSING");
  EXPECT_EQ(bench.state.node.failure().expected(), "2 gpu");
  EXPECT_EQ(bench.state.node.failure().seen(), "1");
}

TEST(inspection, models_are_compared_whole_and_a_narrow_link_is_named) {
  tray_bench bench;
  journal::PartSpec& gpus = *bench.spec.mutable_sku()->mutable_compute_tray()->mutable_gpus();
  gpus.set_model("H200");
  devices::inventory_facts seen;
  seen.parts = bench.device->parts;
  for (journal::Part& part : seen.parts) part.set_model("GH200");
  const auto wrong = compare_inventory(bench.spec.sku(), journal::COMPUTE_TRAY, seen);
  ASSERT_TRUE(wrong.has_value());
  EXPECT_EQ(wrong->code, core::fault::INVENTORY_WRONG);
  EXPECT_EQ(wrong->seen, "GH200");
  for (journal::Part& part : seen.parts) part.set_model("H200");
  EXPECT_FALSE(compare_inventory(bench.spec.sku(), journal::COMPUTE_TRAY, seen).has_value());
  gpus.set_pcie_width(16);
  gpus.set_pcie_generation(6);
  const auto unknown = compare_inventory(bench.spec.sku(), journal::COMPUTE_TRAY, seen);
  ASSERT_TRUE(unknown.has_value());
  EXPECT_EQ(unknown->code, core::fault::INVENTORY_PCIE_DEGRADED);
  EXPECT_EQ(unknown->seen, "gen unknown xunknown");
}

// ---- configured
// ------------------------------------------------------------------------------------------------------------

TEST(configuration, every_difference_is_named_attribute_by_attribute) {
  journal::Attributes wanted;
  for (const char* name : {"A", "B", "C", "D", "E"}) (*wanted.mutable_values())[name] = "1";
  const auto plan = plan_attributes(wanted, {{"A", {"1", std::nullopt, false}},
                                             {"B", {"0", std::nullopt, false}},
                                             {"C", {"0", "1", false}},
                                             {"D", {"0", std::nullopt, true}}});
  ASSERT_EQ(plan.drift.size(), 4U);
  EXPECT_EQ(plan.to_write, (std::map<std::string, std::string>{{"B", "1"}}))
      << "what is pending already is not written again";
  ASSERT_EQ(plan.impossible.size(), 2U);
  EXPECT_EQ(plan.impossible[0].attribute(), "D");
  EXPECT_EQ(plan.impossible[1].attribute(), "E");
  EXPECT_EQ(plan.impossible[1].seen(), "");
}

TEST(configuration, drift_is_told_set_restarted_once_and_read_back) {
  tray_bench bench;
  set(*bench.spec.mutable_baseline()->mutable_bios(), "SriovEnable", "true");
  set(*bench.spec.mutable_baseline()->mutable_bios(), "PowerProfile", "MaxPerformance");
  set(*bench.spec.mutable_baseline()->mutable_device(), "leak_reaction.critical", "ForceOff");
  bench.device->bios = {{"SriovEnable", "false"}, {"PowerProfile", "Quiet"}};
  bench.device->device_attributes = {{"leak_reaction.critical", "None"}};
  bench.start_at(journal::FIRMWARE_CURRENT);
  ASSERT_TRUE(bench.reaches(journal::CONFIGURED)) << bench.fault();
  EXPECT_TRUE(bench.told("drift", "BIOS SriovEnable is false, the baseline says true"));
  EXPECT_TRUE(bench.told("drift", "BIOS PowerProfile is Quiet, the baseline says MaxPerformance"));
  EXPECT_TRUE(bench.told("drift", "leak_reaction.critical is None, the baseline says ForceOff"));
  EXPECT_EQ(bench.device->count_acts("reset ForceRestart"), 1U);
  EXPECT_EQ(bench.stored.drift_size(), 0);
}

TEST(configuration, without_drift_nothing_is_written_or_restarted) {
  tray_bench bench;
  set(*bench.spec.mutable_baseline()->mutable_bios(), "SriovEnable", "true");
  bench.device->bios = {{"SriovEnable", "true"}};
  bench.start_at(journal::FIRMWARE_CURRENT);
  ASSERT_TRUE(bench.reaches(journal::CONFIGURED));
  EXPECT_EQ(bench.calls_of(call_op::write_bios) + bench.calls_of(call_op::write_device) +
                bench.calls_of(call_op::reset),
            0U);
}

TEST(configuration, a_read_only_or_absent_attribute_is_named) {
  tray_bench bench;
  set(*bench.spec.mutable_baseline()->mutable_bios(), "NoSuch", "true");
  bench.start_at(journal::FIRMWARE_CURRENT);
  bench.aim(journal::CONFIGURED);
  ASSERT_TRUE(bench.fails());
  EXPECT_EQ(bench.fault(), "CONFIG_READ_ONLY");
  EXPECT_EQ(bench.state.node.failure().seen(), "no such attribute");
  EXPECT_NE(bench.state.node.failure().message().find("NoSuch"), std::string::npos);
  EXPECT_EQ(bench.calls_of(call_op::reset), 0U);
}

TEST(configuration, a_bios_setting_that_does_not_take_is_drift_even_with_no_device_attributes) {
  tray_bench bench;
  set(*bench.spec.mutable_baseline()->mutable_bios(), "SriovEnable", "true");
  bench.device->bios = {{"SriovEnable", "false"}};
  bench.refuse(call_op::write_bios, absl::OkStatus());  // acknowledged, never applied
  bench.start_at(journal::FIRMWARE_CURRENT);
  bench.aim(journal::CONFIGURED);
  ASSERT_TRUE(bench.fails());
  EXPECT_EQ(bench.fault(), "CONFIG_DRIFT");
  ASSERT_EQ(bench.stored.drift_size(), 1);
  EXPECT_EQ(bench.stored.drift(0).attribute(), "SriovEnable");
  EXPECT_EQ(bench.stored.drift(0).expected(), "true");
  EXPECT_EQ(bench.stored.drift(0).seen(), "false");
}

TEST(configuration, bios_settings_and_host_firmware_share_one_restart) {
  tray_bench bench;
  set(*bench.spec.mutable_baseline()->mutable_bios(), "SriovEnable", "true");
  bench.device->bios = {{"SriovEnable", "false"}};
  bench.want_firmware(1, "UEFI", "2.4.1", "host_restart");
  bench.device->firmware["UEFI"] = "old";
  bench.start_at(journal::INSPECTED);
  ASSERT_TRUE(bench.reaches(journal::CONFIGURED)) << bench.fault();
  EXPECT_EQ(bench.device->count_acts("reset ForceRestart"), 1U);
  EXPECT_EQ(bench.device->bios["SriovEnable"], "true");
}

TEST(configuration, every_crash_window_restarts_the_host_once) {
  for (const cut where : {cut::before_effects, cut::after_effects}) {
    for (int at = 1;; ++at) {
      tray_bench bench;
      set(*bench.spec.mutable_baseline()->mutable_bios(), "SriovEnable", "true");
      bench.device->bios = {{"SriovEnable", "false"}};
      bench.start_at(journal::FIRMWARE_CURRENT);
      bench.power_cut(at, where);
      const bool arrived = bench.reaches(journal::CONFIGURED);
      if (bench.crashes == 0) break;
      ASSERT_TRUE(arrived) << at << " " << bench.fault() << " " << bench.state.node.failure().message();
      EXPECT_EQ(bench.device->count_acts("reset ForceRestart"), 1U) << "cut at commit " << at;
      EXPECT_EQ(bench.stored.intents_size(), 0) << bench.stored.intents(0).id() << " cut at commit " << at;
    }
  }
}

TEST(configuration, a_crash_before_the_settings_took_effect_restarts_the_host_once) {
  for (int at = 1;; ++at) {
    tray_bench bench;
    set(*bench.spec.mutable_baseline()->mutable_bios(), "SriovEnable", "true");
    bench.device->bios = {{"SriovEnable", "false"}};
    bench.agent_boots = false;
    bench.start_at(journal::FIRMWARE_CURRENT);
    bench.power_cut(at, cut::after_effects);
    bench.aim(journal::CONFIGURED);
    bench.run_until(
        [&bench] { return bench.device->count_acts("reset ForceRestart") == 1 && bench.crashes == 1; }, 400);
    if (bench.crashes == 0) break;
    bench.device->bios = {{"SriovEnable", "false"}};  // the host is still on its way through its boot
    bench.device->bios_pending = {{"SriovEnable", "true"}};
    bench.run_until(
        [&bench] {
          return bench.device->count_acts("reset ForceRestart") > 1 || bench.state.node.has_failure();
        },
        4000);
    EXPECT_LE(bench.device->count_acts("reset ForceRestart"), 1U) << "cut at commit " << at;
  }
}

// ---- validated
// ---------------------------------------------------------------------------------------------------------------

journal::SuiteResult result_of(const tray_bench& bench, journal::SuiteResult::Verdict verdict,
                               std::uint32_t results, std::uint32_t expected) {
  journal::SuiteResult result;
  result.set_run_id(bench.state.node.suite().run_id());
  result.set_suite("node-quick");
  result.set_verdict(verdict);
  result.set_results(results);
  result.set_expected(expected);
  result.set_evidence("sha256:11");
  return result;
}

TEST(node_suite, passes_with_its_evidence) {
  tray_bench bench;
  bench.start_at(journal::CONFIGURED);
  ASSERT_TRUE(bench.reaches(journal::VALIDATED)) << bench.fault();
  EXPECT_EQ(bench.tests_run, (std::vector<std::string>{"diag", "burn"}));
  EXPECT_EQ(bench.stored.suite().verdict(), journal::SuiteResult::PASS);
  EXPECT_EQ(bench.stored.suite().evidence(), "sha256:00");
}

TEST(node_suite, is_not_required_of_a_switch_tray_and_never_shown_as_passed) {
  tray_bench bench(journal::SWITCH_TRAY);
  bench.start_at(journal::CONFIGURED);
  ASSERT_TRUE(bench.reaches(journal::VALIDATED));
  EXPECT_EQ(bench.stored.suite().verdict(), journal::SuiteResult::NOT_REQUIRED);
}

TEST(node_suite, no_verdict_but_a_whole_pass_is_a_pass) {
  struct row {
    journal::SuiteResult::Verdict verdict;
    std::uint32_t results, expected;
  };
  using result = journal::SuiteResult;
  for (const row& bad : {row{result::FAIL, 4, 4}, row{result::INCOMPLETE, 3, 4}, row{result::NOT_RUN, 0, 0},
                         row{result::RUNNING, 4, 4}, row{result::NOT_REQUIRED, 0, 0}, row{result::PASS, 3, 4},
                         row{result::PASS, 0, 0}}) {
    tray_bench bench;
    bench.judge = [&bench, bad](const std::string&) {
      return result_of(bench, bad.verdict, bad.results, bad.expected);
    };
    bench.start_at(journal::CONFIGURED);
    bench.aim(journal::VALIDATED);
    ASSERT_TRUE(bench.fails()) << result::Verdict_Name(bad.verdict);
    EXPECT_EQ(bench.fault(), "SUITE_INCOMPLETE");
    EXPECT_EQ(bench.state.node.step(), journal::CONFIGURED);
  }
}

TEST(node_suite, a_metric_below_its_limit_is_named_with_value_and_limit) {
  tray_bench bench;
  bench.judge = [&bench](const std::string&) {
    journal::SuiteResult result = result_of(bench, journal::SuiteResult::FAIL, 4, 4);
    journal::MetricResult& worst = *result.add_failures();
    worst.set_test("hbm");
    worst.set_metric("hbm_copy");
    worst.set_gpu(3);
    worst.set_value(12000);
    worst.set_unit("GB/s");
    worst.set_limit(">= 15000");
    return result;
  };
  bench.start_at(journal::CONFIGURED);
  bench.aim(journal::VALIDATED);
  ASSERT_TRUE(bench.fails());
  EXPECT_EQ(bench.fault(), "SUITE_BELOW_LIMIT");
  EXPECT_EQ(bench.state.node.failure().message(), "hbm_copy of hbm on GPU 3");
  EXPECT_EQ(bench.state.node.failure().expected(), ">= 15000");
  EXPECT_EQ(bench.state.node.failure().seen(), "12000 GB/s");
}

TEST(node_suite, a_lost_agent_ends_the_run_with_a_name) {
  tray_bench bench;
  bench.tests_answer = false;
  bench.start_at(journal::CONFIGURED);
  bench.aim(journal::VALIDATED);
  bench.run_until([&bench] { return !bench.tests_run.empty(); });
  validation::agent_event lost;
  lost.what = validation::agent_event::kind::lost;
  lost.reason = "stream ended";
  bench.give(agent_news{lost});
  ASSERT_TRUE(bench.fails());
  EXPECT_EQ(bench.fault(), "AGENT_LOST");
  EXPECT_EQ(bench.runs_cancelled.size(), 1U);
}

TEST(node_suite, a_test_without_a_result_is_named) {
  tray_bench bench;
  bench.tests_answer = false;
  bench.start_at(journal::CONFIGURED);
  bench.aim(journal::VALIDATED);
  ASSERT_TRUE(bench.fails());
  EXPECT_EQ(bench.fault(), "SUITE_INCOMPLETE");
  EXPECT_NE(bench.state.node.failure().message().find("diag"), std::string::npos);
}

TEST(node_suite, what_another_run_says_is_ignored) {
  tray_bench bench;
  bench.tests_answer = false;
  bench.start_at(journal::CONFIGURED);
  bench.aim(journal::VALIDATED);
  bench.run_until([&bench] { return !bench.tests_run.empty(); });
  validation::agent_event done;
  done.what = validation::agent_event::kind::test_done;
  done.test_done.set_run_id("r01/c07/node/0");
  done.test_done.set_test("diag");
  bench.give(agent_news{done});
  journal::SuiteResult other;
  other.set_run_id("r01/c07/node/0");
  other.set_verdict(journal::SuiteResult::PASS);
  other.set_results(4);
  other.set_expected(4);
  bench.give(suite_judged{other});
  bench.run_until([&bench] { return bench.wake_at_ns > bench.now.monotonic_ns && bench.calls.size() > 100; },
                  5);
  EXPECT_EQ(bench.tests_run.size(), 1U);
  EXPECT_LT(bench.state.node.step(), journal::VALIDATED);
}

TEST(node_suite, a_restarted_daemon_declares_a_new_run) {
  tray_bench bench;
  bench.tests_answer = false;
  bench.start_at(journal::CONFIGURED);
  bench.aim(journal::VALIDATED);
  bench.run_until([&bench] { return !bench.tests_run.empty(); });
  const std::string first = bench.stored.suite().run_id();
  bench.crash();
  bench.tests_answer = true;
  ASSERT_TRUE(bench.reaches(journal::VALIDATED)) << bench.fault();
  EXPECT_NE(bench.stored.suite().run_id(), first);
}

// ---- retry
// -------------------------------------------------------------------------------------------------------------------

TEST(retry, goes_on_at_the_failed_step_and_clears_neither_latch_nor_login_counter) {
  tray_bench bench;
  bench.device->parts.pop_back();
  bench.start_at(journal::STAGED);
  bench.aim(journal::INSPECTED);
  ASSERT_TRUE(bench.fails());
  bench.state.node.set_leak_latched(true);
  bench.state.node.mutable_access()->set_login_failures(2);
  bench.heal(retry{journal::NODE_STEP_UNSPECIFIED, "operations/9"});
  EXPECT_TRUE(bench.state.node.leak_latched());
  EXPECT_EQ(bench.state.node.access().login_failures(), 2U);
  EXPECT_EQ(bench.state.node.step(), journal::STAGED);
  EXPECT_EQ(bench.state.node.operation_id(), "operations/9");
}

TEST(retry, goes_only_backwards) {
  tray_bench bench;
  bench.start_at(journal::CONFIGURED);
  bench.give(retry{journal::PRODUCTION, "operations/9"});
  bench.settle();
  EXPECT_EQ(bench.state.node.step(), journal::CONFIGURED);
  bench.give(retry{journal::INSPECTED, "operations/10"});
  bench.run_until([&bench] { return bench.state.node.step() == journal::STAGED; });
  EXPECT_EQ(bench.state.node.step(), journal::STAGED);
  EXPECT_TRUE(bench.reaches(journal::CONFIGURED)) << bench.fault();
}

TEST(retry, from_discovered_finds_the_tray_again_without_making_anything_twice) {
  tray_bench bench;
  bench.start();
  ASSERT_TRUE(bench.reaches(journal::STAGED)) << bench.fault();
  bench.give(retry{journal::DISCOVERED, "operations/9"});
  bench.run_until([&bench] { return bench.state.node.step() == journal::DECLARED; });
  ASSERT_EQ(bench.state.node.step(), journal::DECLARED);
  EXPECT_TRUE(bench.reaches(journal::STAGED)) << bench.fault() << " " << bench.state.node.failure().message();
  EXPECT_EQ(bench.device->count_acts("create " + own_account(rack_uid)), 1U);
  EXPECT_EQ(bench.device->count_acts("password root"), 1U);
  EXPECT_EQ(bench.device->sessions.size(), 1U);
}

TEST(retry, looks_once_more_who_the_tray_is) {
  tray_bench bench;
  bench.start_at(journal::STAGED);
  bench.device->parts.pop_back();
  bench.aim(journal::INSPECTED);
  ASSERT_TRUE(bench.fails());
  bench.device->identity.serial = "SN2";
  bench.heal(retry{});
  ASSERT_TRUE(bench.fails());
  EXPECT_EQ(bench.fault(), "IDENTITY_SERIAL_MISMATCH");
  bench.device->identity.serial = "SN1";
  bench.device->parts.push_back(bench.device->parts.front());
  bench.device->parts.back().set_id("gpu_1");
  bench.heal(retry{});
  EXPECT_TRUE(bench.reaches(journal::INSPECTED))
      << bench.fault() << " " << bench.state.node.failure().message();
}

TEST(retry, looks_once_more_at_the_certificate) {
  tray_bench bench;
  bench.start_at(journal::STAGED);
  bench.device->parts.pop_back();
  bench.aim(journal::INSPECTED);
  ASSERT_TRUE(bench.fails());
  bench.device->certificate = "bb22";
  bench.heal(retry{});
  ASSERT_TRUE(bench.fails());
  EXPECT_EQ(bench.fault(), "CERTIFICATE_CHANGED");
}

TEST(retry, names_parts_that_changed_since_the_inspection) {
  tray_bench bench;
  bench.start_at(journal::STAGED);
  bench.judge = [&bench](const std::string&) {
    return result_of(bench, journal::SuiteResult::INCOMPLETE, 0, 4);
  };
  bench.aim(journal::VALIDATED);
  ASSERT_TRUE(bench.fails());
  ASSERT_EQ(bench.state.node.step(), journal::CONFIGURED);
  bench.device->parts[0].set_serial("another");
  bench.heal(retry{});
  ASSERT_TRUE(bench.fails());
  EXPECT_EQ(bench.fault(), "INVENTORY_WRONG");
  bench.heal(retry{journal::INSPECTED, ""});
  EXPECT_TRUE(bench.reaches(journal::CONFIGURED)) << bench.fault();
}

}  // namespace
}  // namespace busbar::node::test
