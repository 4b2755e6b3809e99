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
