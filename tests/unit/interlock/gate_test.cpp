#include <gtest/gtest.h>

#include "actors/rack/interlock_port.hpp"
#include "actors/rack/interlock_wire.hpp"
#include "daemon/interlock/socket_server.hpp"
#include "tests/support/fake_interlock.hpp"
#include "tests/unit/interlock/records.hpp"

namespace busbar::rack {
namespace {

using interlock::DetectorReading;
using interlock::test::make_record;

class gate : public ::testing::Test {
 protected:
  void SetUp() override {
    fake_.arm(make_record(1), [](const absl::Status& status) { ASSERT_TRUE(status.ok()); });
  }
  test::fake_interlock fake_;
};

TEST_F(gate, is_open_for_an_armed_dry_tray) {
  EXPECT_TRUE(fake_.gate("r01/c01").allowed);
  EXPECT_TRUE(judge_rack(*fake_.last()).allowed);
}

TEST(gate_before, is_closed_when_the_interlock_was_never_heard) {
  EXPECT_EQ(judge_gate({}, "r01/c01").fault, "POWER_INTERLOCK_NOT_ARMED");
  EXPECT_FALSE(judge_rack({}).allowed);
}

TEST_F(gate, closes_when_the_interlock_is_not_heard_for_three_seconds) {
  fake_.die();
  EXPECT_EQ(fake_.gate("r01/c01").fault, "POWER_INTERLOCK_NOT_ARMED");
  interlock_view late = *fake_.last();
  late.life = interlock_life::alive;
  late.age = interlock_dead_after;
  EXPECT_FALSE(judge_gate(late, "r01/c01").allowed);
  late.age -= std::chrono::milliseconds(1);
  EXPECT_TRUE(judge_gate(late, "r01/c01").allowed);
}

TEST_F(gate, is_closed_for_a_tray_that_no_record_names) {
  EXPECT_EQ(fake_.gate("r01/c17").fault, "POWER_INTERLOCK_NOT_ARMED");
}

TEST_F(gate, closes_on_an_unknown_detector) {
  fake_.set_detector("r01/c01", "0_Manifold", DetectorReading::UNKNOWN);
  EXPECT_FALSE(fake_.gate("r01/c01").allowed);
  EXPECT_TRUE(fake_.gate("r01/c02").allowed);
}

TEST_F(gate, names_the_cause_of_what_is_latched_and_calls_nothing_a_leak_that_is_none) {
  for (const auto& [cause, words] : {std::pair{interlock::EMERGENCY_STOP, "an emergency stop of r01"},
                                     std::pair{interlock::REQUESTED, "a trip that busbard asked for of r01"},
                                     std::pair{interlock::NO_FLOW, "no coolant flow"},
                                     std::pair{interlock::OVER_TEMPERATURE, "coolant too warm"},
                                     std::pair{interlock::OVER_PRESSURE, "pressure too high"},
                                     std::pair{interlock::LEAK, "a leak of r01"}}) {
    interlock_view view = *fake_.last();
    auto status = std::make_shared<interlock::Status>(*view.status);
    interlock::Latch& latch = *status->add_latches();
    latch.set_kind(interlock::Latch::TRIP_OPENED);
    latch.set_cause(cause);
    latch.set_device("r01");
    latch.set_detail("uid 0: smoke");
    for (auto& row : *status->mutable_devices()) row.set_gate_open(false);
    view.status = status;
    const bool leak = cause == interlock::LEAK;
    const gate_verdict rack = judge_rack(view);
    EXPECT_FALSE(rack.allowed);
    EXPECT_NE(rack.reason.find(words), std::string::npos) << rack.reason;
    EXPECT_NE(rack.reason.find("uid 0: smoke"), std::string::npos) << rack.reason;
    EXPECT_EQ(rack.reason.find("leak") != std::string::npos, leak) << rack.reason;
    for (const gate_verdict& each : {rack, judge_gate(view, "r01/c01")}) {
      EXPECT_FALSE(each.allowed);
      EXPECT_EQ(each.fault, leak ? "POWER_LEAK_LATCHED" : "TRIP_OPEN");
    }
  }
}

TEST_F(gate, closes_on_a_latch_until_a_person_resets_it_dry) {
  fake_.set_detector("r01/c01", "0_Manifold", DetectorReading::LEAK);
  EXPECT_EQ(fake_.gate("r01/c01").fault, "POWER_LEAK_LATCHED");
  EXPECT_EQ(judge_rack(*fake_.last()).fault, "POWER_LEAK_LATCHED");
  EXPECT_FALSE(fake_.reset("r01/c01"));
  fake_.set_detector("r01/c01", "0_Manifold", DetectorReading::DRY);
  EXPECT_FALSE(fake_.gate("r01/c01").allowed);
  EXPECT_TRUE(fake_.reset("r01/c01"));
  EXPECT_TRUE(fake_.gate("r01/c01").allowed);
}

TEST_F(gate, is_closed_in_a_blind_window) {
  fake_.announce_blind_window("r01/c01", std::chrono::minutes(5),
                              [](const absl::Status& status) { EXPECT_TRUE(status.ok()); });
  EXPECT_FALSE(fake_.gate("r01/c01").allowed);
}

TEST_F(gate, believes_no_row_that_claims_an_open_gate_over_a_detector_that_is_not_dry) {
  auto status = std::make_shared<interlock::Status>(*fake_.last()->status);
  status->mutable_devices(0)->mutable_detectors(0)->set_verdict(DetectorReading::UNKNOWN);
  const interlock_view view{interlock_life::alive, status, std::chrono::milliseconds(0)};
  EXPECT_EQ(judge_gate(view, "r01/c01").fault, "POWER_DETECTOR_UNKNOWN");
}

TEST(frames, are_cut_out_of_a_stream_at_any_border) {
  const std::string bytes = interlock::encode_frame(make_record(1)) + interlock::encode_frame(make_record(2));
  interlock::frame_reader reader;
  std::vector<std::uint64_t> generations;
  for (const char byte : bytes) {
    reader.feed({&byte, 1});
    while (auto body = reader.next()) {
      interlock::ArmingRecord record;
      ASSERT_TRUE(record.ParseFromString(*body));
      generations.push_back(record.generation());
    }
  }
  EXPECT_EQ(generations, (std::vector<std::uint64_t>{1, 2}));
}

TEST(frames, of_more_than_a_mebibyte_break_the_stream) {
  interlock::frame_reader reader;
  reader.feed(std::string("\x00\x10\x00\x01", 4));
  EXPECT_FALSE(reader.next().has_value());
  EXPECT_TRUE(reader.broken());
}

TEST(admission, lets_only_root_and_busbards_user_arm) {
  EXPECT_TRUE(interlock::admits_busbard({0, 0, {}}, 500));
  EXPECT_TRUE(interlock::admits_busbard({500, 500, {}}, 500));
  EXPECT_FALSE(interlock::admits_busbard({501, 500, {500}}, 500));
}

TEST(admission, lets_the_safety_group_reset_but_never_busbard) {
  EXPECT_TRUE(interlock::admits_operator({0, 0, {}}, 500, 70));
  EXPECT_TRUE(interlock::admits_operator({600, 600, {600, 70}}, 500, 70));
  EXPECT_FALSE(interlock::admits_operator({600, 600, {600}}, 500, 70));
  EXPECT_FALSE(interlock::admits_operator({500, 500, {70}}, 500, 70));
  EXPECT_FALSE(interlock::admits_operator({600, 600, {600}}, 500, static_cast<gid_t>(-1)))
      << "no such group on this host";
}

}  // namespace
}  // namespace busbar::rack
