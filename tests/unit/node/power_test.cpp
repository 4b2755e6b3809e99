// Host power: on only dry and permitted, off only when read so, and nothing taken for done that was only
// accepted.
#include <gtest/gtest.h>

#include "actors/node/detector_logic.hpp"
#include "tests/unit/node/tray_bench.hpp"

namespace busbar::node::test {
namespace {

using devices::power_facts;

std::size_t resets(const tray_bench& bench, devices::reset_type type) {
  return static_cast<std::size_t>(
      std::count_if(bench.calls.begin(), bench.calls.end(),
                    [type](const call& one) { return one.op == call_op::reset && one.reset == type; }));
}

TEST(host_power, goes_on_dry_and_permitted_and_is_read_back) {
  tray_bench bench;
  bench.start_at(journal::CREDENTIALED);
  ASSERT_TRUE(bench.reaches(journal::STAGED)) << bench.fault();
  EXPECT_EQ(bench.device->count_acts("reset On"), 1U);
  EXPECT_EQ(bench.state.node.power().observed(), journal::POWER_ON);
  EXPECT_EQ(bench.permits_asked, std::vector<permit_kind>{permit_kind::power_on});
  EXPECT_EQ(bench.releases, 1);
  EXPECT_EQ(bench.stored.intents_size(), 0);
}

TEST(host_power, stays_off_while_a_needed_detector_is_not_known_to_be_dry) {
  for (const auto verdict : {journal::Detector::UNKNOWN, journal::Detector::LEAK}) {
    tray_bench bench;
    bench.all_detectors(journal::Detector::DRY);
    bench.device->detectors[1].verdict = verdict;
    bench.start_at(journal::CREDENTIALED);
    bench.aim(journal::STAGED);
    ASSERT_TRUE(bench.fails());
    EXPECT_EQ(bench.fault(),
              verdict == journal::Detector::LEAK ? "POWER_LEAK_LATCHED" : "POWER_DETECTOR_UNKNOWN");
    EXPECT_EQ(bench.stored.leak_latched(), verdict == journal::Detector::LEAK) << "unknown is no leak either";
    EXPECT_EQ(bench.device->count_acts("reset On"), 0U);
    EXPECT_TRUE(bench.permits_asked.empty()) << "what is not dry does not even ask";
  }
}

TEST(host_power, stays_off_while_a_needed_detector_is_not_shown) {
  tray_bench bench;
  bench.device->detectors.pop_back();
  bench.device->detectors.push_back({"another", journal::Detector::DRY, "", std::nullopt});
  bench.start_at(journal::CREDENTIALED);
  bench.aim(journal::STAGED);
  ASSERT_TRUE(bench.fails());
  EXPECT_EQ(bench.fault(), "POWER_DETECTOR_UNKNOWN");
  EXPECT_EQ(bench.state.node.failure().seen(), "0_Manifold: the device shows no such detector");
}

TEST(host_power, a_leak_stays_latched_over_a_retry) {
  tray_bench bench;
  bench.all_detectors(journal::Detector::LEAK);
  bench.start_at(journal::CREDENTIALED);
  bench.aim(journal::STAGED);
  ASSERT_TRUE(bench.fails());
  bench.all_detectors(journal::Detector::DRY);
  bench.grants = false;
  bench.give(retry{});
  bench.run_until([&bench] { return bench.permits_asked.size() == 2; });
  EXPECT_TRUE(bench.state.node.leak_latched());
}

TEST(host_power, waits_for_a_permit_and_names_the_refusal_when_its_time_is_over) {
  tray_bench bench;
  bench.grants = false;
  bench.refusal_fault = core::fault::POWER_FLOW_NOT_PROVEN;
  bench.refusal_words = "flow is unknown";
  bench.start_at(journal::CREDENTIALED);
  bench.aim(journal::STAGED);
  ASSERT_TRUE(bench.fails());
  EXPECT_EQ(bench.fault(), "POWER_FLOW_NOT_PROVEN");
  EXPECT_EQ(bench.device->count_acts("reset On"), 0U);
  EXPECT_EQ(bench.spins, 0);
}

// Nothing has left: the detectors are looked at again, a new permit is asked, and the count says one
// power-on.
TEST(host_power, a_power_on_that_was_withheld_begins_again_at_the_detectors) {
  tray_bench bench;
  bench.refuse_once(call_op::reset, devices::act_withheld());
  bench.start_at(journal::CREDENTIALED);
  bench.aim(journal::STAGED);
  ASSERT_TRUE(bench.reaches(journal::STAGED));
  EXPECT_EQ(bench.calls_of(call_op::read_detectors), 2U);
  EXPECT_EQ(bench.permits_asked.size(), 2U);
  EXPECT_EQ(bench.device->count_acts("reset On"), 1U);
  EXPECT_EQ(bench.state.node.power().on_count(), 1U);
}

TEST(host_power, a_power_on_that_is_withheld_to_the_end_is_wanted_no_more) {
  tray_bench bench;
  bench.refuse(call_op::reset, devices::act_withheld());
  bench.start_at(journal::CREDENTIALED);
  bench.aim(journal::STAGED);
  ASSERT_TRUE(bench.fails());
  EXPECT_FALSE(bench.fault().empty());
  EXPECT_NE(bench.state.node.power().wanted(), journal::POWER_ON);
  EXPECT_EQ(bench.state.node.power().on_count(), 0U);
  EXPECT_EQ(bench.device->count_acts("reset On"), 0U);
}

TEST(host_power, a_restart_that_was_withheld_begins_again_at_the_detectors) {
  tray_bench bench;
  int left = 1;
  bench.scripts[call_op::reset] = [&left](const call& wanted) -> std::optional<scripted_answer> {
    if (wanted.reset != devices::reset_type::force_restart || left-- <= 0) return std::nullopt;
    return scripted_answer{devices::act_withheld(), std::monostate{}};
  };
  bench.want_firmware(1, "UEFI", "2.4.1", "host_restart");
  bench.device->firmware["UEFI"] = "old";
  bench.start_at(journal::INSPECTED);
  ASSERT_TRUE(bench.reaches(journal::FIRMWARE_CURRENT));
  EXPECT_LT(left, 1) << "no restart was asked";
  EXPECT_EQ(bench.device->count_acts("reset ForceRestart"), 1U);
}

// A permit that comes late finds the look at the detectors old: it is looked again, and the permit is not
// asked for a second time, which might come late again, and so for ever.
TEST(host_power, a_permit_that_came_late_is_used_after_a_new_look) {
  tray_bench bench;
  bench.grants = false;
  bench.start_at(journal::CREDENTIALED);
  bench.aim(journal::STAGED);
  ASSERT_TRUE(bench.run_until([&bench] { return bench.permits_asked.size() == 1; }));
  bench.now.monotonic_ns += 5'000'000'000;
  const std::size_t looks = bench.calls_of(call_op::read_detectors);
  bench.give(permit_answer{permit_kind::power_on, true, {}, std::nullopt, std::make_shared<permit_lease>()});
  ASSERT_TRUE(bench.reaches(journal::STAGED)) << bench.fault();
  EXPECT_EQ(bench.calls_of(call_op::read_detectors), looks + 1);
  EXPECT_EQ(bench.permits_asked.size(), 1U);
}

TEST(host_power, an_accepted_power_on_that_is_never_read_on_is_named) {
  tray_bench bench;
  bench.start_at(journal::CREDENTIALED);
  bench.scripts[call_op::reset] = [](const call&) {
    return scripted_answer{absl::OkStatus(), std::monostate{}};
  };
  bench.aim(journal::STAGED);
  ASSERT_TRUE(bench.fails());
  EXPECT_EQ(bench.fault(), "POWER_ON_NOT_CONFIRMED");
  EXPECT_EQ(resets(bench, devices::reset_type::on), 1U) << "asked again without need";
}

TEST(host_power, a_trouble_that_is_over_does_not_name_a_later_deadline) {
  tray_bench bench;
  bench.start_at(journal::CREDENTIALED);
  bench.refuse_once(call_op::read_power, unreachable());
  bench.scripts[call_op::reset] = [](const call&) {
    return scripted_answer{absl::OkStatus(), std::monostate{}};
  };
  bench.aim(journal::STAGED);
  ASSERT_TRUE(bench.fails());
  EXPECT_EQ(bench.fault(), "POWER_ON_NOT_CONFIRMED");
}

TEST(host_power, an_unsure_power_on_is_looked_at_before_it_is_asked_again) {
  tray_bench bench;
  bench.start_at(journal::CREDENTIALED);
  bench.refuse_once(call_op::reset, unreachable());
  ASSERT_TRUE(bench.reaches(journal::STAGED));
  const auto first = std::find_if(bench.calls.begin(), bench.calls.end(),
                                  [](const call& one) { return one.op == call_op::reset; });
  EXPECT_EQ(std::next(first)->op, call_op::read_power);
  EXPECT_EQ(bench.device->count_acts("reset On"), 1U);
}

TEST(host_power, already_on_is_success_and_nothing_is_asked) {
  tray_bench bench(journal::SWITCH_TRAY);
  bench.start_at(journal::CREDENTIALED);
  bench.device->power = journal::POWER_ON;
  ASSERT_TRUE(bench.reaches(journal::STAGED));
  EXPECT_EQ(bench.calls_of(call_op::reset), 0U);
}

TEST(host_power, a_foreign_host_that_is_on_is_turned_off_and_staged) {
  tray_bench bench;
  bench.start_at(journal::CREDENTIALED);
  bench.device->power = journal::POWER_ON;
  ASSERT_TRUE(bench.reaches(journal::STAGED)) << bench.fault();
  EXPECT_EQ(bench.device->acts,
            (std::vector<std::string>{"login " + own_account(rack_uid), "reset ForceOff", "reset On"}));
  EXPECT_EQ(bench.spins, 0);
}

TEST(host_power, a_boot_once_that_reads_back_different_stops_before_power) {
  tray_bench bench;
  bench.start_at(journal::CREDENTIALED);
  bench.scripts[call_op::set_boot_once] = [](const call&) {
    return scripted_answer{absl::OkStatus(), std::string("https://x/?token=1")};
  };
  bench.aim(journal::STAGED);
  ASSERT_TRUE(bench.fails());
  EXPECT_EQ(bench.fault(), "CONFIG_DRIFT");
  EXPECT_EQ(bench.device->count_acts("reset On"), 0U);
}

TEST(host_power, no_agent_of_this_boot_is_named) {
  tray_bench bench;
  bench.agent_boots = false;
  bench.start_at(journal::CREDENTIALED);
  bench.aim(journal::STAGED);
  ASSERT_TRUE(bench.fails());
  EXPECT_EQ(bench.fault(), "AGENT_NOT_SEEN");
}

TEST(host_power, goes_off_gracefully_when_the_host_obeys) {
  tray_bench bench;
  bench.start_at(journal::PRODUCTION);
  bench.aim(journal::CREDENTIALED);
  ASSERT_TRUE(bench.run_until([&bench] { return bench.state.node.step() == journal::CREDENTIALED; }));
  EXPECT_EQ(bench.state.node.power().observed(), journal::POWER_OFF);
  EXPECT_EQ(resets(bench, devices::reset_type::graceful_shutdown), 1U);
  EXPECT_EQ(resets(bench, devices::reset_type::force_off), 0U);
  EXPECT_EQ(bench.stored.intents_size(), 0);
}

TEST(host_power, goes_off_by_force_when_the_host_ignores_it) {
  tray_bench bench;
  bench.start_at(journal::PRODUCTION);
  bench.scripts[call_op::reset] = [](const call& wanted) -> std::optional<scripted_answer> {
    if (wanted.reset != devices::reset_type::graceful_shutdown) return std::nullopt;
    return scripted_answer{absl::OkStatus(), std::monostate{}};
  };
  bench.aim(journal::CREDENTIALED);
  const std::int64_t before = bench.now.monotonic_ns;
  ASSERT_TRUE(bench.run_until([&bench] { return bench.state.node.step() == journal::CREDENTIALED; }));
  EXPECT_GE(bench.now.monotonic_ns - before, 120'000'000'000) << "the host was not given its time";
  EXPECT_EQ(bench.device->count_acts("reset ForceOff"), 1U);
}

TEST(host_power, a_graceful_shutdown_that_is_not_offered_is_done_by_force) {
  tray_bench bench;
  bench.start_at(journal::PRODUCTION);
  bench.device->offered = {"On", "ForceOff"};
  bench.aim(journal::CREDENTIALED);
  ASSERT_TRUE(bench.run_until([&bench] { return bench.state.node.step() == journal::CREDENTIALED; }));
  EXPECT_EQ(bench.device->acts.back(), "reset ForceOff");
}

TEST(host_power, force_off_acknowledged_but_still_on_is_named_and_not_believed) {
  tray_bench bench;
  bench.start_at(journal::PRODUCTION);
  bench.scripts[call_op::reset] = [](const call&) {
    return scripted_answer{absl::OkStatus(), std::monostate{}};
  };
  bench.aim(journal::CREDENTIALED);
  ASSERT_TRUE(bench.fails());
  EXPECT_EQ(bench.fault(), "POWER_OFF_NOT_CONFIRMED");
  EXPECT_EQ(bench.state.node.power().observed(), journal::POWER_ON);
  EXPECT_EQ(bench.spins, 0);
}

TEST(host_power, a_host_that_goes_off_late_is_still_believed_only_then) {
  tray_bench bench;
  bench.start_at(journal::PRODUCTION);
  const std::int64_t off_at = bench.now.monotonic_ns + 150'000'000'000;  // 20 s after the force, in the limit
  bench.scripts[call_op::reset] = [](const call&) {
    return scripted_answer{absl::OkStatus(), std::monostate{}};
  };
  bench.scripts[call_op::read_power] = [&bench, off_at](const call&) {
    power_facts facts;
    facts.state = bench.now.monotonic_ns >= off_at ? journal::POWER_OFF : journal::POWER_ON;
    return scripted_answer{absl::OkStatus(), facts};
  };
  bench.aim(journal::CREDENTIALED);
  ASSERT_TRUE(bench.run_until([&bench] { return bench.state.node.step() == journal::CREDENTIALED; }))
      << bench.fault();
  EXPECT_GE(bench.now.monotonic_ns, off_at);
}

TEST(host_power, every_crash_window_of_power_on_turns_the_host_on_once) {
  for (const cut where : {cut::before_effects, cut::after_effects}) {
    for (int at = 1;; ++at) {
      tray_bench bench;
      bench.start_at(journal::CREDENTIALED);
      bench.power_cut(at, where);
      const bool arrived = bench.reaches(journal::STAGED);
      if (bench.crashes == 0) break;
      ASSERT_TRUE(arrived) << at << " " << bench.fault() << " " << bench.state.node.failure().message();
      EXPECT_EQ(bench.device->count_acts("reset On"), 1U) << "cut at commit " << at;
      EXPECT_EQ(bench.device->count_acts("reset ForceOff"), 0U);
      EXPECT_EQ(bench.stored.intents_size(), 0) << bench.stored.intents(0).id() << " cut at commit " << at;
    }
  }
}

TEST(detectors, a_degraded_one_is_unknown_and_no_leak) {
  const auto rows = match_detectors(
      {"a", "b"}, {{"a", journal::Detector::DRY, "", {}}, {"b", journal::Detector::UNKNOWN, "Degraded", {}}});
  const auto problem = not_known_dry(rows);
  ASSERT_TRUE(problem.has_value());
  EXPECT_EQ(problem->code, core::fault::POWER_DETECTOR_UNKNOWN);
  EXPECT_EQ(problem->seen, "b: Degraded");
}

TEST(detectors, a_leak_is_named_before_an_unknown) {
  const auto rows = match_detectors(
      {"a", "b"}, {{"a", journal::Detector::UNKNOWN, "", {}}, {"b", journal::Detector::LEAK, "wet", {}}});
  EXPECT_EQ(not_known_dry(rows)->code, core::fault::POWER_LEAK_LATCHED);
}

}  // namespace
}  // namespace busbar::node::test
