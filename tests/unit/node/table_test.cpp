// The life of each kind as data: no arrow without work, a deadline and a named failure; no jump into nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "actors/node/node_table.hpp"
#include "tests/unit/node/tray_bench.hpp"

namespace busbar::node::test {
namespace {

constexpr journal::MemberKind kinds[] = {journal::COMPUTE_TRAY, journal::SWITCH_TRAY, journal::POWER_SHELF};

std::vector<std::span<const phase>> all_lists() {
  std::vector<std::span<const phase>> lists{power_down_phases(), reconnect_phases(), recheck_phases(),
                                             release_phases()};
  for (const auto kind : kinds) {
    for (const arrow& row : arrows_of(kind)) lists.push_back(row.phases);
  }
  return lists;
}

bool has(std::span<const phase> list, phase_id id) {
  return std::any_of(list.begin(), list.end(), [id](const phase& one) { return one.id == id; });
}

TEST(node_table, every_arrow_has_work_a_deadline_and_a_named_failure) {
  for (const auto kind : kinds) {
    journal::NodeStep at = journal::DECLARED;
    for (const arrow& row : arrows_of(kind)) {
      EXPECT_EQ(row.from, at);
      at = row.to;
      EXPECT_FALSE(row.phases.empty());
      EXPECT_FALSE(row.deadline_key.empty());
      EXPECT_GT(row.default_deadline_s, 0);
    }
    EXPECT_EQ(at, journal::PRODUCTION);
  }
}

TEST(node_table, every_phase_that_waits_says_for_what_and_names_its_failure) {
  for (const auto list : all_lists()) {
    std::set<phase_id> seen;
    for (const phase& one : list) {
      EXPECT_TRUE(seen.insert(one.id).second) << "a phase stands twice in one arrow: " << one.waits_for;
      ASSERT_NE(one.enter, nullptr);
      EXPECT_TRUE(one.take == nullptr || !one.waits_for.empty());
      EXPECT_FALSE(core::name_of(one.deadline_fault).empty());
    }
  }
}

// From which phase the work may go on at which other: what the code says with outcome::jump.
const std::multimap<phase_id, phase_id>& jumps() {
  using enum phase_id;
  static const std::multimap<phase_id, phase_id> table{{login_best, drop_old_session},
                                                       {login_best, login_fallback},
                                                       {login_fallback, drop_old_session},
                                                       {change_demanded, login_best},
                                                       {verify_breakglass_first, drop_breakglass_session},
                                                       {set_factory_password, verify_breakglass_first},
                                                       {wait_present_agent, wait_agent},
                                                       {wait_present_agent, rs_off},
                                                       {power_on, permit_on},
                                                       {power_on, read_power},
                                                       {pick_row, poll_task},
                                                       {pick_row, permit_blind},
                                                       {pick_row, rs_read_bios},
                                                       {pick_row, verify_rows},
                                                       {recover_push, poll_task},
                                                       {recover_unnamed, push},
                                                       {recover_unnamed, poll_task},
                                                       {wait_bmc, cert_bind},
                                                       {wait_bmc, login_after_reset},
                                                       {login_after_reset, cert_bind},
                                                       {rs_reset, rs_cycle},
                                                       {rs_cycle, rs_wait_on},
                                                       {rs_wait_on, rs_off},
                                                       {rs_wait_on, rs_detectors},
                                                       {rel_try_factory, rel_delete_interlock},
                                                       {rel_restore, rel_try_factory},
                                                       {push, recover_push},
                                                       {poll_task, pick_row},
                                                       {manager_reset, permit_blind},
                                                       {verify_rows, pick_row},
                                                       {rs_read_bios, rs_boot_once},
                                                       {rs_reset, rs_permit},
                                                       {rs_reset, rs_on},
                                                       {rs_reset, rs_wait_on},
                                                       {rs_reset, rs_off},
                                                       {rs_on, rs_wait_off},
                                                       {recover_restart, rs_read_bios},
                                                       {cfg_decide, cfg_verify_bios},
                                                       {cfg_decide, rs_read_bios},
                                                       {run_tests, run_tests},
                                                       {down_read, down_force},
                                                       {down_graceful, down_force}};
  return table;
}

TEST(node_table, every_jump_lands_in_the_same_arrow) {
  for (const auto list : all_lists()) {
    for (const phase& one : list) {
      const auto [first, last] = jumps().equal_range(one.id);
      for (auto it = first; it != last; ++it) {
        EXPECT_TRUE(has(list, it->second))
            << "waiting for \"" << one.waits_for << "\" may jump to phase " << static_cast<int>(it->second);
      }
    }
  }
  for (const auto list :
       {arrows_of(journal::COMPUTE_TRAY)[3].phases, arrows_of(journal::SWITCH_TRAY)[3].phases}) {
    EXPECT_TRUE(has(list, phase_id::wait_on) && has(list, phase_id::permit_on));
  }
  const auto firmware = arrows_of(journal::COMPUTE_TRAY)[5].phases,
             configure = arrows_of(journal::COMPUTE_TRAY)[6].phases;
  EXPECT_TRUE(has(firmware, phase_id::read_firmware) && has(firmware, phase_id::verify_rows) &&
              has(firmware, phase_id::rs_detectors));
  EXPECT_TRUE(has(configure, phase_id::cfg_bios) && has(configure, phase_id::cfg_verify_bios) &&
              has(configure, phase_id::rs_detectors));
}

// A device that never answers, a rack that never grants, an agent that never reports: each arrow ends at its
// deadline.
TEST(control_plane_cases, c13_every_step_has_an_exit_check_a_deadline_and_a_named_failure) {
  for (const auto kind : kinds) {
    for (const arrow& row : arrows_of(kind)) {
      if (row.from >= journal::VALIDATED) continue;  // opened by the rack's guards, not by the device
      if (row.to == journal::VALIDATED && kind != journal::COMPUTE_TRAY) continue;  // no suite: NOT_REQUIRED
      tray_bench bench(kind);
      if (kind != journal::POWER_SHELF) {
        bench.want_firmware(1, "FW", "2", "host_restart");
        const std::string key = kind == journal::COMPUTE_TRAY ? "compute_tray" : "switch_tray";
        (*(*bench.spec.mutable_baseline()->mutable_bios())[key].mutable_values())["A"] = "1";
      } else if (row.to == journal::FIRMWARE_CURRENT || row.to == journal::CONFIGURED) {
        continue;  // nothing declared for shelves: not required
      }
      for (int op = 0; op <= static_cast<int>(call_op::read_nvlink); ++op)
        bench.mute(static_cast<call_op>(op));
      bench.tests_answer = false;
      bench.start_at(row.from);
      const std::int64_t began = bench.now.monotonic_ns;
      bench.aim(row.to);
      ASSERT_TRUE(bench.fails()) << journal::NodeStep_Name(row.to);
      EXPECT_EQ(bench.state.node.failure().step(), row.to) << journal::NodeStep_Name(row.to);
      EXPECT_TRUE(core::fault_named(bench.fault()).has_value()) << bench.fault();
      EXPECT_LE(bench.now.monotonic_ns - began, row.default_deadline_s * 1'000'000'000)
          << journal::NodeStep_Name(row.to);
      EXPECT_EQ(bench.spins, 0);
      EXPECT_EQ(bench.state.node.step(), row.from);
    }
  }
}

TEST(control_plane_cases, c13_a_device_that_lies_at_every_call_passes_no_step) {
  for (const arrow& row : arrows_of(journal::COMPUTE_TRAY)) {
    if (row.from < journal::DISCOVERED || row.from >= journal::VALIDATED) continue;
    tray_bench bench;
    bench.want_firmware(1, "FW", "2", "host_restart");
    (*(*bench.spec.mutable_baseline()->mutable_bios())["compute_tray"].mutable_values())["A"] = "1";
    for (int op = 0; op <= static_cast<int>(call_op::read_nvlink); ++op) {
      bench.refuse(static_cast<call_op>(op),
                   core::make_fault(core::fault::BMC_BAD_DATA, "a string for a number"));
    }
    bench.tests_answer = false;
    bench.start_at(row.from);
    bench.aim(row.to);
    ASSERT_TRUE(bench.fails()) << journal::NodeStep_Name(row.to);
    EXPECT_TRUE(core::fault_named(bench.fault()).has_value());
    EXPECT_EQ(bench.state.node.step(), row.from);
  }
}

}  // namespace
}  // namespace busbar::node::test
