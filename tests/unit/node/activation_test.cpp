// What may go wrong around an activation: a restart that does not take, a certificate that changes with the
// BMC's restart, an update whose task names nothing. Each is read back, and nothing is asked twice that must
// not be.
#include <gtest/gtest.h>

#include <utility>

#include "tests/unit/node/tray_bench.hpp"

namespace busbar::node::test {
namespace {

using devices::reset_type;

std::vector<std::string> dangerous(const tray_bench& bench) {
  std::vector<std::string> acts;
  for (const std::string& act : bench.device->acts) {
    if (act.starts_with("push") || act.starts_with("reset")) acts.push_back(act);
  }
  return acts;
}

void one_old_row(tray_bench& bench, const std::string& component, const std::string& activation) {
  bench.want_firmware(1, component, "2", activation);
  bench.device->firmware[component] = "1";
  bench.start_at(journal::INSPECTED);
}

// The BMC says yes to these and does nothing.
void ignore(tray_bench& bench, std::vector<reset_type> types) {
  bench.scripts[call_op::reset] = [types, &bench](const call& asked) -> std::optional<scripted_answer> {
    if (std::find(types.begin(), types.end(), asked.reset) == types.end()) return std::nullopt;
    bench.device->acts.push_back("reset ignored");
    return scripted_answer{absl::OkStatus(), std::monostate{}};
  };
}

// ---- a restart that does not take
// ---------------------------------------------------------------------------------------------

TEST(activation, a_restart_without_effect_is_done_as_off_and_on_each_read_back) {
  tray_bench bench;
  one_old_row(bench, "UEFI", "host_restart");
  ignore(bench, {reset_type::force_restart});
  ASSERT_TRUE(bench.reaches(journal::FIRMWARE_CURRENT)) << bench.fault();
  EXPECT_EQ(dangerous(bench),
            (std::vector<std::string>{"push UEFI", "reset ignored", "reset ForceOff", "reset On"}));
  EXPECT_TRUE(bench.told("restart_not_taken", "ForceRestart"));
  EXPECT_EQ(bench.stored.intents_size(), 0) << bench.stored.intents(0).id();
}

TEST(activation, a_restart_without_effect_takes_what_the_bmc_offers) {
  tray_bench bench;
  one_old_row(bench, "UEFI", "host_restart");
  bench.device->offered = {"ForceRestart", "PowerCycle"};
  ignore(bench, {reset_type::force_restart});
  ASSERT_TRUE(bench.reaches(journal::FIRMWARE_CURRENT)) << bench.fault();
  EXPECT_EQ(dangerous(bench), (std::vector<std::string>{"push UEFI", "reset ignored", "reset PowerCycle"}));
  EXPECT_EQ(bench.stored.intents_size(), 0) << bench.stored.intents(0).id();
}

TEST(activation, an_off_without_effect_ends_in_a_power_cycle) {
  tray_bench bench;
  one_old_row(bench, "UEFI", "host_restart");
  ignore(bench, {reset_type::force_restart, reset_type::force_off});
  ASSERT_TRUE(bench.reaches(journal::FIRMWARE_CURRENT)) << bench.fault();
  EXPECT_EQ(bench.device->count_acts("reset PowerCycle"), 1U);
  EXPECT_EQ(bench.device->count_acts("reset ignored"), 2U) << "nothing is asked twice";
  EXPECT_EQ(bench.stored.intents_size(), 0) << bench.stored.intents(0).id();
}

TEST(activation, a_host_that_nothing_restarts_is_named_and_nothing_was_asked_twice) {
  for (const bool cycles : {true, false}) {
    tray_bench bench;
    one_old_row(bench, "UEFI", "host_restart");
    bench.device->offered = {"ForceRestart"};
    if (cycles) bench.device->offered.emplace_back("PowerCycle");
    ignore(bench, {reset_type::force_restart, reset_type::power_cycle});
    bench.aim(journal::FIRMWARE_CURRENT);
    ASSERT_TRUE(bench.fails());
    EXPECT_EQ(bench.fault(), "POWER_OFF_NOT_CONFIRMED");
    EXPECT_EQ(bench.state.node.failure().seen(), "on throughout");
    EXPECT_EQ(bench.device->count_acts("reset ignored"), cycles ? 2U : 1U);
  }
}

TEST(activation, a_restart_that_took_is_not_helped_along_however_long_its_boot) {
  tray_bench bench;
  one_old_row(bench, "UEFI", "host_restart");
  bench.agent_boots = false;
  validation::agent_event lost;
  lost.what = validation::agent_event::kind::lost;
  bench.scripts[call_op::reset] = [&](const call&) -> std::optional<scripted_answer> {
    bench.give(agent_news{lost});
    return std::nullopt;
  };
  bench.aim(journal::FIRMWARE_CURRENT);
  ASSERT_TRUE(bench.fails());
  EXPECT_EQ(dangerous(bench), (std::vector<std::string>{"push UEFI", "reset ForceRestart"}));
}

// ---- another certificate after the BMC's own restart
// --------------------------------------------------------------------------

// The BMC comes back from each restart of ours with the next certificate.
void new_certificate_at_reset(tray_bench& bench, const std::string& pin) {
  bench.scripts[call_op::reset_manager] = [&bench, pin](const call&) -> std::optional<scripted_answer> {
    bench.device->certificate = pin;
    bench.device->acts.push_back("reset_manager");
    bench.device->sessions.clear();
    bench.device->firmware["FW_BMC_0"] = "2";
    return scripted_answer{absl::OkStatus(), std::monostate{}};
  };
}

TEST(activation, a_new_certificate_in_our_own_blind_window_is_accepted_once_and_the_interlock_armed_with_it) {
  tray_bench bench;
  one_old_row(bench, "FW_BMC_0", "bmc_reset");
  new_certificate_at_reset(bench, "bb22");
  ASSERT_TRUE(bench.reaches(journal::FIRMWARE_CURRENT))
      << bench.fault() << bench.state.node.failure().message();
  EXPECT_EQ(bench.stored.identity().pin_sha256(), "bb22");
  EXPECT_TRUE(bench.told("certificate_accepted"));
  EXPECT_TRUE(bench.stored.access().interlock_armed());
  bench.device->certificate = "cc33";  // the window is closed
  bench.heal(retry{});
  bench.aim(journal::CONFIGURED);
  ASSERT_TRUE(bench.fails());
  EXPECT_EQ(bench.fault(), "CERTIFICATE_CHANGED");
  EXPECT_EQ(bench.state.node.failure().expected(), "bb22");
  EXPECT_EQ(bench.state.node.failure().seen(), "cc33");
}

TEST(activation, a_new_certificate_of_another_tray_is_refused_in_the_window_too) {
  for (const bool other_mac : {true, false}) {
    tray_bench bench;
    one_old_row(bench, "FW_BMC_0", "bmc_reset");
    new_certificate_at_reset(bench, "bb22");
    if (other_mac)
      bench.device->identity.mac = "02:18:01:00:00:08";
    else
      bench.device->identity.serial = "SN2";
    bench.aim(journal::FIRMWARE_CURRENT);
    ASSERT_TRUE(bench.fails());
    EXPECT_EQ(bench.fault(), "CERTIFICATE_CHANGED");
    EXPECT_EQ(bench.state.node.failure().expected(), "aa11");
    EXPECT_EQ(bench.state.node.failure().seen(), "bb22");
    EXPECT_EQ(bench.stored.identity().pin_sha256(), "aa11");
  }
}

TEST(activation, a_second_new_certificate_in_one_window_is_refused) {
  tray_bench bench;
  one_old_row(bench, "FW_BMC_0", "bmc_reset");
  new_certificate_at_reset(bench, "bb22");
  bench.scripts[call_op::read_firmware] = [&bench](const call&) -> std::optional<scripted_answer> {
    if (bench.stored.identity().pin_sha256() == "bb22") bench.device->certificate = "cc33";
    return std::nullopt;
  };
  bench.aim(journal::FIRMWARE_CURRENT);
  ASSERT_TRUE(bench.fails());
  EXPECT_EQ(bench.fault(), "CERTIFICATE_CHANGED");
  EXPECT_EQ(bench.state.node.failure().expected(), "bb22");
}

TEST(activation, every_crash_window_of_a_new_certificate_ends_current_under_it) {
  for (const cut where : {cut::before_effects, cut::after_effects}) {
    for (int at = 1;; ++at) {
      tray_bench bench;
      one_old_row(bench, "FW_BMC_0", "bmc_reset");
      new_certificate_at_reset(bench, "bb22");
      bench.power_cut(at, where);
      const bool arrived = bench.reaches(journal::FIRMWARE_CURRENT);
      if (bench.crashes == 0) break;
      ASSERT_TRUE(arrived) << at << (where == cut::before_effects ? " before" : " after") << ": "
                           << bench.fault() << " " << bench.state.node.failure().message();
      EXPECT_EQ(bench.stored.identity().pin_sha256(), "bb22");
      EXPECT_EQ(bench.device->count_acts("reset_manager"), 1U);
      EXPECT_EQ(bench.stored.access().login_failures(), 0U);
    }
  }
}

TEST(activation, a_login_refused_after_the_bmcs_restart_counts) {
  tray_bench bench;
  one_old_row(bench, "FW_BMC_0", "bmc_reset");
  bench.scripts[call_op::reset_manager] = [&bench](const call&) -> std::optional<scripted_answer> {
    bench.device->accounts[own_account(rack_uid)].password = "lost in the restart";
    return std::nullopt;
  };
  bench.aim(journal::FIRMWARE_CURRENT);
  ASSERT_TRUE(bench.fails());
  EXPECT_EQ(bench.stored.access().login_failures(), 1U);
}

// ---- tasks that name no component
// ---------------------------------------------------------------------------------------------

TEST(activation, a_push_whose_task_names_nothing_is_not_repeated_in_any_crash_window) {
  for (const cut where : {cut::before_effects, cut::after_effects}) {
    for (int at = 1;; ++at) {
      tray_bench bench;
      one_old_row(bench, "UEFI", "host_restart");
      bench.device->tasks_name_components = false;
      bench.power_cut(at, where);
      const bool arrived = bench.reaches(journal::FIRMWARE_CURRENT);
      if (bench.crashes == 0) break;
      ASSERT_TRUE(arrived) << at << ": " << bench.fault() << " " << bench.state.node.failure().message();
      EXPECT_EQ(bench.device->count_acts("push UEFI"), 1U) << at;
    }
  }
}

TEST(activation, an_unnamed_task_of_before_is_waited_for_and_is_not_taken_for_ours) {
  tray_bench bench;
  one_old_row(bench, "UEFI", "host_restart");
  bench.device->tasks_name_components = false;
  bench.device->tasks["/t/0"] = {"GPU_0", "9", devices::task_state::running};
  ASSERT_TRUE(bench.reaches(journal::FIRMWARE_CURRENT)) << bench.fault();
  EXPECT_EQ(bench.device->count_acts("push UEFI"), 1U);
  EXPECT_EQ(bench.device->tasks.at("/t/0").state, devices::task_state::completed);
}

TEST(activation, an_unnamed_task_that_was_not_ours_lets_the_push_follow_once) {
  tray_bench bench;
  one_old_row(bench, "UEFI", "host_restart");
  bench.device->tasks_name_components = false;
  bool first = true;
  bench.scripts[call_op::push_firmware] = [&bench, &first](const call&) -> std::optional<scripted_answer> {
    if (!std::exchange(first, false)) return std::nullopt;
    bench.device->tasks["/t/0"] = {"OTHER", "9", devices::task_state::running};  // another's, meanwhile
    return scripted_answer{unreachable(), std::monostate{}};
  };
  ASSERT_TRUE(bench.reaches(journal::FIRMWARE_CURRENT)) << bench.fault();
  EXPECT_EQ(bench.device->count_acts("push UEFI"), 1U);
  EXPECT_TRUE(bench.told("firmware_push_due"));
}

TEST(activation, a_refused_update_is_named_with_the_versions) {
  tray_bench bench;
  one_old_row(bench, "UEFI", "host_restart");
  bench.refuse(call_op::push_firmware, core::make_fault(core::fault::FIRMWARE_REFUSED, "not signed"));
  bench.aim(journal::FIRMWARE_CURRENT);
  ASSERT_TRUE(bench.fails());
  EXPECT_EQ(bench.state.node.failure().expected(), "UEFI 2");
  EXPECT_EQ(bench.state.node.failure().seen(), "1");
}

}  // namespace
}  // namespace busbar::node::test
