#include "daemon/busbard/rpc/point_names.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace busbar::rpc {
namespace {

TEST(point_names, are_aip_names_outside_and_short_inside) {
  const std::map<std::string, std::string> same = {
      {"r01/flow", "racks/r01/flow"},
      {"r01/c07/gpu0/power", "racks/r01/nodes/c07/gpu0/power"},
      {"r01/s03/power", "racks/r01/nodes/s03/power"},
      {"r01/p01/psu2/output_power", "racks/r01/shelves/p01/psu2/output_power"},
      {"r01/m01/x", "racks/r01/controllers/m01/x"},
      {"r01/valves/supply/position", "racks/r01/valves/supply/position"},
      {"r01/pdus/u01/1/power", "racks/r01/pdus/u01/1/power"},
      {"cdu01/pump1/speed", "cdus/cdu01/pump1/speed"},
      {"cdu01/r01/flow", "cdus/cdu01/r01/flow"},
  };
  for (const auto& [inside, outside] : same) {
    EXPECT_EQ(public_point(inside), outside);
    EXPECT_EQ(short_point(outside), inside);
    EXPECT_EQ(short_point(inside), inside);
    EXPECT_EQ(public_point(outside), outside);
  }
}

TEST(point_names, the_beginning_of_one_is_the_beginning_of_its_short_form) {
  EXPECT_EQ(short_point("racks/r01"), "r01");
  EXPECT_EQ(short_point("racks/r01/nodes/c0"), "r01/c0");
  EXPECT_EQ(short_point("racks/r01/nodes"), "r01/");
  EXPECT_EQ(short_point("cdus/"), "cdu");
  EXPECT_EQ(short_point(""), "");
}

}  // namespace
}  // namespace busbar::rpc
