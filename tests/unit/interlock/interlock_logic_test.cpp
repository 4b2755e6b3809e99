#include "daemon/interlock/interlock_logic.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "actors/core/mutant.hpp"
#include "tests/unit/interlock/logic_rig.hpp"
#include "tests/unit/interlock/records.hpp"

namespace busbar::interlock {
namespace {

using test::make_record;

using test::all;
using test::all_of;
using test::bench;
using test::bypass_longest_s;

using interlock_logic = bench;

TEST_F(interlock_logic, says_in_every_status_what_a_trip_does_and_what_it_cannot_do) {
  Status status;
  fill_status(interlock_, now_ms_, &status);
  EXPECT_EQ(status.trips(), Status::NONE);
  EXPECT_FALSE(status.armed_rack());
  arm();
  fill_status(interlock_, now_ms_, &status);
  EXPECT_EQ(status.trips(), Status::TRAYS);
  EXPECT_THAT(status.trips_text(),
              ::testing::StartsWith("trips: trays off; not with this record: shelves cut"));
  feed(device_cannot{"r01/c02", "cannot turn it off: no reset action was found"});
  fill_status(interlock_, now_ms_, &status);
  EXPECT_THAT(status.trips_text(), ::testing::HasSubstr("r01/c02: cannot turn it off"));
}

TEST_F(interlock_logic, closes_every_gate_while_the_racks_own_detectors_are_not_known_dry) {
  ArmingRecord record = make_record(1);
  ArmedDevice cdu = test::make_device("cdu01", {"r01_rope", "r01_pan"});
  cdu.set_kind("cdu");
  *record.add_devices() = cdu;
  ASSERT_TRUE(answer_to(record_offered{1, record, false, {}}).ok());
  feed(device_online{"r01/c01"});
  read("r01/c01", all(DetectorReading::DRY));
  EXPECT_FALSE(row("r01/c01").gate_open());
  feed(device_online{"cdu01"});
  read("cdu01", {{"r01_rope", {DetectorReading::DRY, ""}}, {"r01_pan", {DetectorReading::UNKNOWN, ""}}});
  EXPECT_FALSE(row("r01/c01").gate_open());
  read("cdu01", {{"r01_rope", {DetectorReading::DRY, ""}}, {"r01_pan", {DetectorReading::DRY, ""}}});
  EXPECT_TRUE(row("r01/c01").gate_open()) << row("r01/c01").reason();
}

TEST_F(interlock_logic, a_bypassed_detector_is_shown_as_a_bypass_and_never_as_dry) {
  arm();
  EXPECT_TRUE(absl::IsInvalidArgument(
      answer_to(bypass_asked{1, "r01/c01", "0_Manifold", "broken", "uid 7", bypass_longest_s + 1, 0})));
  EXPECT_TRUE(
      absl::IsInvalidArgument(answer_to(bypass_asked{1, "r01/c01", "0_Manifold", "", "uid 7", 60, 0})));
  EXPECT_TRUE(
      absl::IsInvalidArgument(answer_to(bypass_asked{1, "r01/c01", "0_Manifold", "x", "uid 7", -1, 0})));
  EXPECT_TRUE(absl::IsNotFound(answer_to(bypass_asked{1, "r01/c01", "9_Pan", "x", "uid 7", 60, 0})));
  ASSERT_TRUE(answer_to(bypass_asked{1, "r01/c01", "0_Manifold", "broken", "uid 7", 60, 0}).ok());
  auto readings = all(DetectorReading::DRY);
  readings["0_Manifold"] = {DetectorReading::LEAK, "stuck"};
  read("r01/c01", readings);
  EXPECT_FALSE(row("r01/c01").latched());
  EXPECT_TRUE(row("r01/c01").gate_open());
  EXPECT_EQ(row("r01/c01").detectors_size(), 3);
  Status status;
  fill_status(interlock_, now_ms_, &status);
  ASSERT_EQ(status.bypasses_size(), 1);
  EXPECT_EQ(status.bypasses(0).owner(), "uid 7");
  now_ms_ += 61'000;
  feed(tick{});
  read("r01/c01", readings);
  EXPECT_TRUE(row("r01/c01").latched()) << "the bypass is over";
}

TEST_F(interlock_logic, opens_the_gate_of_a_tray_that_is_online_and_dry) {
  arm();
  EXPECT_TRUE(row("r01/c01").armed());
  EXPECT_TRUE(row("r01/c01").gate_open());
  EXPECT_EQ(row("r01/c01").reason(), "");
}

TEST_F(interlock_logic, keeps_the_gate_closed_until_the_detectors_were_read) {
  ASSERT_TRUE(answer_to(record_offered{1, make_record(1), false, {}}).ok());
  EXPECT_FALSE(row("r01/c01").gate_open());
  feed(device_online{"r01/c01"});
  EXPECT_FALSE(row("r01/c01").armed());
  EXPECT_EQ(row("r01/c01").reason(), "detectors not read yet");
}

TEST_F(interlock_logic, reads_unknown_neither_as_dry_nor_as_a_leak) {
  arm();
  auto readings = all(DetectorReading::DRY);
  readings["1_ColdPlate"] = {DetectorReading::UNKNOWN, "DetectorState Warning"};
  read("r01/c01", readings);
  EXPECT_FALSE(row("r01/c01").armed());
  EXPECT_FALSE(row("r01/c01").gate_open());
  EXPECT_FALSE(row("r01/c01").latched());
  EXPECT_THAT(row("r01/c01").reason(), ::testing::HasSubstr("1_ColdPlate is unknown"));
}

TEST_F(interlock_logic, takes_a_detector_that_is_missing_from_an_answer_as_unknown) {
  arm();
  auto readings = all(DetectorReading::DRY);
  readings.erase("0_Manifold");
  read("r01/c01", readings);
  EXPECT_FALSE(row("r01/c01").gate_open());
  EXPECT_THAT(row("r01/c01").reason(), ::testing::HasSubstr("0_Manifold"));
}

TEST_F(interlock_logic, disarms_by_silence_alone_after_three_polls) {
  arm();
  now_ms_ += 3 * 250;
  EXPECT_TRUE(row("r01/c01").gate_open());
  now_ms_ += 1;
  EXPECT_FALSE(row("r01/c01").armed());
  EXPECT_FALSE(row("r01/c01").gate_open());
  const DeviceStatus stale = row("r01/c01");
  for (const auto& each : stale.detectors()) EXPECT_EQ(each.verdict(), DetectorReading::UNKNOWN);
}

TEST_F(interlock_logic, a_poll_that_fails_does_not_freshen_what_was_read_before) {
  arm();
  for (int i = 0; i < 4; ++i) {
    now_ms_ += 250;
    feed(poll_failed{"r01/c01", "timeout"});
  }
  EXPECT_FALSE(row("r01/c01").armed());
  EXPECT_THAT(row("r01/c01").reason(), ::testing::HasSubstr("timeout"));
}

TEST_F(interlock_logic, a_lost_session_closes_the_gate_of_that_tray_only) {
  arm();
  feed(device_lost{"r01/c01", "CERTIFICATE_CHANGED"});
  EXPECT_FALSE(row("r01/c01").gate_open());
  EXPECT_EQ(row("r01/c01").reason(), "CERTIFICATE_CHANGED");
  EXPECT_TRUE(row("r01/c02").gate_open());
}

TEST_F(interlock_logic, latches_the_first_wet_reading_and_publishes_before_it_writes) {
  arm();
  auto readings = all(DetectorReading::DRY);
  readings["0_Manifold"] = {DetectorReading::LEAK, "Critical"};
  const auto effects = step(interlock_, detectors_read{"r01/c01", readings, 20}, now_ms_);
  std::optional<std::size_t> published;
  std::optional<std::size_t> written;
  for (std::size_t i = 0; i < effects.size(); ++i) {
    if (std::holds_alternative<publish>(effects[i]) && !published) published = i;
    if (std::holds_alternative<write_latch>(effects[i]) && !written) written = i;
  }
  ASSERT_TRUE(published.has_value() && written.has_value());
  EXPECT_LT(*published, *written);
  EXPECT_TRUE(row("r01/c01").latched());
  EXPECT_FALSE(row("r01/c01").gate_open());
  EXPECT_TRUE(row("r01/c02").gate_open());
}

TEST_F(interlock_logic, a_detector_stuck_wet_for_an_hour_is_one_latch) {
  arm();
  for (int i = 0; i < 3600; ++i) {
    now_ms_ += 1000;
    read("r01/c01", all(DetectorReading::LEAK));
  }
  EXPECT_EQ(latch_lines().size(), 1U);
  EXPECT_EQ(interlock_.last_latch_number, 1U);
}

TEST_F(interlock_logic, a_leak_that_dries_up_stays_latched) {
  arm();
  read("r01/c01", all(DetectorReading::LEAK));
  read("r01/c01", all(DetectorReading::DRY));
  EXPECT_TRUE(row("r01/c01").armed());
  EXPECT_TRUE(row("r01/c01").latched());
  EXPECT_FALSE(row("r01/c01").gate_open());
}

TEST_F(interlock_logic, leaks_of_two_trays_close_every_gate_of_the_rack) {
  arm();
  read("r01/c01", all(DetectorReading::LEAK));
  EXPECT_TRUE(row("r01/c03").gate_open());
  read("r01/c02", all(DetectorReading::LEAK));
  EXPECT_FALSE(row("r01/c03").gate_open());
}

TEST_F(interlock_logic, a_latch_survives_a_restart) {
  arm();
  read("r01/c01", all(DetectorReading::LEAK));
  const state fresh = restarted();
  EXPECT_EQ(fresh.latches.count("r01/c01"), 1U);
  EXPECT_EQ(fresh.last_latch_number, 1U);
}

TEST_F(interlock_logic, a_reset_survives_a_restart) {
  arm();
  read("r01/c01", all(DetectorReading::LEAK));
  go_off_and_dry("r01/c01");
  ASSERT_TRUE(reset("r01/c01").ok());
  EXPECT_TRUE(row("r01/c01").gate_open());
  EXPECT_TRUE(restarted().latches.empty());
  EXPECT_TRUE(restarted().trip.open.empty());
  EXPECT_EQ(restarted().last_latch_number, file_.back().number());
}

TEST_F(interlock_logic, refuses_a_reset_before_the_trip_has_done_its_work_or_before_a_minute_of_dry) {
  arm();
  read("r01/c01", all(DetectorReading::LEAK));
  read("r01/c01", all(DetectorReading::DRY));
  now_ms_ += 61'000;
  read("r01/c01", all(DetectorReading::DRY));
  EXPECT_TRUE(absl::IsFailedPrecondition(reset("r01/c01"))) << "the tray was not read off";
  feed(power_read{"r01/c01", power_seen::off});
  EXPECT_TRUE(reset("r01/c01").ok());
  read("r01/c02", all(DetectorReading::LEAK));
  feed(power_read{"r01/c02", power_seen::off});
  read("r01/c02", all(DetectorReading::DRY));
  now_ms_ += 60'000;
  read("r01/c02", all(DetectorReading::DRY));
  EXPECT_TRUE(absl::IsFailedPrecondition(reset("r01/c02"))) << "dry for 60 s is not more than 60 s";
  now_ms_ += 1;
  EXPECT_TRUE(reset("r01/c02").ok());
}

TEST_F(interlock_logic, refuses_a_reset_without_a_reason) {
  arm();
  read("r01/c01", all(DetectorReading::LEAK));
  read("r01/c01", all(DetectorReading::DRY));
  EXPECT_TRUE(absl::IsInvalidArgument(reset("r01/c01", "")));
  EXPECT_TRUE(row("r01/c01").latched());
}

TEST_F(interlock_logic, refuses_a_reset_while_wet_unknown_or_stale) {
  arm();
  read("r01/c01", all(DetectorReading::LEAK));
  EXPECT_TRUE(absl::IsFailedPrecondition(reset("r01/c01")));
  read("r01/c01", all(DetectorReading::UNKNOWN));
  EXPECT_TRUE(absl::IsFailedPrecondition(reset("r01/c01")));
  read("r01/c01", all(DetectorReading::DRY));
  now_ms_ += 10'000;
  EXPECT_TRUE(absl::IsFailedPrecondition(reset("r01/c01")));
  EXPECT_TRUE(row("r01/c01").latched());
}

TEST_F(interlock_logic, a_reset_that_cannot_be_written_has_not_happened) {
  arm();
  read("r01/c01", all(DetectorReading::LEAK));
  go_off_and_dry("r01/c01");
  disk_ = absl::UnavailableError("no space");
  EXPECT_FALSE(reset("r01/c01").ok());
  EXPECT_TRUE(row("r01/c01").latched());
}

TEST_F(interlock_logic, a_latch_that_cannot_be_written_holds_and_is_written_later) {
  arm();
  disk_ = absl::UnavailableError("no space");
  read("r01/c01", all(DetectorReading::LEAK));
  EXPECT_TRUE(row("r01/c01").latched());
  EXPECT_FALSE(interlock_.latches.at("r01/c01").durable());
  disk_ = absl::OkStatus();
  read("r01/c01", all(DetectorReading::DRY));
  ASSERT_EQ(latch_lines().size(), 1U);
  EXPECT_EQ(file_.front().number(), 1U);
  EXPECT_TRUE(interlock_.unwritten.empty());
  EXPECT_TRUE(interlock_.latches.at("r01/c01").durable());
}

TEST_F(interlock_logic, a_latch_file_that_cannot_be_trusted_closes_every_gate_until_a_person_acknowledges) {
  feed(loaded{std::nullopt, {}, {}, "record 3: does not check"});
  arm();
  EXPECT_FALSE(row("r01/c01").gate_open());
  Status status;
  fill_status(interlock_, now_ms_, &status);
  EXPECT_FALSE(status.armed_rack());
  EXPECT_FALSE(status.latch_file_ok());
  EXPECT_TRUE(reset("*").ok());
  EXPECT_TRUE(row("r01/c01").gate_open());
}

TEST_F(interlock_logic, takes_no_record_of_an_older_generation_even_from_an_operator) {
  ASSERT_TRUE(answer_to(record_offered{1, make_record(5), false, {}}).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(answer_to(record_offered{2, make_record(4), false, {}})));
  EXPECT_TRUE(
      absl::IsFailedPrecondition(answer_to(record_offered{3, make_record(4), true, "I know better"})));
  EXPECT_EQ(interlock_.record->generation(), 5U);
}

TEST_F(interlock_logic, takes_the_same_record_twice_and_writes_it_once) {
  ASSERT_TRUE(answer_to(record_offered{1, make_record(5), false, {}}).ok());
  const auto effects = feed(record_offered{2, make_record(5), false, {}});
  EXPECT_TRUE(all_of<store_record>(effects).empty());
  ASSERT_EQ(all_of<answer>(effects).size(), 1U);
  EXPECT_TRUE(all_of<answer>(effects).front().status.ok());
}

TEST_F(interlock_logic, lets_only_an_operator_with_a_reason_remove_a_device) {
  arm();
  const ArmingRecord smaller = make_record(2, {"r01/c01", "r01/c02"});
  EXPECT_TRUE(absl::IsFailedPrecondition(answer_to(record_offered{2, smaller, false, "tray is out"})));
  EXPECT_TRUE(absl::IsInvalidArgument(answer_to(record_offered{3, smaller, true, ""})));
  EXPECT_TRUE(answer_to(record_offered{4, smaller, true, "tray is out"}).ok());
  EXPECT_EQ(interlock_.devices.size(), 2U);
}

TEST_F(interlock_logic, arms_by_nothing_that_is_not_on_disk) {
  disk_ = absl::UnavailableError("no space");
  EXPECT_FALSE(answer_to(record_offered{1, make_record(1), false, {}}).ok());
  EXPECT_FALSE(interlock_.record.has_value());
  EXPECT_TRUE(interlock_.devices.empty());
}

TEST_F(interlock_logic, leaves_a_record_it_cannot_read_to_an_operator) {
  feed(loaded{std::nullopt, "does not open", {}, {}});
  EXPECT_TRUE(absl::IsFailedPrecondition(answer_to(record_offered{1, make_record(9), false, {}})));
  EXPECT_TRUE(answer_to(record_offered{2, make_record(9), true, "key was changed"}).ok());
}

TEST_F(interlock_logic, keeps_what_it_knows_of_an_unchanged_tray_when_another_is_added) {
  arm();
  ASSERT_TRUE(
      answer_to(record_offered{2, make_record(2, {"r01/c01", "r01/c02", "r01/c03", "r01/c04"}), false, {}})
          .ok());
  EXPECT_TRUE(row("r01/c01").gate_open());
  EXPECT_FALSE(row("r01/c04").gate_open());
}

TEST_F(interlock_logic, starts_anew_with_a_tray_whose_access_changed) {
  arm();
  ArmingRecord next = make_record(2);
  next.mutable_devices(0)->set_pin_sha256(std::string(64, 'b'));
  ASSERT_TRUE(answer_to(record_offered{2, next, false, {}}).ok());
  EXPECT_FALSE(row("r01/c01").armed());
  EXPECT_TRUE(row("r01/c02").gate_open());
}

TEST_F(interlock_logic, shows_a_tray_in_a_blind_window_as_blind_and_keeps_its_gate_closed) {
  arm();
  ASSERT_TRUE(answer_to(blind_asked{1, "r01/c01", 60'000}).ok());
  EXPECT_TRUE(row("r01/c01").blind());
  EXPECT_FALSE(row("r01/c01").gate_open());
  now_ms_ += 60'000;
  EXPECT_FALSE(row("r01/c01").blind());
  EXPECT_FALSE(row("r01/c01").gate_open()) << "what was read before the window is stale";
  read("r01/c01", all(DetectorReading::DRY));
  EXPECT_TRUE(row("r01/c01").gate_open());
}

TEST_F(interlock_logic, ends_a_blind_window_ten_minutes_after_its_start_however_often_it_is_extended) {
  arm();
  EXPECT_TRUE(absl::IsInvalidArgument(answer_to(blind_asked{1, "r01/c01", blind_window_max_ms + 1})));
  ASSERT_TRUE(answer_to(blind_asked{2, "r01/c01", blind_window_max_ms}).ok());
  now_ms_ += 60'000;
  EXPECT_TRUE(absl::IsInvalidArgument(answer_to(blind_asked{3, "r01/c01", blind_window_max_ms})));
}

TEST_F(interlock_logic, blinds_at_most_six_trays_and_none_while_a_leak_is_latched) {
  std::vector<std::string> names;
  for (int i = 1; i <= 8; ++i) names.push_back("r01/c0" + std::to_string(i));
  ASSERT_TRUE(answer_to(record_offered{1, make_record(1, names), false, {}}).ok());
  for (int i = 0; i < 6; ++i)
    ASSERT_TRUE(answer_to(blind_asked{2, names[static_cast<std::size_t>(i)], 1000}).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(answer_to(blind_asked{3, names[6], 1000})));
  now_ms_ += 1000;
  read(names[7], all(DetectorReading::LEAK));
  EXPECT_TRUE(absl::IsFailedPrecondition(answer_to(blind_asked{4, names[6], 1000})));
}

TEST_F(interlock_logic, latches_a_leak_seen_inside_a_blind_window) {
  arm();
  ASSERT_TRUE(answer_to(blind_asked{1, "r01/c01", 60'000}).ok());
  read("r01/c01", all(DetectorReading::LEAK));
  EXPECT_TRUE(row("r01/c01").latched());
}

TEST_F(interlock_logic, polls_a_slow_device_at_eight_times_the_median_and_stays_fresh_at_that_pace) {
  arm();
  EXPECT_EQ(poll_interval_ms(interlock_, interlock_.devices.at("r01/c01")), 250);
  for (int i = 0; i < 9; ++i) feed(detectors_read{"r01/c01", all(DetectorReading::DRY), i == 0 ? 5000 : 100});
  EXPECT_EQ(poll_interval_ms(interlock_, interlock_.devices.at("r01/c01")), 800);
  now_ms_ += 2400;
  EXPECT_TRUE(row("r01/c01").armed());
}

TEST_F(interlock_logic, forgets_events_of_a_device_that_is_no_longer_armed) {
  arm();
  EXPECT_TRUE(feed(detectors_read{"r01/c99", all(DetectorReading::LEAK), 20}).empty());
  EXPECT_TRUE(interlock_.latches.empty());
}

#ifdef BUSBAR_MUTANTS
// Each planted defect opens a gate that the tests above hold closed; a mutant that shows nowhere proves
// nothing.
class interlock_mutants : public bench {
 protected:
  ~interlock_mutants() override { core::switch_mutant(""); }
};

TEST_F(interlock_mutants, unknown_read_as_dry_opens_the_gate) {
  arm();
  core::switch_mutant("interlock_reads_unknown_as_dry");
  read("r01/c01", all(DetectorReading::UNKNOWN));
  EXPECT_TRUE(row("r01/c01").gate_open());
}

TEST_F(interlock_mutants, a_stale_reading_that_is_trusted_opens_the_gate) {
  arm();
  core::switch_mutant("interlock_trusts_stale_reading");
  now_ms_ += 60'000;
  EXPECT_TRUE(row("r01/c01").gate_open());
}

TEST_F(interlock_mutants, a_latch_forgotten_at_restart_opens_the_gate) {
  arm();
  read("r01/c01", all(DetectorReading::LEAK));
  core::switch_mutant("interlock_forgets_latch_at_restart");
  EXPECT_TRUE(restarted().latches.empty());
}

TEST_F(interlock_mutants, a_reset_while_wet_is_taken) {
  arm();
  read("r01/c01", all(DetectorReading::LEAK));
  feed(power_read{"r01/c01", power_seen::off});
  core::switch_mutant("interlock_resets_while_wet");
  EXPECT_TRUE(reset("r01/c01").ok());
}
#endif

}  // namespace
}  // namespace busbar::interlock
