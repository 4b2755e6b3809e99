// A latch file that was put back or lost under a busbard that has seen more of it, and what a status is
// worth.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/interlock/operator_client.hpp"
#include "tests/unit/interlock/logic_rig.hpp"

namespace busbar::interlock {
namespace {

using ::testing::HasSubstr;

class lost_lines : public test::bench {
 protected:
  Status status() const {
    Status made;
    fill_status(interlock_, now_ms_, &made);
    return made;
  }
  bool any_gate_open() const {
    const Status now = status();
    return std::any_of(now.devices().begin(), now.devices().end(),
                       [](const DeviceStatus& each) { return each.gate_open(); });
  }
};

TEST_F(lost_lines, of_whatever_kind_close_every_gate_until_a_person_acknowledges) {
  for (const std::uint64_t seen : {1U, 2U, 7U, 5000U}) {
    interlock_ = {};
    interlock_.rack = "r01";
    file_.clear();
    arm();
    EXPECT_TRUE(any_gate_open());
    feed(lines_known{seen, 5});
    EXPECT_FALSE(any_gate_open());
    EXPECT_FALSE(status().armed_rack());
    EXPECT_FALSE(status().latch_file_ok());
    EXPECT_THAT(status().reason(), HasSubstr("busbard has seen " + std::to_string(seen)));
    EXPECT_EQ(status().last_record_number(), seen + 1) << "numbers go on above";
    ASSERT_TRUE(reset("*").ok());
    EXPECT_TRUE(any_gate_open());
    test::bench::read("r01/c02", test::all(DetectorReading::LEAK));
    EXPECT_GT(status().last_latch_number(), seen + 1) << "a new leak has a number that busbard imports";
  }
}

TEST_F(lost_lines, are_none_where_busbard_has_seen_no_more_than_there_is) {
  arm();
  read("r01/c01", test::all(DetectorReading::LEAK));
  const std::uint64_t last = status().last_record_number();
  const std::size_t lines = file_.size();
  for (std::uint64_t seen = 0; seen <= last; ++seen) feed(lines_known{seen, 5});
  EXPECT_EQ(file_.size(), lines);
  EXPECT_TRUE(status().latch_file_ok());
}

TEST_F(lost_lines, are_told_once_however_often_busbard_says_it) {
  arm();
  feed(lines_known{7, 5});
  const std::size_t lines = file_.size();
  feed(lines_known{7, 6});
  feed(lines_known{8, 7});
  EXPECT_EQ(file_.size(), lines);
}

TEST_F(lost_lines, that_the_disk_does_not_take_are_lost_all_the_same) {
  arm();
  disk_ = absl::UnavailableError("no space");
  feed(lines_known{7, 5});
  EXPECT_FALSE(any_gate_open());
  EXPECT_LT(status().last_record_number(), 7U) << "busbard still sees that they are missing";
  disk_ = absl::OkStatus();
  read("r01/c01", test::all(DetectorReading::DRY));
  EXPECT_EQ(status().last_record_number(), 8U);
}

TEST_F(lost_lines, keep_what_is_latched_latched_through_the_acknowledgement) {
  arm();
  read("r01/c01", test::all(DetectorReading::LEAK));
  go_off_and_dry("r01/c01");
  for (const char* dry : {"r01/c02", "r01/c03"}) read(dry, test::all(DetectorReading::DRY));
  feed(lines_known{70, 5});
  ASSERT_TRUE(reset("*").ok());
  EXPECT_TRUE(row("r01/c01").latched());
  EXPECT_FALSE(row("r01/c01").gate_open());
}

TEST_F(lost_lines, are_not_acknowledged_over_a_wet_tray_but_over_one_without_a_session) {
  arm();
  feed(lines_known{7, 5});
  feed(device_lost{"r01/c02", "no answer"});
  read("r01/c01", test::all(DetectorReading::UNKNOWN));
  EXPECT_TRUE(absl::IsFailedPrecondition(reset("*")));
  read("r01/c01", test::all(DetectorReading::LEAK));
  EXPECT_TRUE(absl::IsFailedPrecondition(reset("*")));
  read("r01/c01", test::all(DetectorReading::DRY));
  ASSERT_TRUE(reset("*").ok());
  EXPECT_FALSE(row("r01/c02").gate_open()) << "it was not read dry";
}

TEST_F(lost_lines, a_number_counts_once_it_is_on_disk) {
  arm();
  disk_ = absl::UnavailableError("no space");
  read("r01/c01", test::all(DetectorReading::LEAK));
  EXPECT_EQ(status().last_record_number(), 0U);
  disk_ = absl::OkStatus();
  read("r01/c01", test::all(DetectorReading::LEAK));
  EXPECT_GT(status().last_record_number(), 0U);
  Status again;
  fill_status(restarted(), now_ms_, &again);
  EXPECT_GE(again.last_record_number(), status().last_record_number()) << "it never sinks";
}

TEST_F(lost_lines, a_status_is_well_only_while_every_device_is_armed_and_nothing_is_open) {
  EXPECT_EQ(judge_status(status()), 3) << "no record";
  arm();
  EXPECT_EQ(judge_status(status()), 0);
  feed(device_lost{"r01/c02", "no answer"});
  EXPECT_EQ(judge_status(status()), 1) << "a device is not armed";
  feed(device_online{"r01/c02"});
  read("r01/c02", test::all(DetectorReading::DRY));
  EXPECT_EQ(judge_status(status()), 0);
  feed(lines_known{7, 5});
  EXPECT_EQ(judge_status(status()), 1) << "the latch file";
  ASSERT_TRUE(reset("*").ok());
  EXPECT_EQ(judge_status(status()), 0);
  ASSERT_TRUE(answer_to(trip_requested{1, "r01/c01", "smoke", "uid 0", true}).ok());
  EXPECT_EQ(judge_status(status()), 1) << "a trip";
}

}  // namespace
}  // namespace busbar::interlock
