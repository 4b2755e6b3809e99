// Taking over a BMC's credentials: below the lock-out, never locked out, and the same two accounts and one
// password change wherever the power is cut.
#include <gtest/gtest.h>

#include "tests/unit/node/tray_bench.hpp"

namespace busbar::node::test {
namespace {

// orphans: sessions whose URI was on its way when the power went.
void expect_taken_over(const tray_bench& bench, std::size_t orphans = 0) {
  const devices::fake_device& device = *bench.device;
  EXPECT_EQ(device.count_acts("create " + own_account(rack_uid)), 1U);
  EXPECT_EQ(device.count_acts("create " + interlock_account(rack_uid)), 1U);
  EXPECT_EQ(device.count_acts("password root"), 1U);
  EXPECT_EQ(device.accounts.at("root").password, bench.vault.at(breakglass_secret(bench.stored)));
  EXPECT_EQ(device.accounts.at(own_account(rack_uid)).password, bench.vault.at(own_secret(bench.stored)));
  EXPECT_EQ(device.accounts.at(own_account(rack_uid)).role, "Administrator");
  EXPECT_EQ(device.accounts.at(interlock_account(rack_uid)).role, "Operator");
  const journal::Access& access = bench.stored.access();
  EXPECT_TRUE(access.account_created() && access.interlock_account_created() &&
              access.factory_password_changed());
  EXPECT_TRUE(access.interlock_armed());
  EXPECT_EQ(bench.stored.intents_size(), 0) << bench.stored.intents(0).id();
  EXPECT_LE(device.sessions.size(), 1U + orphans) << "sessions were left behind";
}

TEST(credentials, two_accounts_then_one_password_change) {
  tray_bench bench;
  bench.start();
  ASSERT_TRUE(bench.reaches(journal::CREDENTIALED)) << bench.fault();
  expect_taken_over(bench);
  const auto& acts = bench.device->acts;
  const auto at = [&acts](const std::string& act) {
    return std::find(acts.begin(), acts.end(), act) - acts.begin();
  };
  EXPECT_LT(at("create " + own_account(rack_uid)), at("create " + interlock_account(rack_uid)));
  EXPECT_LT(at("create " + interlock_account(rack_uid)), at("password root"));
}

TEST(credentials, passwords_are_in_the_vault_before_the_bmc_is_asked) {
  tray_bench bench;
  bench.start_at(journal::IDENTIFIED);
  bench.scripts[call_op::create_own_account] = [&bench](const call&) -> std::optional<scripted_answer> {
    EXPECT_TRUE(bench.vault.contains(own_secret(bench.stored)) &&
                bench.vault.contains(interlock_secret(bench.stored)) &&
                bench.vault.contains(breakglass_secret(bench.stored)));
    return std::nullopt;
  };
  EXPECT_TRUE(bench.reaches(journal::CREDENTIALED));
  EXPECT_EQ(bench.calls_of(call_op::create_own_account), 1U);
}

TEST(credentials, the_factory_password_is_changed_only_after_the_interlock_is_armed) {
  tray_bench bench;
  bench.arming = absl::FailedPreconditionError("no");
  bench.start();
  bench.aim(journal::CREDENTIALED);
  ASSERT_TRUE(bench.fails());
  EXPECT_EQ(bench.device->count_acts("password root"), 0U);
}

TEST(credentials, a_refused_factory_login_is_named_and_tried_once) {
  tray_bench bench;
  bench.device->accounts["root"].password = "other";
  bench.start();
  bench.aim(journal::CREDENTIALED);
  ASSERT_TRUE(bench.fails());
  EXPECT_EQ(bench.fault(), "CREDENTIAL_FACTORY_REFUSED");
  EXPECT_EQ(bench.device->count_acts("refused root"), 1U);
  EXPECT_EQ(bench.stored.access().login_failures(), 1U);
}

TEST(credentials, logins_stop_before_the_lock_out_over_retries_and_restarts) {
  tray_bench bench;
  bench.device->accounts["root"].password = "other";
  bench.start();
  bench.aim(journal::CREDENTIALED);
  ASSERT_TRUE(bench.fails());
  for (int i = 0; i < 6; ++i) {
    bench.heal(retry{});
    ASSERT_TRUE(bench.fails());
    bench.crash();
  }
  EXPECT_EQ(bench.fault(), "CREDENTIAL_LOCKED_OUT");
  EXPECT_EQ(bench.device->count_acts("refused root"), 3U);
  bench.device->accounts["root"].password = "factory";
  bench.give(unlock_logins{"corrected"});
  bench.heal(retry{});
  EXPECT_TRUE(bench.reaches(journal::CREDENTIALED)) << bench.fault();
}

TEST(credentials, an_account_that_the_bmc_has_locked_is_called_locked) {
  for (const char* user : {"root", "own"}) {
    tray_bench bench;
    const bool own = std::string_view(user) == "own";
    bench.start_at(own ? journal::CREDENTIALED : journal::DISCOVERED);
    bench.device->accounts[own ? own_account(rack_uid) : "root"].locked = true;
    bench.aim(journal::STAGED);
    ASSERT_TRUE(bench.fails());
    EXPECT_EQ(bench.fault(), "CREDENTIAL_LOCKED_OUT") << user;
    EXPECT_FALSE(core::text_of(core::fault::CREDENTIAL_LOCKED_OUT).next_step.empty());
  }
}

// Whoever is let in says nothing of the others: a BMC counts by user.
TEST(credentials, a_good_login_of_one_user_does_not_forget_the_refusals_of_another) {
  tray_bench bench;
  bench.start_at(journal::IDENTIFIED);
  bench.scripts[call_op::set_factory_password] = [](const call&) {  // says yes, does nothing
    return scripted_answer{absl::OkStatus(), std::monostate{}};
  };
  bench.aim(journal::CREDENTIALED);
  ASSERT_TRUE(bench.fails());
  for (int i = 0; i < 6; ++i) {
    bench.heal(retry{});
    ASSERT_TRUE(bench.fails());
  }
  EXPECT_EQ(bench.fault(), "CREDENTIAL_LOCKED_OUT");
  EXPECT_LE(bench.device->count_acts("refused root"), 3U);
  EXPECT_EQ(bench.stored.access().login_failures(), 3U);
}

// A login that a driver tries by itself within another call, and the one after a BMC's restart, count as
// well.
TEST(credentials, every_refused_login_counts_whoever_tried_it) {
  tray_bench bench;
  bench.start_at(journal::CREDENTIALED);
  ASSERT_TRUE(bench.reaches(journal::STAGED)) << bench.fault();
  bench.device->accounts[own_account(rack_uid)].password = "changed by another";
  bench.device->sessions.clear();
  bench.aim(journal::PRODUCTION);
  ASSERT_TRUE(bench.fails());
  EXPECT_EQ(bench.stored.access().login_failures(), 1U);
  for (int i = 0; i < 6; ++i) {
    bench.heal(retry{});
    ASSERT_TRUE(bench.fails());
    if (i % 2 == 1) bench.crash();
  }
  EXPECT_EQ(bench.fault(), "CREDENTIAL_LOCKED_OUT");
  EXPECT_LE(bench.device->count_acts("refused " + own_account(rack_uid)), 3U);
}

TEST(credentials, a_demanded_password_change_comes_first_and_is_the_only_one) {
  tray_bench bench;
  bench.device->change_required_of = "root";
  bench.start();
  ASSERT_TRUE(bench.reaches(journal::CREDENTIALED)) << bench.fault();
  expect_taken_over(bench);
  EXPECT_EQ(bench.device->acts.at(1), "password root");
}

TEST(credentials, a_tray_that_demanded_a_change_and_is_another_one_keeps_its_password_in_the_vault) {
  tray_bench bench;
  bench.device->change_required_of = "root";
  bench.device->identity.serial = "SN2";
  bench.start();
  bench.aim(journal::CREDENTIALED);
  ASSERT_TRUE(bench.fails());
  EXPECT_EQ(bench.fault(), "IDENTITY_SERIAL_MISMATCH");
  EXPECT_EQ(bench.device->accounts["root"].password, bench.vault.at(breakglass_secret(bench.stored)));
}

TEST(credentials, an_unsure_demanded_change_is_settled_by_a_login) {
  for (const bool took : {true, false}) {
    tray_bench bench;
    bench.device->change_required_of = "root";
    bench.start();
    int left = 1;
    bench.scripts[call_op::set_factory_password] = [&](const call&) -> std::optional<scripted_answer> {
      if (left-- <= 0) return std::nullopt;
      if (took) {
        bench.device->accounts["root"].password = bench.vault.at(breakglass_secret(bench.stored));
        bench.device->change_required_of.clear();
        bench.device->acts.emplace_back("password root");
      }
      return scripted_answer{unreachable(), std::monostate{}};
    };
    ASSERT_TRUE(bench.reaches(journal::CREDENTIALED))
        << took << " " << bench.fault() << " " << bench.state.node.failure().message();
    expect_taken_over(bench);
  }
}

TEST(credentials, an_unsure_change_is_settled_by_a_login) {
  for (const bool took : {true, false}) {
    tray_bench bench;
    bench.start();
    int left = 1;
    bench.scripts[call_op::set_factory_password] = [&](const call&) -> std::optional<scripted_answer> {
      if (left-- <= 0) return std::nullopt;
      if (took) {
        bench.device->accounts["root"].password = bench.vault.at(breakglass_secret(bench.stored));
        bench.device->acts.emplace_back("password root");
      }
      return scripted_answer{unreachable(), std::monostate{}};
    };
    ASSERT_TRUE(bench.reaches(journal::CREDENTIALED)) << took << " " << bench.fault();
    expect_taken_over(bench);
  }
}

// Every crash window of the way to CREDENTIALED: after each commit, with and without what it was to be
// followed by.
void cut_everywhere(bool change_demanded) {
  for (const cut where : {cut::before_effects, cut::after_effects}) {
    for (int at = 1;; ++at) {
      tray_bench bench;
      if (change_demanded) bench.device->change_required_of = "root";
      bench.start();
      bench.power_cut(at, where);
      const bool arrived = bench.reaches(journal::CREDENTIALED);
      if (bench.crashes == 0) {
        EXPECT_GT(at, 8);
        break;
      }
      ASSERT_TRUE(arrived) << "cut at commit " << at << (where == cut::before_effects ? " before" : " after")
                           << " its effects: " << bench.fault() << " " << bench.state.node.failure().message()
                           << " waits for " << bench.state.node.waits_for();
      SCOPED_TRACE(at);
      expect_taken_over(bench, where == cut::after_effects ? 1 : 0);
      EXPECT_EQ(bench.stored.access().login_failures(), 0U);
    }
  }
}

TEST(credentials, every_crash_window_ends_with_two_accounts_and_one_change) {
  cut_everywhere(false);
}
TEST(credentials, every_crash_window_of_a_demanded_change_ends_with_two_accounts_and_one_change) {
  cut_everywhere(true);
}

TEST(credentials, reaching_them_again_makes_nothing_twice) {
  tray_bench bench;
  bench.start();
  ASSERT_TRUE(bench.reaches(journal::CREDENTIALED));
  bench.give(retry{journal::CREDENTIALED, "operations/2"});
  bench.run_until([&bench] { return bench.state.node.step() < journal::CREDENTIALED; });
  ASSERT_TRUE(bench.reaches(journal::CREDENTIALED)) << bench.fault();
  expect_taken_over(bench);
}

TEST(credentials, a_restarted_daemon_ends_its_old_session_first) {
  tray_bench bench;
  bench.start();
  ASSERT_TRUE(bench.reaches(journal::CREDENTIALED));
  const std::string old = bench.stored.access().session_uri();
  ASSERT_TRUE(bench.device->sessions.contains(old));
  bench.crash();
  ASSERT_TRUE(bench.reaches(journal::STAGED)) << bench.fault();
  EXPECT_FALSE(bench.device->sessions.contains(old));
  EXPECT_EQ(bench.device->sessions.size(), 1U);
}

}  // namespace
}  // namespace busbar::node::test
