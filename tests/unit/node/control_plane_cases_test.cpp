// Failure stories of other control planes, as far as they touch one member. C13 stands in table_test.cpp.
#include <gtest/gtest.h>

#include "tests/unit/node/tray_bench.hpp"

namespace busbar::node::test {
namespace {

// "Reset refused, HTTP 400, chassis must be off": the driver answers POWER_RESET_NOT_OFFERED with the state
// it then read.
TEST(control_plane_cases, c1_a_reset_refused_because_it_must_be_off_turns_the_host_off_confirms_and_goes_on) {
  tray_bench bench;
  bench.want_firmware(1, "UEFI", "2.4.1", "host_restart");
  bench.device->firmware["UEFI"] = "old";
  bench.start_at(journal::INSPECTED);
  bench.scripts[call_op::reset] = [](const call& wanted) -> std::optional<scripted_answer> {
    if (wanted.reset != devices::reset_type::force_restart) return std::nullopt;
    return scripted_answer{core::make_fault(core::fault::POWER_RESET_NOT_OFFERED, "400: chassis must be off"),
                           std::monostate{}};
  };
  ASSERT_TRUE(bench.reaches(journal::FIRMWARE_CURRENT)) << bench.fault();
  EXPECT_EQ(bench.device->count_acts("reset ForceOff"), 1U);
  EXPECT_EQ(bench.device->count_acts("reset On"), 1U);
}

TEST(control_plane_cases, c1_a_host_that_cannot_be_turned_off_ends_in_a_named_failure) {
  tray_bench bench;
  bench.want_firmware(1, "UEFI", "2.4.1", "host_restart");
  bench.device->firmware["UEFI"] = "old";
  bench.start_at(journal::INSPECTED);
  bench.refuse(call_op::reset,
               core::make_fault(core::fault::POWER_RESET_NOT_OFFERED, "400: chassis must be off"));
  bench.aim(journal::FIRMWARE_CURRENT);
  ASSERT_TRUE(bench.fails());
  EXPECT_EQ(bench.fault(), "POWER_RESET_NOT_OFFERED");
  EXPECT_LE(bench.calls_of(call_op::reset), 2U) << "bounded";
}

TEST(control_plane_cases, c2_a_vendor_without_restart_gets_off_and_on) {
  tray_bench bench;
  (*(*bench.spec.mutable_baseline()->mutable_bios())["compute_tray"].mutable_values())["A"] = "1";
  bench.device->bios["A"] = "0";
  bench.device->offered = {"On", "ForceOff"};
  bench.start_at(journal::FIRMWARE_CURRENT);
  ASSERT_TRUE(bench.reaches(journal::CONFIGURED)) << bench.fault();
  const auto& acts = bench.device->acts;
  EXPECT_EQ(std::count(acts.begin(), acts.end(), "reset ForceOff"), 1);
  EXPECT_EQ(acts.back(), "reset On");
  EXPECT_EQ(bench.device->bios["A"], "1");
}

TEST(control_plane_cases, c2_a_composed_power_on_whose_answer_is_lost_is_looked_at_first) {
  for (const bool took : {true, false}) {
    tray_bench bench;
    bench.want_firmware(1, "UEFI", "2.4.1", "host_restart");
    bench.device->firmware["UEFI"] = "old";
    bench.device->offered = {"On", "ForceOff"};
    bench.agent_boots = true;
    bench.start_at(journal::INSPECTED);
    int left = 1;
    bench.scripts[call_op::reset] = [&](const call& wanted) -> std::optional<scripted_answer> {
      if (wanted.reset != devices::reset_type::on || left-- <= 0) return std::nullopt;
      if (took) {
        bench.device->power = journal::POWER_ON;
        bench.device->firmware["UEFI"] = "2.4.1";
        validation::agent_event hello;
        hello.what = validation::agent_event::kind::hello;
        hello.hello.set_boot_id("boot-after");
        hello.hello.set_dmi_serial("SN1");
        bench.give(agent_news{hello});
      }
      return scripted_answer{unreachable(), std::monostate{}};
    };
    ASSERT_TRUE(bench.reaches(journal::FIRMWARE_CURRENT)) << took << " " << bench.fault();
    std::size_t ons = 0;
    for (std::size_t i = 0; i < bench.calls.size(); ++i) {
      if (bench.calls[i].op != call_op::reset || bench.calls[i].reset != devices::reset_type::on) continue;
      ++ons;
      EXPECT_EQ(bench.calls.at(i + 1).op, call_op::read_power) << "a power state is read after each On";
    }
    EXPECT_EQ(ons, took ? 1U : 2U);
  }
}

TEST(control_plane_cases, c5_a_detector_that_is_unavailable_absent_or_null_refuses_power_and_is_no_leak) {
  for (const bool absent : {true, false}) {
    tray_bench bench;
    if (absent) {
      bench.device->detectors.clear();
    } else {
      bench.all_detectors(journal::Detector::UNKNOWN);
    }
    bench.start_at(journal::CREDENTIALED);
    bench.aim(journal::STAGED);
    ASSERT_TRUE(bench.fails());
    EXPECT_EQ(bench.fault(), "POWER_DETECTOR_UNKNOWN");
    EXPECT_FALSE(bench.stored.leak_latched());
    EXPECT_EQ(bench.device->count_acts("reset On"), 0U);
    EXPECT_EQ(bench.stored.detectors_size(), 2);
    for (const journal::Detector& row : bench.stored.detectors())
      EXPECT_EQ(row.verdict(), journal::Detector::UNKNOWN);
  }
}

TEST(control_plane_cases, c8_a_restart_while_a_leak_is_seen_is_refused_like_a_power_on) {
  tray_bench bench;
  bench.want_firmware(1, "UEFI", "2.4.1", "host_restart");
  bench.device->firmware["UEFI"] = "old";
  bench.all_detectors(journal::Detector::LEAK);
  bench.start_at(journal::INSPECTED);
  bench.aim(journal::FIRMWARE_CURRENT);
  ASSERT_TRUE(bench.fails());
  EXPECT_EQ(bench.fault(), "POWER_LEAK_LATCHED");
  EXPECT_EQ(bench.calls_of(call_op::reset), 0U);
  EXPECT_TRUE(bench.permits_asked.empty()) << "what is not dry does not even ask";
}

TEST(control_plane_cases, c15_an_update_that_was_reported_done_is_not_pushed_by_another_path) {
  tray_bench bench;
  bench.want_firmware(1, "UEFI", "2.4.1", "host_restart");
  bench.device->firmware["UEFI"] = "old";
  bench.start_at(journal::INSPECTED);
  bench.aim(journal::FIRMWARE_CURRENT);
  bench.run_until([&bench] { return bench.device->count_acts("reset ForceRestart") == 1; });
  bench.crash();
  ASSERT_TRUE(bench.reaches(journal::FIRMWARE_CURRENT)) << bench.fault();
  bench.give(retry{journal::FIRMWARE_CURRENT, "operations/2"});
  bench.run_until([&bench] { return bench.state.node.step() == journal::INSPECTED; });
  ASSERT_TRUE(bench.reaches(journal::FIRMWARE_CURRENT)) << bench.fault();
  EXPECT_EQ(bench.device->count_acts("push UEFI"), 1U);
  EXPECT_EQ(bench.device->count_acts("reset ForceRestart"), 1U);
}

TEST(control_plane_cases, c16_a_task_that_never_ends_times_out_and_an_operator_can_go_on) {
  tray_bench bench;
  bench.want_firmware(1, "UEFI", "2.4.1", "host_restart");
  bench.device->firmware["UEFI"] = "old";
  bench.tasks_end = false;
  bench.start_at(journal::INSPECTED);
  bench.aim(journal::FIRMWARE_CURRENT);
  ASSERT_TRUE(bench.fails());
  EXPECT_EQ(bench.fault(), "FIRMWARE_REFUSED");
  EXPECT_EQ(bench.spins, 0);
  const std::size_t calls = bench.calls.size();
  bench.settle();
  EXPECT_EQ(bench.calls.size(), calls) << "it goes on by itself";
  bench.tasks_end = true;
  bench.heal(retry{});
  ASSERT_TRUE(bench.reaches(journal::FIRMWARE_CURRENT)) << bench.fault();
  EXPECT_EQ(bench.device->count_acts("push UEFI"), 1U);
}

TEST(control_plane_cases, c16_a_task_read_that_hangs_does_not_spin) {
  tray_bench bench;
  bench.want_firmware(1, "UEFI", "2.4.1", "host_restart");
  bench.device->firmware["UEFI"] = "old";
  bench.start_at(journal::INSPECTED);
  bench.mute(call_op::read_task);
  bench.aim(journal::FIRMWARE_CURRENT);
  ASSERT_TRUE(bench.fails());
  EXPECT_EQ(bench.spins, 0);
}

TEST(control_plane_cases, c17_a_serial_that_differs_in_dmi_and_redfish_is_named_with_both_values) {
  tray_bench bench;
  bench.device->identity.serial = "SN-REDFISH";
  bench.state.node.mutable_spec()->clear_serial();
  bench.start();
  bench.aim(journal::STAGED);
  ASSERT_TRUE(bench.fails());
  EXPECT_EQ(bench.fault(), "AGENT_SERIAL_MISMATCH");
  EXPECT_EQ(bench.state.node.failure().expected(), "SN-REDFISH");
  EXPECT_EQ(bench.state.node.failure().seen(), "SN1");
}

TEST(control_plane_cases, c17_a_bmc_that_says_na_is_known_by_mac_and_slot) {
  tray_bench bench;
  bench.device->identity.serial = "NA";
  bench.state.node.mutable_spec()->clear_serial();
  bench.start();
  EXPECT_TRUE(bench.reaches(journal::STAGED)) << bench.fault();
}

TEST(control_plane_cases, c18_a_wrong_password_stops_everything_below_the_lock_out) {
  tray_bench bench;
  bench.start_at(journal::CREDENTIALED);
  bench.device->accounts[own_account(rack_uid)].password = "changed behind our back";
  bench.aim(journal::STAGED);
  for (int i = 0; i < 8; ++i) {
    ASSERT_TRUE(bench.fails());
    bench.crash();
    bench.heal(retry{});
  }
  ASSERT_TRUE(bench.fails());
  EXPECT_EQ(bench.fault(), "CREDENTIAL_LOCKED_OUT");
  EXPECT_EQ(bench.device->count_acts("refused " + own_account(rack_uid)), 3U);
}

}  // namespace
}  // namespace busbar::node::test
