// A BMC handed back: factory password set and proved, both accounts gone, nothing twice, nobody locked out
// wherever the power is cut; and the tray is left alone until somebody asks.
#include <gtest/gtest.h>

#include "tests/unit/node/tray_bench.hpp"

namespace busbar::node::test {
namespace {

void hand_back(tray_bench& bench) {
  const auto begun = [&bench] {
    return std::count_if(bench.events.begin(), bench.events.end(),
                         [](const journal::Event& told) { return told.type() == "release_started"; });
  };
  const auto before = begun();
  bench.give(release_bmc{"operations/7", "goes to the other hall"});
  EXPECT_TRUE(bench.run_until([&begun, before] { return begun() > before; }));
}

bool is_released(tray_bench& bench) {
  return bench.run_until([&bench] {
    return bench.state.node.hold() == journal::RELEASED || bench.state.node.has_failure();
  }) && bench.state.node.hold() == journal::RELEASED;
}

void expect_handed_back(const tray_bench& bench) {
  const devices::fake_device& device = *bench.device;
  EXPECT_EQ(device.accounts.size(), 1U);
  EXPECT_EQ(device.accounts.at("root").password, "factory");
  EXPECT_EQ(device.count_acts("password root"), 1U);
  EXPECT_EQ(device.count_acts("delete " + own_account(rack_uid)), 1U);
  EXPECT_EQ(device.count_acts("delete " + interlock_account(rack_uid)), 1U);
  const journal::Node& node = bench.stored;
  EXPECT_EQ(node.hold(), journal::RELEASED);
  EXPECT_EQ(node.step(), journal::DECLARED);
  EXPECT_TRUE(node.identity().pin_sha256().empty());
  EXPECT_FALSE(node.access().account_created() || node.access().interlock_account_created() ||
               node.access().factory_password_changed());
  EXPECT_TRUE(node.access().session_uri().empty());
  EXPECT_EQ(node.intents_size(), 0) << node.intents(0).id();
  EXPECT_TRUE(bench.vault.contains(breakglass_secret(node))) << "the vault forgets nothing";
}

TEST(release, restores_the_factory_login_then_deletes_its_accounts_the_own_one_last) {
  tray_bench bench;
  bench.start_at(journal::CREDENTIALED);
  hand_back(bench);
  ASSERT_TRUE(is_released(bench)) << bench.fault() << bench.state.node.failure().message();
  expect_handed_back(bench);
  EXPECT_TRUE(bench.device->sessions.empty());
  const auto& acts = bench.device->acts;
  const auto at = [&acts](const std::string& act) {
    return std::find(acts.begin(), acts.end(), act) - acts.begin();
  };
  EXPECT_LT(at("password root"), at("login root"));
  EXPECT_LT(at("login root"), at("delete " + interlock_account(rack_uid)));
  EXPECT_LT(at("delete " + interlock_account(rack_uid)), at("delete " + own_account(rack_uid)));
}

TEST(release, says_what_is_left_for_a_person_at_the_interlock) {
  tray_bench bench;
  bench.start_at(journal::CREDENTIALED);
  hand_back(bench);
  ASSERT_TRUE(is_released(bench));
  EXPECT_TRUE(bench.told("bmc_released", "only a person can take it out of the record"));
  EXPECT_TRUE(bench.stored.access().interlock_armed()) << "the interlock's record still names it";
  EXPECT_EQ(bench.stored.facts().at("interlock_pin"), bench.device->certificate);
}

TEST(release, every_crash_window_ends_handed_back_once_and_never_locked_out) {
  for (const cut where : {cut::before_effects, cut::after_effects}) {
    for (int at = 1;; ++at) {
      tray_bench bench;
      bench.start_at(journal::CREDENTIALED);
      hand_back(bench);
      bench.power_cut(at, where);
      bench.run_until([&bench] { return bench.crashes > 0 || bench.state.node.hold() == journal::RELEASED; });
      if (bench.crashes > 0 && bench.state.node.hold() == journal::HOLD_NONE) hand_back(bench);
      const bool done = is_released(bench);
      SCOPED_TRACE(std::to_string(at) + (where == cut::before_effects ? " before" : " after") +
                   " its effects");
      ASSERT_TRUE(done) << bench.fault() << " " << bench.state.node.failure().message();
      expect_handed_back(bench);
      EXPECT_LE(bench.device->count_acts("refused root") +
                    bench.device->count_acts("refused " + own_account(rack_uid)),
                2U);
      if (bench.crashes == 0) {
        EXPECT_GT(at, 8);
        break;
      }
    }
  }
}

TEST(release, an_unsure_restoring_is_settled_by_a_login) {
  for (const bool took : {true, false}) {
    tray_bench bench;
    bench.start_at(journal::CREDENTIALED);
    int left = 1;
    bench.scripts[call_op::restore_factory_password] = [&](const call&) -> std::optional<scripted_answer> {
      if (left-- <= 0) return std::nullopt;
      if (took) {
        bench.device->accounts["root"].password = "factory";
        bench.device->acts.emplace_back("password root");
      }
      return scripted_answer{unreachable(), std::monostate{}};
    };
    hand_back(bench);
    ASSERT_TRUE(is_released(bench)) << took << " " << bench.fault();
    expect_handed_back(bench);
  }
}

TEST(release, a_host_that_is_on_keeps_its_account_and_its_step) {
  tray_bench bench;
  bench.start_at(journal::CREDENTIALED);
  bench.device->power = journal::POWER_ON;
  hand_back(bench);
  ASSERT_TRUE(bench.fails());
  EXPECT_EQ(bench.fault(), "POWER_OFF_NOT_CONFIRMED");
  EXPECT_EQ(bench.state.node.failure().expected(), "off");
  EXPECT_EQ(bench.state.node.step(), journal::CREDENTIALED);
  EXPECT_EQ(bench.state.node.hold(), journal::HOLD_NONE);
  EXPECT_EQ(bench.device->count_acts("password root"), 0U);
  EXPECT_EQ(bench.device->accounts.size(), 3U);
}

TEST(release, gives_back_a_password_that_was_changed_on_demand_before_the_tray_was_known) {
  tray_bench bench;
  bench.device->change_required_of = "root";
  bench.device->identity.serial = "SN2";
  bench.start();
  bench.aim(journal::CREDENTIALED);
  ASSERT_TRUE(bench.fails());
  EXPECT_EQ(bench.fault(), "IDENTITY_SERIAL_MISMATCH");
  bench.device->change_required_of.clear();
  hand_back(bench);
  ASSERT_TRUE(is_released(bench)) << bench.fault() << bench.state.node.failure().message();
  EXPECT_EQ(bench.device->accounts.at("root").password, "factory");
}

TEST(release, an_account_that_stays_listed_is_not_called_gone) {
  tray_bench bench;
  bench.start_at(journal::CREDENTIALED);
  bench.scripts[call_op::delete_interlock_account] = [](const call&) {
    return scripted_answer{absl::OkStatus(), std::monostate{}};
  };
  hand_back(bench);
  ASSERT_TRUE(bench.fails());
  EXPECT_EQ(bench.state.node.failure().seen(), interlock_account(rack_uid));
  EXPECT_EQ(bench.state.node.hold(), journal::RELEASING);
  bench.scripts.clear();
  hand_back(bench);
  EXPECT_TRUE(is_released(bench)) << bench.fault();
  EXPECT_EQ(bench.device->accounts.size(), 1U);
}

TEST(release, a_released_tray_is_left_alone_until_a_retry_or_a_bring_up) {
  for (const bool by_retry : {true, false}) {
    tray_bench bench;
    bench.start_at(journal::CREDENTIALED);
    hand_back(bench);
    ASSERT_TRUE(is_released(bench));
    const std::size_t calls = bench.calls.size();
    bench.aim(journal::PRODUCTION);
    bench.settle();
    bench.crash();
    bench.settle();
    EXPECT_EQ(bench.calls.size(), calls);
    EXPECT_EQ(bench.state.node.step(), journal::DECLARED);
    if (by_retry) {
      bench.give(retry{journal::NODE_STEP_UNSPECIFIED, "operations/8"});
    } else {
      bench.give(rack_view{journal::CREDENTIALED, "operations/8", true});
    }
    bench.run_until([&bench] { return bench.state.node.hold() == journal::HOLD_NONE; });
    ASSERT_TRUE(bench.run_until([&bench] { return bench.state.node.step() >= journal::CREDENTIALED; }))
        << bench.fault();
    EXPECT_EQ(bench.device->accounts.size(), 3U);
    EXPECT_FALSE(bench.stored.facts().contains("interlock_pin"));
  }
}

// Wherever the handing back stopped, taking over again makes each account and change at most once more.
TEST(release, a_retry_halfway_takes_over_again_from_every_crash_window) {
  for (int at = 1;; ++at) {
    tray_bench bench;
    bench.start_at(journal::CREDENTIALED);
    hand_back(bench);
    bench.power_cut(at, cut::after_effects);
    bench.run_until([&bench] { return bench.crashes > 0 || bench.state.node.hold() == journal::RELEASED; });
    if (bench.crashes == 0) break;
    bench.give(retry{journal::NODE_STEP_UNSPECIFIED, "operations/8"});
    bench.run_until([&bench] { return bench.state.node.hold() == journal::HOLD_NONE; });
    SCOPED_TRACE(at);
    ASSERT_TRUE(bench.reaches(journal::CREDENTIALED))
        << bench.fault() << bench.state.node.failure().message();
    bench.settle();
    EXPECT_EQ(bench.device->accounts.size(), 3U);
    EXPECT_EQ(bench.device->accounts.at("root").password, bench.vault.at(breakglass_secret(bench.stored)));
    EXPECT_EQ(bench.stored.intents_size(), 0) << bench.stored.intents(0).id();
    EXPECT_LE(bench.device->count_acts("refused root") +
                  bench.device->count_acts("refused " + own_account(rack_uid)),
              2U);
  }
}

}  // namespace
}  // namespace busbar::node::test
