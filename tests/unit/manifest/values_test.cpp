#include "actors/manifest/values.hpp"

#include <gtest/gtest.h>

#include "actors/manifest/names.hpp"

namespace busbar::manifest {
namespace {

using namespace std::chrono_literals;

TEST(values, durations_are_read_with_their_units) {
  EXPECT_EQ(parse_duration("10m"), 10min);
  EXPECT_EQ(parse_duration("120s"), 120s);
  EXPECT_EQ(parse_duration("200ms"), 200ms);
  EXPECT_EQ(parse_duration("3h"), 3h);
  EXPECT_EQ(parse_duration("1h30m"), 90min);
  EXPECT_EQ(parse_duration("1.5s"), 1500ms);
  EXPECT_EQ(parse_duration("0s"), 0s);
}

TEST(values, durations_without_a_unit_or_below_zero_are_none) {
  for (const char* text :
       {"", "10", "-1s", "s", "1 s", "1x", "nan", "infs", "1e3s", "99999h", "1s ", "..s"}) {
    EXPECT_EQ(parse_duration(text), std::nullopt) << text;
  }
}

TEST(values, a_duration_is_written_so_that_it_is_read_back) {
  for (const auto duration :
       std::initializer_list<std::chrono::nanoseconds>{0s, 200ms, 90s, 90min, 3h, 1500ms, 1ns}) {
    EXPECT_EQ(parse_duration(duration_text(duration)), duration);
  }
  EXPECT_EQ(duration_text(90min), "1h30m");
}

TEST(values, endpoints_and_ranges_need_a_port) {
  for (const char* good : {"127.18.1.250:7443", "cdu01.site:8443", "[fe80::1]:8443"})
    EXPECT_FALSE(check_endpoint(good)) << good;
  for (const char* bad : {"127.18.1.250", "127.18.1.250:0", "127.18.1.250:70000", ":8443", "a b:1",
                          "fe80::1:8443", "1.2.3:80"}) {
    EXPECT_TRUE(check_endpoint(bad)) << bad;
  }
  EXPECT_FALSE(check_range("127.18.1.0/24:8443"));
  for (const char* bad :
       {"127.18.1.0/24", "127.18.1.0:8443", "127.0.0.0/8:8443", "127.18.1.0/33:8443", "x/24:8443"}) {
    EXPECT_TRUE(check_range(bad)) << bad;
  }
}

TEST(values, paths_do_not_leave_the_site_folder) {
  for (const char* good : {"site/factory.pw", "a..b/c", "x"}) EXPECT_FALSE(check_site_path(good)) << good;
  for (const char* bad : {"", "/etc/shadow", "../x", "a/../../x", "a/.."})
    EXPECT_TRUE(check_site_path(bad)) << bad;
}

TEST(names, both_spellings_name_the_same_thing) {
  EXPECT_EQ(long_name("r01"), "racks/r01");
  EXPECT_EQ(long_name("r01/c07"), "racks/r01/nodes/c07");
  EXPECT_EQ(long_name("r01/p01"), "racks/r01/shelves/p01");
  EXPECT_EQ(long_name("r01/m01"), "racks/r01/controllers/m01");
  EXPECT_EQ(long_name("r01/u01"), "racks/r01/pdus/u01");
  EXPECT_EQ(long_name("r01/supply"), "racks/r01/valves/supply");
  EXPECT_EQ(long_name("r01/ops/12"), "racks/r01/operations/12");
  EXPECT_EQ(long_name("r01/endpoints/127.18.1.7"), "racks/r01/endpoints/127.18.1.7");
  EXPECT_EQ(long_name("racks/r01/nodes/c07"), "racks/r01/nodes/c07");
  for (const char* bad : {"", "/", "r01/", "r01/x", "r01/c07/x", "r01/foo/1"})
    EXPECT_EQ(long_name(bad), std::nullopt) << bad;
  for (const char* name : {"r01/c07", "r01/p01", "r01/s09", "r01/m01", "r01/u01", "r01/supply"}) EXPECT_EQ(short_name(*long_name(name)), name);
  EXPECT_EQ(short_name("racks/r01/operations/12"), "r01/operations/12");
  EXPECT_EQ(operation_name("r01", "operations/12"), "racks/r01/operations/12");
  EXPECT_EQ(operation_id("racks/r01/operations/12"), "operations/12");
}

TEST(values, one_host_has_one_spelling) {
  for (const char* same : {"127.18.1.1", "127.18.1.1:443", "127.18.1.1:8443"})
    EXPECT_EQ(host_of(same), "127.18.1.1");
  for (const char* same : {"fd00::1", "[fd00::1]:443", "FD00:0:0:0::1", "[FD00:0::0:1]:8443"})
    EXPECT_EQ(host_of(same), "fd00::1") << same;
  EXPECT_EQ(host_of("BMC-7.lab:443"), host_of("bmc-7.lab"));
  EXPECT_NE(host_of("127.18.1.1"), host_of("127.18.1.11"));
  EXPECT_EQ(host_of("[fd00::1"), "fd00::1") << "no end of the bracket is no end of the program";
  EXPECT_EQ(host_of(""), "");
}

}  // namespace
}  // namespace busbar::manifest
