// Firmware by baseline rows: the version read back decides, and nothing is pushed, reset or restarted twice.
#include <gtest/gtest.h>

#include "tests/unit/node/tray_bench.hpp"

namespace busbar::node::test {
namespace {

using journal::FirmwareProgress;

std::vector<std::string> dangerous(const tray_bench& bench) {
  std::vector<std::string> acts;
  for (const std::string& act : bench.device->acts) {
    if (act.starts_with("push") || act.starts_with("reset")) acts.push_back(act);
  }
  return acts;
}

// Two rows by a BMC reset, two by a host restart, listed in the wrong order.
void old_everywhere(tray_bench& bench) {
  bench.want_firmware(3, "UEFI", "2.4.1", "host_restart");
  bench.want_firmware(4, "GPU_0", "97", "host_restart");
  bench.want_firmware(1, "FW_BMC_0", "25.10-3", "bmc_reset");
  bench.want_firmware(2, "FW_ERoT_BMC_0", "1.9", "bmc_reset");
  for (const char* component : {"UEFI", "GPU_0", "FW_BMC_0", "FW_ERoT_BMC_0"})
    bench.device->firmware[component] = "old";
}

TEST(firmware, nothing_is_required_of_a_kind_without_rows) {
  tray_bench bench;
  bench.start_at(journal::INSPECTED);
  ASSERT_TRUE(bench.reaches(journal::FIRMWARE_CURRENT));
  EXPECT_EQ(bench.calls_of(call_op::read_firmware), 0U);
  EXPECT_EQ(bench.state.node.firmware_size(), 0);
}

TEST(firmware, rows_that_are_current_are_not_pushed) {
  tray_bench bench;
  old_everywhere(bench);
  bench.device->firmware = {
      {"UEFI", "2.4.1"}, {"GPU_0", "97"}, {"FW_BMC_0", "25.10-3"}, {"FW_ERoT_BMC_0", "1.9"}};
  bench.start_at(journal::INSPECTED);
  ASSERT_TRUE(bench.reaches(journal::FIRMWARE_CURRENT));
  EXPECT_TRUE(dangerous(bench).empty());
  EXPECT_TRUE(bench.permits_asked.empty());
}

TEST(firmware, bmc_rows_come_first_in_order_and_rows_of_one_activation_share_it) {
  tray_bench bench;
  old_everywhere(bench);
  bench.start_at(journal::INSPECTED);
  ASSERT_TRUE(bench.reaches(journal::FIRMWARE_CURRENT))
      << bench.fault() << " " << bench.state.node.failure().message();
  EXPECT_EQ(dangerous(bench),
            (std::vector<std::string>{"push FW_BMC_0", "push FW_ERoT_BMC_0", "reset_manager", "push UEFI",
                                      "push GPU_0", "reset ForceRestart"}));
  EXPECT_EQ(bench.permits_asked, (std::vector<permit_kind>{permit_kind::blind_window, permit_kind::restart}));
  EXPECT_EQ(bench.releases, 2);
  for (const FirmwareProgress& row : bench.stored.firmware())
    EXPECT_EQ(row.state(), FirmwareProgress::CURRENT) << row.component();
  EXPECT_EQ(bench.stored.intents_size(), 0);
  EXPECT_FALSE(bench.stored.blind_window());
  EXPECT_TRUE(bench.told("firmware_read_back", "UEFI reads back 2.4.1"));
  EXPECT_TRUE(bench.told("blind_window_opened") && bench.told("blind_window_closed"));
}

TEST(firmware, a_wrong_digest_pushes_nothing) {
  tray_bench bench;
  bench.want_firmware(1, "UEFI", "2.4.1", "host_restart");
  (*bench.spec.mutable_baseline()->mutable_firmware())["compute_tray"].mutable_rows(0)->set_sha256(
      std::string(64, 'a'));
  bench.device->firmware["UEFI"] = "old";
  bench.start_at(journal::INSPECTED);
  bench.aim(journal::FIRMWARE_CURRENT);
  ASSERT_TRUE(bench.fails());
  EXPECT_EQ(bench.fault(), "FIRMWARE_DIGEST");
  EXPECT_TRUE(dangerous(bench).empty());
}

TEST(firmware, an_unknown_version_is_never_current) {
  tray_bench bench;
  bench.want_firmware(1, "UEFI", "2.4.1", "host_restart");
  bench.scripts[call_op::read_firmware] = [](const call&) {
    return scripted_answer{absl::OkStatus(), std::vector<devices::component_facts>{{"UEFI", std::nullopt}}};
  };
  bench.device->firmware["UEFI"] = "old";
  bench.start_at(journal::INSPECTED);
  bench.aim(journal::FIRMWARE_CURRENT);
  ASSERT_TRUE(bench.fails());
  EXPECT_EQ(bench.fault(), "FIRMWARE_UNCHANGED");
  EXPECT_EQ(bench.state.node.failure().seen(), "unknown");
}

TEST(firmware, success_that_reads_back_old_is_named) {
  tray_bench bench;
  bench.want_firmware(1, "UEFI", "2.4.1", "host_restart");
  bench.device->firmware["UEFI"] = "old";
  bench.activates = false;
  bench.start_at(journal::INSPECTED);
  bench.aim(journal::FIRMWARE_CURRENT);
  ASSERT_TRUE(bench.fails());
  EXPECT_EQ(bench.fault(), "FIRMWARE_UNCHANGED");
  EXPECT_EQ(bench.state.node.failure().expected(), "2.4.1");
  EXPECT_EQ(bench.state.node.failure().seen(), "old");
  EXPECT_EQ(bench.stored.firmware(0).state(), FirmwareProgress::FAILED);
}

TEST(firmware, a_task_that_vanished_is_decided_by_the_version) {
  for (const bool good : {true, false}) {
    tray_bench bench;
    bench.want_firmware(1, "UEFI", "2.4.1", "host_restart");
    bench.device->firmware["UEFI"] = "old";
    bench.start_at(journal::INSPECTED);
    bench.scripts[call_op::read_task] = [&bench, good](const call&) {
      if (good) bench.device->firmware["UEFI"] = "2.4.1";
      return scripted_answer{absl::OkStatus(),
                             devices::task_facts{devices::task_state::gone, std::nullopt, ""}};
    };
    bench.aim(journal::FIRMWARE_CURRENT);
    bench.run_until([&bench] {
      return bench.state.node.has_failure() || bench.state.node.step() == journal::FIRMWARE_CURRENT;
    });
    EXPECT_EQ(bench.fault(), good ? "" : "FIRMWARE_TASK_LOST");
    EXPECT_EQ(bench.device->count_acts("push UEFI"), 1U);
  }
}

TEST(firmware, a_lost_task_of_an_earlier_try_names_no_later_failure) {
  tray_bench bench;
  bench.want_firmware(1, "UEFI", "2.4.1", "host_restart");
  bench.device->firmware["UEFI"] = "old";
  bench.activates = false;
  bench.start_at(journal::INSPECTED);
  bench.scripts[call_op::read_task] = [](const call&) {
    return scripted_answer{absl::OkStatus(),
                           devices::task_facts{devices::task_state::gone, std::nullopt, ""}};
  };
  bench.aim(journal::FIRMWARE_CURRENT);
  ASSERT_TRUE(bench.fails());
  EXPECT_EQ(bench.fault(), "FIRMWARE_TASK_LOST");
  bench.scripts.clear();
  bench.heal(retry{});
  ASSERT_TRUE(bench.fails());
  EXPECT_EQ(bench.fault(), "FIRMWARE_UNCHANGED");
}

TEST(firmware, a_refused_push_and_a_failed_task_are_named) {
  tray_bench bench;
  bench.want_firmware(1, "UEFI", "2.4.1", "host_restart");
  bench.device->firmware["UEFI"] = "old";
  bench.start_at(journal::INSPECTED);
  bench.refuse(call_op::push_firmware, core::make_fault(core::fault::FIRMWARE_REFUSED, "not signed"));
  bench.aim(journal::FIRMWARE_CURRENT);
  ASSERT_TRUE(bench.fails());
  EXPECT_EQ(bench.fault(), "FIRMWARE_REFUSED");
  bench.scripts.clear();
  bench.scripts[call_op::read_task] = [](const call&) {
    return scripted_answer{absl::OkStatus(),
                           devices::task_facts{devices::task_state::failed, std::nullopt, "flash worn out"}};
  };
  bench.heal(retry{});
  ASSERT_TRUE(bench.fails());
  EXPECT_EQ(bench.fault(), "FIRMWARE_REFUSED");
  EXPECT_NE(bench.state.node.failure().message().find("flash worn out"), std::string::npos);
}

TEST(firmware, an_unsure_push_is_looked_for_and_not_repeated) {
  tray_bench bench;
  bench.want_firmware(1, "UEFI", "2.4.1", "host_restart");
  bench.device->firmware["UEFI"] = "old";
  bench.start_at(journal::INSPECTED);
  bench.scripts[call_op::push_firmware] = [&bench](const call&) {
    bench.device->tasks["/t/1"] = {"UEFI", "2.4.1", devices::task_state::running};
    bench.device->acts.emplace_back("push UEFI");
    return scripted_answer{unreachable(), std::monostate{}};
  };
  ASSERT_TRUE(bench.reaches(journal::FIRMWARE_CURRENT)) << bench.fault();
  EXPECT_EQ(bench.calls_of(call_op::push_firmware), 1U);
  EXPECT_EQ(bench.calls_of(call_op::find_update), 1U);
}

TEST(firmware, a_push_whose_answer_is_always_lost_ends) {
  tray_bench bench;
  bench.want_firmware(1, "UEFI", "2.4.1", "host_restart");
  bench.device->firmware["UEFI"] = "old";
  bench.start_at(journal::INSPECTED);
  bench.refuse(call_op::push_firmware, unreachable());
  bench.aim(journal::FIRMWARE_CURRENT);
  ASSERT_TRUE(bench.fails());
  EXPECT_EQ(bench.fault(), "FIRMWARE_REFUSED");
  EXPECT_EQ(bench.calls_of(call_op::push_firmware), 3U);
}

TEST(firmware, every_crash_window_ends_current_with_nothing_dangerous_repeated) {
  for (const cut where : {cut::before_effects, cut::after_effects}) {
    for (int at = 1;; ++at) {
      tray_bench bench;
      old_everywhere(bench);
      bench.start_at(journal::INSPECTED);
      bench.power_cut(at, where);
      const bool arrived = bench.reaches(journal::FIRMWARE_CURRENT);
      if (bench.crashes == 0) {
        EXPECT_GT(at, 20);
        break;
      }
      ASSERT_TRUE(arrived) << "cut at commit " << at << ": " << bench.fault() << " "
                           << bench.state.node.failure().message();
      EXPECT_EQ(dangerous(bench).size(), 6U)
          << "cut at commit " << at << (where == cut::before_effects ? " before" : " after") << ": "
          << ::testing::PrintToString(dangerous(bench));
      EXPECT_EQ(bench.stored.intents_size(), 0) << bench.stored.intents(0).id() << " cut at commit " << at;
      EXPECT_FALSE(bench.stored.blind_window());
    }
  }
}

TEST(firmware, a_blind_window_is_not_opened_without_the_racks_permit) {
  tray_bench bench;
  bench.want_firmware(1, "FW_BMC_0", "25.10-3", "bmc_reset");
  bench.device->firmware["FW_BMC_0"] = "old";
  bench.grants = false;
  bench.refusal_fault = core::fault::POWER_FLOW_NOT_PROVEN;
  bench.start_at(journal::INSPECTED);
  bench.aim(journal::FIRMWARE_CURRENT);
  ASSERT_TRUE(bench.fails());
  EXPECT_EQ(bench.fault(), "POWER_FLOW_NOT_PROVEN");
  EXPECT_EQ(bench.device->count_acts("reset_manager"), 0U);
  EXPECT_FALSE(bench.stored.blind_window());
}

TEST(firmware, a_host_is_turned_off_when_its_bmc_comes_back_too_late_from_a_blind_window) {
  tray_bench bench;
  bench.want_firmware(1, "FW_BMC_0", "25.10-3", "bmc_reset");
  bench.device->firmware["FW_BMC_0"] = "old";
  bench.start_at(journal::INSPECTED);
  std::int64_t silent_until_ns = core::never_ns;
  bench.scripts[call_op::reset_manager] = [&](const call&) -> std::optional<scripted_answer> {
    silent_until_ns = bench.now.monotonic_ns + 700'000'000'000;
    return std::nullopt;
  };
  bench.scripts[call_op::probe] = [&](const call&) -> std::optional<scripted_answer> {
    if (silent_until_ns == core::never_ns || bench.now.monotonic_ns >= silent_until_ns) return std::nullopt;
    return scripted_answer{unreachable(), {}};
  };
  bench.aim(journal::FIRMWARE_CURRENT);
  ASSERT_TRUE(bench.fails());
  EXPECT_EQ(bench.fault(), "FIRMWARE_ACTIVATION");
  bench.settle();
  EXPECT_TRUE(bench.told("power_off"));
  EXPECT_EQ(bench.stored.power().observed(), journal::POWER_OFF);
  EXPECT_FALSE(bench.stored.blind_window());
}

TEST(firmware, a_blind_window_is_durable_and_at_most_ten_minutes) {
  tray_bench bench;
  bench.want_firmware(1, "FW_BMC_0", "25.10-3", "bmc_reset");
  bench.device->firmware["FW_BMC_0"] = "old";
  bench.start_at(journal::INSPECTED);
  int seen = 0;
  bench.scripts[call_op::reset_manager] = [&](const call&) -> std::optional<scripted_answer> {
    ++seen;
    EXPECT_TRUE(bench.stored.blind_window());
    EXPECT_LE(bench.stored.blind_until_wall_ns() - bench.now.wall_ns, 600'000'000'000);
    return std::nullopt;
  };
  ASSERT_TRUE(bench.reaches(journal::FIRMWARE_CURRENT));
  EXPECT_EQ(seen, 1);
}

TEST(firmware, a_restart_that_is_not_offered_is_composed_of_off_and_on) {
  tray_bench bench;
  bench.want_firmware(1, "UEFI", "2.4.1", "host_restart");
  bench.device->firmware["UEFI"] = "old";
  bench.device->offered = {"On", "ForceOff"};
  bench.start_at(journal::INSPECTED);
  ASSERT_TRUE(bench.reaches(journal::FIRMWARE_CURRENT)) << bench.fault();
  EXPECT_EQ(dangerous(bench), (std::vector<std::string>{"push UEFI", "reset ForceOff", "reset On"}));
  EXPECT_EQ(bench.calls_of(call_op::read_detectors), 2U) << "dry once more before it goes on";
  EXPECT_EQ(bench.stored.intents_size(), 0);
}

TEST(firmware, a_composed_restart_stays_off_when_a_detector_gets_wet_in_between) {
  tray_bench bench;
  bench.want_firmware(1, "UEFI", "2.4.1", "host_restart");
  bench.device->firmware["UEFI"] = "old";
  bench.device->offered = {"On", "ForceOff"};
  bench.start_at(journal::INSPECTED);
  bench.scripts[call_op::reset] = [&bench](const call&) -> std::optional<scripted_answer> {
    if (bench.device->count_acts("reset ForceOff") == 1) bench.all_detectors(journal::Detector::LEAK);
    bench.all_detectors(journal::Detector::LEAK);
    return std::nullopt;
  };
  bench.aim(journal::FIRMWARE_CURRENT);
  ASSERT_TRUE(bench.fails());
  EXPECT_EQ(bench.fault(), "POWER_LEAK_LATCHED");
  EXPECT_EQ(bench.device->count_acts("reset On"), 0U);
}

// The gate may close while a host takes its time to go off: what was permitted before says nothing about now.
TEST(firmware, a_composed_restart_turns_on_only_with_a_permit_of_this_moment) {
  tray_bench bench;
  bench.want_firmware(1, "UEFI", "2.4.1", "host_restart");
  bench.device->firmware["UEFI"] = "old";
  bench.device->offered = {"On", "ForceOff"};
  bench.start_at(journal::INSPECTED);
  int still_on = 0;
  bench.scripts[call_op::read_power] = [&](const call&) -> std::optional<scripted_answer> {
    if (bench.device->count_acts("reset ForceOff") == 0 || ++still_on > 20) return std::nullopt;
    bench.grants = false;  // the interlock died, or flow was lost
    devices::power_facts on;
    on.state = journal::POWER_ON;
    return scripted_answer{absl::OkStatus(), on};
  };
  bench.refusal_fault = core::fault::POWER_INTERLOCK_NOT_ARMED;
  bench.aim(journal::FIRMWARE_CURRENT);
  ASSERT_TRUE(bench.fails());
  EXPECT_EQ(bench.fault(), "POWER_INTERLOCK_NOT_ARMED");
  EXPECT_EQ(bench.device->count_acts("reset ForceOff"), 1U);
  EXPECT_EQ(bench.device->count_acts("reset On"), 0U);
}

TEST(firmware, every_crash_window_of_a_composed_restart_ends_on_and_current) {
  for (const cut where : {cut::before_effects, cut::after_effects}) {
    for (int at = 1;; ++at) {
      tray_bench bench;
      bench.want_firmware(1, "UEFI", "2.4.1", "host_restart");
      bench.device->firmware["UEFI"] = "old";
      bench.device->offered = {"On", "ForceOff"};
      bench.start_at(journal::INSPECTED);
      bench.power_cut(at, where);
      const bool arrived = bench.reaches(journal::FIRMWARE_CURRENT);
      if (bench.crashes == 0) break;
      ASSERT_TRUE(arrived) << "cut at commit " << at << ": " << bench.fault() << " "
                           << bench.state.node.failure().message();
      EXPECT_EQ(dangerous(bench).size(), 3U) << at << ::testing::PrintToString(dangerous(bench));
      EXPECT_EQ(bench.stored.intents_size(), 0) << bench.stored.intents(0).id() << " cut at commit " << at;
    }
  }
}

}  // namespace
}  // namespace busbar::node::test
