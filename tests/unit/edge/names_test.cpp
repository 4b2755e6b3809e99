#include "daemon/busbard/rpc/names.hpp"

#include <gtest/gtest.h>

namespace busbar::rpc {
namespace {

TEST(names, take_either_spelling) {
  EXPECT_EQ(short_name("racks/r01"), "r01");
  EXPECT_EQ(short_name("racks/r01/nodes/c07"), "r01/c07");
  EXPECT_EQ(short_name("racks/r01/shelves/p01"), "r01/p01");
  EXPECT_EQ(short_name("racks/r01/endpoints/127.18.1.7"), "r01/endpoints/127.18.1.7");
  EXPECT_EQ(short_name("racks/r01/operations/12"), "operations/12");
  EXPECT_EQ(short_name("r01/operations/12"), "operations/12");
  EXPECT_EQ(short_name("r01/c07"), "r01/c07");
  EXPECT_EQ(short_name("r01"), "r01");
}

TEST(names, are_public_in_answers) {
  EXPECT_EQ(public_name("r01", "r01"), "racks/r01");
  EXPECT_EQ(public_name("r01/c07", "r01"), "racks/r01/nodes/c07");
  EXPECT_EQ(public_name("r01/s01", "r01"), "racks/r01/nodes/s01");
  EXPECT_EQ(public_name("r01/p01", "r01"), "racks/r01/shelves/p01");
  EXPECT_EQ(public_name("r01/endpoints/127.18.1.7", "r01"), "racks/r01/endpoints/127.18.1.7");
  EXPECT_EQ(public_name("operations/12", "r01"), "racks/r01/operations/12");
  EXPECT_EQ(public_name("", "r01"), "");
}

TEST(names, a_scope_holds_itself_and_what_is_under_it_only) {
  EXPECT_TRUE(is_within("r01/c07", "r01"));
  EXPECT_TRUE(is_within("r01", "r01"));
  EXPECT_TRUE(is_within("r01", ""));
  EXPECT_FALSE(is_within("r011", "r01"));
  EXPECT_FALSE(is_within("r02/c07", "r01"));
  EXPECT_EQ(short_parent("racks/-"), "");
  EXPECT_EQ(short_parent("racks/r01"), "r01");
}

}  // namespace
}  // namespace busbar::rpc
