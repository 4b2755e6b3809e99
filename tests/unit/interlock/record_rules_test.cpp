#include "daemon/interlock/record_rules.hpp"

#include <gtest/gtest.h>

#include "tests/unit/interlock/records.hpp"

namespace busbar::interlock {
namespace {

using test::make_device;
using test::make_record;

TEST(record_rules, takes_a_whole_record_and_one_without_devices) {
  EXPECT_TRUE(check_record(make_record(1), "r01").ok());
  EXPECT_TRUE(
      check_record(make_record(1, {}), "r01").ok());  // armed for the rack before any tray has its account
}

TEST(record_rules, refuses_a_record_of_another_rack) {
  EXPECT_FALSE(check_record(make_record(1), "r02").ok());
}

TEST(record_rules, refuses_what_would_leave_a_tray_unwatched) {
  for (const auto& spoil : std::vector<void (*)(ArmingRecord&)>{
           [](ArmingRecord& record) { record.set_generation(0); },
           [](ArmingRecord& record) { record.mutable_devices(0)->clear_detectors(); },
           [](ArmingRecord& record) { record.mutable_devices(0)->clear_pin_sha256(); },
           [](ArmingRecord& record) { record.mutable_devices(0)->set_pin_sha256(std::string(64, 'A')); },
           [](ArmingRecord& record) { record.mutable_devices(0)->set_address("bmc.site:443"); },
           [](ArmingRecord& record) { record.mutable_devices(0)->set_address("127.0.0.1"); },
           [](ArmingRecord& record) { record.mutable_devices(0)->clear_password(); },
           [](ArmingRecord& record) { record.mutable_devices(0)->set_name("r02/c01"); },
           [](ArmingRecord& record) { *record.add_devices() = record.devices(0); },
           [](ArmingRecord& record) { record.mutable_devices(0)->add_detectors("0_Manifold"); },
           [](ArmingRecord& record) { record.add_order("r01/c99"); },
           [](ArmingRecord& record) { record.mutable_limits()->set_poll_min_ms(60'000); },
           [](ArmingRecord& record) { record.mutable_limits()->set_stale_polls(1000); },
       }) {
    ArmingRecord record = make_record(1);
    spoil(record);
    EXPECT_TRUE(absl::IsInvalidArgument(check_record(record, "r01"))) << record.ShortDebugString();
  }
}

TEST(record_rules, lets_busbard_add_and_restrict) {
  ArmingRecord next = make_record(2, {"r01/c01", "r01/c02", "r01/c03", "r01/s01"});
  next.mutable_devices(0)->add_detectors("2_Manifold");
  next.mutable_limits()->set_poll_min_ms(200);
  EXPECT_TRUE(check_restricts(make_record(1), next).ok());
}

TEST(record_rules, refuses_widening_and_removal_by_busbard) {
  for (const auto& widen : std::vector<void (*)(ArmingRecord&)>{
           [](ArmingRecord& record) { record.mutable_limits()->set_poll_min_ms(251); },
           [](ArmingRecord& record) { record.mutable_limits()->set_poll_service_times(9); },
           [](ArmingRecord& record) { record.mutable_limits()->set_stale_polls(4); },
           [](ArmingRecord& record) { record.mutable_limits()->set_request_timeout_ms(2001); },
           [](ArmingRecord& record) { record.mutable_devices()->RemoveLast(); },
           [](ArmingRecord& record) { record.mutable_devices(1)->mutable_detectors()->RemoveLast(); },
           [](ArmingRecord& record) {
             record.set_generation(1), record.mutable_devices(0)->set_password("other");
           },
           [](ArmingRecord& record) { record.set_generation(0); },
       }) {
    ArmingRecord next = make_record(2);
    widen(next);
    EXPECT_TRUE(absl::IsFailedPrecondition(check_restricts(make_record(1), next))) << next.ShortDebugString();
  }
}

TEST(record_rules, a_limit_left_out_is_the_default_and_can_widen) {
  ArmingRecord held = make_record(1);
  held.mutable_limits()->set_poll_min_ms(100);
  EXPECT_FALSE(check_restricts(held, make_record(2)).ok());
}

}  // namespace
}  // namespace busbar::interlock
