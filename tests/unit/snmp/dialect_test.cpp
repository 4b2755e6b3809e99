#include "actors/devices/snmp/dialect.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace busbar::devices::snmp {
namespace {

using ::testing::HasSubstr;

dialect shipped(std::string_view name) {
  const auto parsed = parse_dialect(*shipped_dialect(name), name);
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  return *parsed;
}

TEST(snmp_dialect, every_shipped_dialect_is_right) {
  ASSERT_GE(shipped_dialects().size(), 4U);
  for (const std::string_view name : shipped_dialects()) EXPECT_EQ(shipped(name).name, name);
}

// The families differ in what they answer and in what they want: the codes are never carried over.
TEST(snmp_dialect, codes_of_each_family_are_its_own) {
  EXPECT_EQ(state_of(shipped("raritan_pdu2"), 7), outlet_state::on);
  EXPECT_EQ(state_of(shipped("raritan_pdu2"), 8), outlet_state::off);
  EXPECT_EQ(state_of(shipped("raritan_pdu2"), 1), outlet_state::unknown);
  EXPECT_EQ(state_of(shipped("servertech_sentry3"), 0), outlet_state::off);
  EXPECT_EQ(state_of(shipped("apc_rpdu2"), 0), outlet_state::unknown);
  EXPECT_EQ(shipped("vertiv_geist").control_off, 4);
  EXPECT_EQ(state_of(shipped("vertiv_geist"), 2), outlet_state::off);
}

TEST(snmp_dialect, indexes_are_built_as_the_family_builds_them) {
  const dialect raritan = shipped("raritan_pdu2");
  EXPECT_EQ(oid_of(raritan, raritan.state_oid, 2, 17), "1.3.6.1.4.1.13742.6.4.1.2.1.3.2.17");
  const dialect sentry = shipped("servertech_sentry3");
  EXPECT_EQ(oid_of(sentry, sentry.control_oid, 1, 4), "1.3.6.1.4.1.1718.3.2.3.1.11.1.1.4");
}

TEST(snmp_dialect, every_error_of_a_file_is_told_at_once) {
  const auto parsed = parse_dialect(R"({"name": "x", "colour": 1, "index": "{pdu}",
    "control": {"oid": "1..3", "on": 1, "off": 1}, "state": {"oid": "1.3", "on": [1], "off": [1, "2"]},
    "power_w": {"oid": "1.3.", "scale": -1}})",
                                    "x.json");
  ASSERT_FALSE(parsed.ok());
  const std::string text(parsed.status().message());
  for (const char* part : {"colour", "control.oid", "on and off are the same", "code 1 means on and off",
                           "state.off", "power_w.oid", "power_w.scale", "{outlet} is missing"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
}

}  // namespace
}  // namespace busbar::devices::snmp
