// busbar diff: every difference that the daemon tells of a member is a row, whichever part of the answer has it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/cli/fake_daemon.hpp"

namespace busbar::cli {
namespace {

using testing::fake_daemon;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::sample_node;
using testing::sample_rack;
using testing::site;

class diff_nodes : public ::testing::Test {
 protected:
  diff_nodes() {
    r01.racks["racks/r01"] = sample_rack("r01");
    const v1::Node node = sample_node("r01", "c01");
    r01.nodes[node.name()] = node;
  }
  v1::Node& node() { return r01.nodes.begin()->second; }
  void fail(const std::string& fault, const std::string& expected, const std::string& seen) {
    v1::Failure& failure = *node().mutable_status()->mutable_failure();
    failure.set_fault(fault);
    failure.set_message("in its own words");
    failure.set_expected(expected);
    failure.set_seen(seen);
  }
  auto diff() { return here.busbar({"diff", "nodes", "r01/c01"}); }

  site here;
  fake_daemon r01{here.folder(), "r01"};
};

TEST_F(diff_nodes, a_failure_that_carries_both_values_is_a_row) {
  for (const char* fault : {"INVENTORY_MISSING", "INVENTORY_WRONG", "FIRMWARE_UNCHANGED", "CONFIG_DRIFT",
                            "IDENTITY_WRONG_SLOT", "NVLINK_LINK_COUNT", "SUITE_BELOW_LIMIT", "CERTIFICATE_CHANGED"}) {
    fail(fault, "what was wanted", "what was found");
    const auto shown = diff();
    EXPECT_EQ(shown.code, exit_code::no) << fault;
    EXPECT_THAT(shown.out, AllOf(HasSubstr(fault), HasSubstr("what was wanted"), HasSubstr("what was found")));
  }
}

TEST_F(diff_nodes, a_value_that_is_not_there_is_said_to_be_nothing) {
  fail("INVENTORY_MISSING", "gpu x 4", "");
  EXPECT_THAT(diff().out, AllOf(HasSubstr("gpu x 4"), HasSubstr("(nothing)")));
}

TEST_F(diff_nodes, a_difference_without_values_shows_its_words) {
  fail("INVENTORY_INCOMPLETE", "", "");
  const auto shown = diff();
  EXPECT_EQ(shown.code, exit_code::no);
  EXPECT_THAT(shown.out, HasSubstr("in its own words"));
}

TEST_F(diff_nodes, a_failure_that_is_no_difference_is_none) {
  fail("BMC_UNREACHABLE", "", "");
  const auto shown = diff();
  EXPECT_EQ(shown.code, exit_code::done);
  EXPECT_EQ(shown.out, "");
}

TEST_F(diff_nodes, a_difference_that_has_a_row_already_is_not_shown_twice) {
  v1::Drift& drift = *node().mutable_status()->add_drift();
  drift.set_attribute("SriovEnable");
  drift.set_expected("true");
  drift.set_seen("false");
  fail("CONFIG_DRIFT", "true", "false");
  const auto shown = diff();
  EXPECT_THAT(shown.out, AllOf(HasSubstr("SriovEnable"), Not(HasSubstr("CONFIG_DRIFT"))));
  fail("CONFIG_DRIFT", "true", "Auto");
  EXPECT_THAT(diff().out, AllOf(HasSubstr("SriovEnable"), HasSubstr("CONFIG_DRIFT"), HasSubstr("Auto")));
}

TEST_F(diff_nodes, a_standing_condition_that_names_a_difference_is_a_row) {
  v1::Condition& condition = *node().add_conditions();
  condition.set_type("CONFIG_DRIFT");
  condition.set_message("BIOS SriovEnable is false, the baseline says true");
  condition.set_health(v1::HEALTH_BAD);
  EXPECT_EQ(diff().code, exit_code::no);
  EXPECT_THAT(diff().out, HasSubstr("SriovEnable is false"));
  condition.set_health(v1::HEALTH_UNKNOWN);
  EXPECT_EQ(diff().code, exit_code::unknown);
  condition.set_health(v1::HEALTH_GOOD);
  EXPECT_EQ(diff().code, exit_code::done);
}

}  // namespace
}  // namespace busbar::cli
