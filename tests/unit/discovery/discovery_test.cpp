// From what is announced to members: foreign text in, and no BMC without a row gets a password.
#include <gtest/gtest.h>

#include "actors/discovery/discovery_logic.hpp"

namespace busbar::discovery {
namespace {

journal::Manifest manifest() {
  journal::Manifest out;
  out.set_rack("r01");
  out.mutable_discovery()->add_ranges("127.18.1.0/24:8443");
  for (int i = 1; i <= 2; ++i) {
    journal::Member& member = *out.add_members();
    member.set_slot("c0" + std::to_string(i));
    member.set_kind(journal::COMPUTE_TRAY);
    member.set_bmc_mac("02:18:01:00:00:0" + std::to_string(i));
  }
  return out;
}

const journal::Endpoint* endpoint_at(const sightings& seen, std::string_view address) {
  for (const journal::Endpoint& one : seen.endpoints) {
    if (one.address() == address) return &one;
  }
  return nullptr;
}

TEST(leases, good_lines_are_taken_and_bad_ones_counted) {
  std::size_t skipped = 0;
  const auto found = parse_leases(
      "1767225600 02:18:01:00:00:01 127.18.1.1 bmc-c01 *\n"
      "\r\n"
      "garbage\n"
      "0 02:18:01:00:00:0 127.18.1.2 short *\n"
      "0 02-18-01-00-00-02 127.18.1.2 dashes *\n"
      "0 02:18:01:00:00:02 127.18.1.256 octet *\n"
      "0 02:18:01:00:00:02 127.18.1 three *\n"
      "0 02:18:01:00:00:02 127.18.1.2.3 five *\n"
      "0 02:18:01:00:00:02 -1.18.1.2 sign *\n"
      "0 02:18:01:00:00:02\n"
      "duid 00:01:00:01\n"
      "\t0  0A:18:01:00:00:AF\t127.18.1.3\r\n",
      "lease:leases", &skipped);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].mac, "02:18:01:00:00:01");
  EXPECT_EQ(found[0].address, "127.18.1.1");
  EXPECT_EQ(found[0].source, "lease:leases");
  EXPECT_EQ(found[1].mac, "0a:18:01:00:00:af") << "lower case, whatever the file says";
  EXPECT_EQ(skipped, 9U);
}

TEST(leases, an_empty_or_binary_file_announces_nothing) {
  EXPECT_TRUE(parse_leases("", "x").empty());
  EXPECT_TRUE(parse_leases(std::string_view("\0\0\xff\n\0 \0 \0", 9), "x").empty());
}

TEST(ranges, hold_their_addresses_and_ports_and_leave_out_what_is_none) {
  journal::Discovery from;
  for (const char* text : {"127.18.1.0/24:8443", "10.0.0.8/32", "0.0.0.0/0:1", "10.0.0.0/33", "10.0.0/8",
                           "10.0.0.0", "10.0.0.0/8:70000", "/8"}) {
    from.add_ranges(text);
  }
  const auto ranges = parse_ranges(from);
  ASSERT_EQ(ranges.size(), 3U);
  EXPECT_TRUE(ranges[0].contains("127.18.1.255"));
  EXPECT_FALSE(ranges[0].contains("127.18.2.1"));
  EXPECT_FALSE(ranges[0].contains("c01"));
  EXPECT_EQ(ranges[0].port, 8443);
  EXPECT_TRUE(ranges[1].contains("10.0.0.8"));
  EXPECT_FALSE(ranges[1].contains("10.0.0.9"));
  EXPECT_EQ(ranges[1].port, 443);
  EXPECT_TRUE(ranges[2].contains("255.255.255.255"));
}

TEST(matching, the_mac_selects_one_row) {
  const auto seen = match(manifest(), {{"02:18:01:00:00:02", "127.18.1.77", "lease:leases"}});
  ASSERT_EQ(seen.members.size(), 1U);
  EXPECT_EQ(seen.members[0].slot, "c02");
  EXPECT_EQ(seen.members[0].address, "127.18.1.77:8443");
  EXPECT_EQ(seen.members[0].source, "lease:leases");
  EXPECT_EQ(endpoint_at(seen, "127.18.1.77")->state(), "matched");
  EXPECT_EQ(endpoint_at(seen, "127.18.1.77")->member(), "c02");
}

TEST(matching, a_bmc_without_a_row_is_shown_and_gets_no_password) {
  const auto seen = match(manifest(), {{"02:18:01:00:00:99", "127.18.1.99", "lease:leases"},
                                       {"02:18:01:00:00:98", "10.9.9.9", "lease:leases"}});
  EXPECT_TRUE(seen.members.empty());
  ASSERT_EQ(seen.endpoints.size(), 1U) << "an address outside this rack's ranges is another rack's matter";
  EXPECT_EQ(seen.endpoints[0].state(), "unmatched");
  EXPECT_EQ(seen.endpoints[0].name(), "r01/endpoints/127.18.1.99");
  EXPECT_EQ(seen.endpoints[0].seen(), "02:18:01:00:00:99");
}

TEST(matching, the_same_bmc_at_two_addresses_is_a_named_conflict_and_no_sighting) {
  const auto seen =
      match(manifest(), {{"02:18:01:00:00:01", "127.18.1.1", "a"}, {"02:18:01:00:00:01", "127.18.1.9", "b"}});
  EXPECT_TRUE(seen.members.empty());
  ASSERT_EQ(seen.conflicts.size(), 1U);
  EXPECT_EQ(seen.conflicts[0].slot, "c01");
  EXPECT_EQ(seen.conflicts[0].fault, core::fault::IDENTITY_DUPLICATE);
  EXPECT_EQ(seen.conflicts[0].expected, "one address");
  EXPECT_EQ(seen.conflicts[0].seen, "127.18.1.1 and 127.18.1.9");
  EXPECT_EQ(endpoint_at(seen, "127.18.1.1")->state(), "duplicate");
  EXPECT_EQ(endpoint_at(seen, "127.18.1.9")->state(), "duplicate");
}

TEST(matching, the_same_announcement_twice_is_no_conflict) {
  const auto seen =
      match(manifest(), {{"02:18:01:00:00:01", "127.18.1.1", "a"}, {"02:18:01:00:00:01", "127.18.1.1", "b"}});
  EXPECT_TRUE(seen.conflicts.empty());
  EXPECT_FALSE(seen.members.empty());
  for (const sighting& one : seen.members) EXPECT_EQ(one.address, "127.18.1.1:8443");
}

TEST(matching, a_fixed_address_is_tried_when_nobody_announces_it) {
  journal::Manifest fixed = manifest();
  fixed.mutable_members(0)->set_address("127.18.1.1");
  const auto seen = match(fixed, {});
  ASSERT_EQ(seen.members.size(), 1U);
  EXPECT_EQ(seen.members[0].address, "127.18.1.1:8443");
  EXPECT_EQ(seen.members[0].source, "manifest");
}

TEST(matching, a_fixed_address_at_which_another_mac_is_announced_is_not_that_member) {
  journal::Manifest fixed = manifest();
  fixed.mutable_members(0)->set_address("127.18.1.1");
  const auto seen = match(fixed, {{"02:18:01:00:00:99", "127.18.1.1", "lease:leases"}});
  EXPECT_TRUE(seen.members.empty());
  EXPECT_EQ(endpoint_at(seen, "127.18.1.1")->state(), "unmatched");
}

TEST(matching, a_manifest_mac_in_capitals_is_the_same_mac) {
  journal::Manifest capitals = manifest();
  capitals.mutable_members(0)->set_bmc_mac("02:18:01:00:00:AF");
  EXPECT_EQ(match(capitals, {{"02:18:01:00:00:af", "127.18.1.1", "x"}}).members.size(), 1U);
}

TEST(control_plane_cases, c11_a_bmc_that_no_row_names_is_never_silently_taken_for_one) {
  journal::Manifest fixed = manifest();
  fixed.mutable_members(0)->set_address("127.18.1.1");
  fixed.mutable_members(1)->set_address("127.18.1.2");
  // c01's BMC answers at c02's address and the other way round: the MAC decides, for both.
  const auto seen =
      match(fixed, {{"02:18:01:00:00:01", "127.18.1.2", "x"}, {"02:18:01:00:00:02", "127.18.1.1", "x"}});
  ASSERT_EQ(seen.members.size(), 2U);
  for (const sighting& one : seen.members)
    EXPECT_EQ(one.address, one.slot == "c01" ? "127.18.1.2:8443" : "127.18.1.1:8443");
}

}  // namespace
}  // namespace busbar::discovery
