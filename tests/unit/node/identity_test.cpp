// Who the device is against who the manifest says: every difference is named with both values, and that tray
// stops.
#include <gtest/gtest.h>

#include "actors/node/identity_logic.hpp"
#include "tests/unit/node/tray_bench.hpp"

namespace busbar::node::test {
namespace {

struct stopped {
  std::string fault, expected, seen;
};

stopped identify(const std::function<void(tray_bench&)>& change) {
  tray_bench bench;
  change(bench);
  bench.start_at(journal::DISCOVERED);
  bench.aim(journal::CREDENTIALED);
  EXPECT_TRUE(bench.fails());
  EXPECT_LT(bench.state.node.step(), journal::IDENTIFIED);
  EXPECT_EQ(bench.device->count_acts("password root"), 0U);
  EXPECT_EQ(bench.device->accounts.size(), 1U) << "an account was made on a tray that is not ours";
  const journal::Failure& failure = bench.state.node.failure();
  return {failure.fault(), failure.expected(), failure.seen()};
}

TEST(identity, names_a_wrong_serial_with_both_values) {
  const auto stop = identify([](tray_bench& bench) { bench.device->identity.serial = "SN999"; });
  EXPECT_EQ(stop.fault, "IDENTITY_SERIAL_MISMATCH");
  EXPECT_EQ(stop.expected, "SN1");
  EXPECT_EQ(stop.seen, "SN999");
}

TEST(identity, takes_no_placeholder_for_a_serial) {
  for (const char* text : {"NA", "n/a", "", "0123456789", "To be filled by O.E.M.", "0000000", "XXXXXXX",
                           "None", "Default string"}) {
    const auto stop = identify([text](tray_bench& bench) { bench.device->identity.serial = text; });
    EXPECT_EQ(stop.fault, "IDENTITY_SERIAL_PLACEHOLDER") << text;
    EXPECT_EQ(stop.expected, "SN1");
    EXPECT_EQ(stop.seen, '"' + std::string(text) + '"');
  }
  const auto stop = identify([](tray_bench& bench) { bench.device->identity.serial.reset(); });
  EXPECT_EQ(stop.fault, "IDENTITY_SERIAL_PLACEHOLDER");
  EXPECT_EQ(stop.seen, "nothing");
  EXPECT_FALSE(is_placeholder_serial("SN1830001"));
}

TEST(identity, names_a_tray_in_the_wrong_slot) {
  const auto stop = identify([](tray_bench& bench) { bench.device->identity.slot = "c08"; });
  EXPECT_EQ(stop.fault, "IDENTITY_WRONG_SLOT");
  EXPECT_EQ(stop.expected, "c07");
  EXPECT_EQ(stop.seen, "c08");
}

TEST(identity, names_another_owner_and_touches_nothing) {
  tray_bench bench;
  bench.device->accounts["busbar-ffffffff"] = {"theirs", "Administrator"};
  bench.start_at(journal::DISCOVERED);
  bench.aim(journal::CREDENTIALED);
  ASSERT_TRUE(bench.fails());
  EXPECT_EQ(bench.fault(), "OWNED_ELSEWHERE");
  EXPECT_EQ(bench.state.node.failure().seen(), "busbar-ffffffff");
  EXPECT_EQ(bench.state.node.failure().expected(), own_account(rack_uid));
  EXPECT_EQ(bench.device->count_acts("password root"), 0U);
}

TEST(identity, knows_its_own_accounts_from_anothers) {
  const std::vector<devices::account_facts> ours{{"", own_account(rack_uid), "", {}, {}},
                                                 {"", interlock_account(rack_uid), "", {}, {}},
                                                 {"", "busbar-operator", "", {}, {}},
                                                 {"", "root", "", {}, {}}};
  EXPECT_FALSE(foreign_owner(ours, rack_uid).has_value());
  EXPECT_EQ(foreign_owner({{"", "busbar-12345678-il", "", {}, {}}}, rack_uid), "busbar-12345678-il");
}

TEST(identity, the_same_bmc_at_two_addresses_stops_the_tray_before_any_login) {
  tray_bench bench;
  bench.start();
  bench.state.node.mutable_identity()->clear_address();
  bench.aim(journal::CREDENTIALED);
  bench.give(endpoint_conflict{core::fault::IDENTITY_DUPLICATE, "announced twice", "one address",
                               "127.18.1.7 and 127.18.1.9"});
  ASSERT_TRUE(bench.fails());
  EXPECT_EQ(bench.fault(), "IDENTITY_DUPLICATE");
  EXPECT_EQ(bench.state.node.failure().seen(), "127.18.1.7 and 127.18.1.9");
  EXPECT_TRUE(bench.calls.empty());
}

TEST(identity, a_member_nobody_announced_gets_no_password) {
  tray_bench bench;
  bench.start();
  bench.state.node.mutable_identity()->clear_address();
  bench.aim(journal::CREDENTIALED);
  ASSERT_TRUE(bench.fails());
  EXPECT_EQ(bench.fault(), "BMC_UNREACHABLE");
  EXPECT_TRUE(bench.calls.empty());
}

TEST(identity, probing_needs_no_login) {
  tray_bench bench;
  bench.start();
  ASSERT_TRUE(bench.reaches(journal::DISCOVERED));
  EXPECT_TRUE(bench.device->acts.empty());
  EXPECT_EQ(bench.state.node.identity().pin_sha256(), bench.device->certificate);
}

TEST(identity, a_changed_certificate_means_no_login) {
  tray_bench bench;
  bench.start_at(journal::DISCOVERED);
  bench.device->certificate = "bb22";
  bench.aim(journal::CREDENTIALED);
  ASSERT_TRUE(bench.fails());
  EXPECT_EQ(bench.fault(), "CERTIFICATE_CHANGED");
  EXPECT_TRUE(bench.device->acts.empty());
}

TEST(identity, a_changed_certificate_stops_a_tray_that_was_known_and_trust_lets_it_go_on) {
  tray_bench bench;
  bench.start_at(journal::CREDENTIALED);
  ASSERT_TRUE(bench.reaches(journal::STAGED));
  bench.device->certificate = "bb22";
  bench.aim(journal::INSPECTED);
  ASSERT_TRUE(bench.fails());
  EXPECT_EQ(bench.fault(), "CERTIFICATE_CHANGED");
  bench.heal(trust_pin{"bb22", "renewed by the vendor"});
  EXPECT_TRUE(bench.reaches(journal::INSPECTED)) << bench.fault();
  EXPECT_TRUE(bench.told("pin_trusted", "renewed by the vendor"));
}

// The manifest comes to mean another tray: applied, the member's actor begins again with the new row.
void declare(tray_bench& bench, const std::function<void(journal::Member&)>& change) {
  change(*bench.stored.mutable_spec());
  bench.crash();
}

TEST(identity, a_changed_row_is_compared_at_once_at_every_step_and_takes_the_tray_out_of_production) {
  for (int step = journal::IDENTIFIED; step <= journal::PRODUCTION; ++step) {
    tray_bench bench;
    bench.start_at(static_cast<journal::NodeStep>(step));
    bench.aim(static_cast<journal::NodeStep>(step));
    bench.settle();
    ASSERT_FALSE(bench.state.node.has_failure()) << bench.fault();
    const auto acts = bench.device->acts;
    const auto power = bench.device->power;
    declare(bench, [](journal::Member& row) { row.set_serial("SN2"); });
    ASSERT_TRUE(bench.fails()) << journal::NodeStep_Name(static_cast<journal::NodeStep>(step));
    const journal::Failure& failure = bench.stored.failure();
    EXPECT_EQ(failure.fault(), "IDENTITY_SERIAL_MISMATCH");
    EXPECT_EQ(failure.expected(), "SN2");
    EXPECT_EQ(failure.seen(), "SN1");
    EXPECT_EQ(failure.step(), journal::IDENTIFIED);
    EXPECT_LE(bench.stored.step(), journal::CREDENTIALED);
    bench.settle();
    EXPECT_EQ(bench.device->acts, acts) << "nothing was asked of the device";
    EXPECT_EQ(bench.device->power, power) << "energy stays as it is";
  }
}

TEST(identity, a_changed_slot_is_compared_with_what_the_tray_said) {
  tray_bench bench;
  bench.start();
  ASSERT_TRUE(bench.reaches(journal::INSPECTED)) << bench.fault();
  declare(bench, [](journal::Member& row) { row.set_slot("c08"); });
  ASSERT_TRUE(bench.fails());
  EXPECT_EQ(bench.fault(), "IDENTITY_WRONG_SLOT");
  EXPECT_EQ(bench.state.node.failure().expected(), "c08");
  EXPECT_EQ(bench.state.node.failure().seen(), "c07");
}

TEST(identity, a_row_that_means_another_tray_is_mended_by_the_row_or_by_the_tray) {
  for (const bool by_row : {true, false}) {
    for (const auto step : {journal::IDENTIFIED, journal::PRODUCTION}) {
      tray_bench bench;
      bench.start_at(step);
      bench.aim(step);
      bench.settle();
      declare(bench, [](journal::Member& row) { row.set_serial("SN2"); });
      ASSERT_TRUE(bench.fails());
      if (by_row) {
        declare(bench, [](journal::Member& row) { row.set_serial("SN1"); });
        bench.settle();
      } else {
        bench.device->identity.serial = "SN2";
      }
      bench.heal(retry{});
      EXPECT_TRUE(bench.run_until([&bench, step] {
        return bench.state.node.step() >= std::min(step, journal::CREDENTIALED) ||
               bench.state.node.has_failure();
      }));
      EXPECT_NE(bench.fault(), "IDENTITY_SERIAL_MISMATCH") << by_row;
    }
  }
}

TEST(identity, a_tray_of_another_row_can_still_be_turned_off) {
  tray_bench bench;
  bench.start_at(journal::PRODUCTION);
  bench.aim(journal::PRODUCTION);
  declare(bench, [](journal::Member& row) { row.set_serial("SN2"); });
  ASSERT_TRUE(bench.fails());
  EXPECT_EQ(bench.device->power, journal::POWER_ON);
  bench.aim(journal::CREDENTIALED);
  bench.settle();
  EXPECT_EQ(bench.device->power, journal::POWER_OFF);
}

TEST(identity, another_certificate_is_named_with_both_pins_wherever_it_is_met) {
  for (const call_op met : {call_op::login_factory, call_op::identify, call_op::list_accounts}) {
    tray_bench bench;
    bench.start_at(journal::DISCOVERED);
    bench.scripts[met] = [&bench](const call&) -> std::optional<scripted_answer> {
      bench.device->certificate = "bb22";
      return std::nullopt;
    };
    bench.aim(journal::STAGED);
    ASSERT_TRUE(bench.fails()) << name_of(met);
    EXPECT_EQ(bench.fault(), "CERTIFICATE_CHANGED");
    EXPECT_EQ(bench.state.node.failure().expected(), "aa11") << name_of(met);
    EXPECT_EQ(bench.state.node.failure().seen(), "bb22") << name_of(met);
  }
}

TEST(identity, trusting_a_pin_arms_the_interlock_with_it) {
  tray_bench bench;
  bench.start_at(journal::CREDENTIALED);
  ASSERT_TRUE(bench.reaches(journal::STAGED));
  bench.device->certificate = "bb22";
  bench.arming = absl::UnavailableError("the interlock is away");
  bench.heal(trust_pin{"bb22", "renewed"});
  bench.run_until([&bench] { return !bench.stored.access().interlock_armed(); });
  EXPECT_FALSE(bench.stored.access().interlock_armed());
  bench.arming = absl::OkStatus();
  EXPECT_TRUE(bench.reaches(journal::INSPECTED)) << bench.fault();
  EXPECT_TRUE(bench.stored.access().interlock_armed());
}

TEST(identity, a_row_without_a_serial_is_known_by_mac_and_slot_even_if_the_bmc_says_na) {
  tray_bench bench;
  bench.state.node.mutable_spec()->clear_serial();
  bench.device->identity.serial = "NA";
  bench.start();
  EXPECT_TRUE(bench.reaches(journal::STAGED))
      << bench.fault() << ": " << bench.state.node.failure().message();
}

}  // namespace
}  // namespace busbar::node::test
