// What the interlock did, taken into the journal: every line once, every open trip the end of what it touches.
#include <gtest/gtest.h>

#include "actors/rack/rack_members.hpp"
#include "tests/unit/rack/rack_bench.hpp"

namespace busbar::rack::test {
namespace {

using interlock::Latch;

const journal::Condition* condition(const rack_bench& bench, std::string_view type) {
  for (const journal::Condition& row : bench.state.rack.conditions()) {
    if (row.type() == type) return &row;
  }
  return nullptr;
}

Latch line_of(std::uint64_t number, Latch::Kind kind, const std::string& device) {
  Latch line;
  line.set_number(number);
  line.set_kind(kind);
  line.set_device(device);
  line.set_wall_time_ns(1'700'000'000'000'000'000);
  return line;
}

void hear_trip(rack_bench& bench, const std::string& scope, std::uint64_t number = 7, bool closed = false,
               interlock::Cause cause = interlock::NO_FLOW) {
  bench.arm([&](interlock::Status& status) {
    status.set_last_record_number(number);
    interlock::TripStatus& trip = *status.add_open_trips();
    trip.set_number(number);
    trip.set_scope(scope);
    trip.set_cause(cause);
    trip.set_detail("80.0, limit 120.0");
    trip.set_closed(closed);
    if (!closed) trip.add_waits_for("r01/c01 off");
    Latch& latch = *status.add_latches();
    latch.set_kind(Latch::TRIP_OPENED);
    latch.set_cause(cause);
    latch.set_device(scope);
    for (auto& row : *status.mutable_devices()) row.set_gate_open(false);
  });
}

struct told_kind {
  Latch::Kind kind;
  const char* type;
};

TEST(trip_lines, each_kind_is_an_event_of_its_own_with_what_it_says) {
  const told_kind kinds[] = {{Latch::TRIP_OPENED, "trip_opened"}, {Latch::STEP_DONE, "trip_step_done"},
                             {Latch::TRIP_CLOSED, "trip_closed"}, {Latch::BYPASS, "bypassed"},
                             {Latch::BYPASS_ENDED, "bypass_ended"}, {Latch::LOST, "latch_lines_lost"},
                             {Latch::LEAK_SEEN, "leak_latched"},   {Latch::RESET, "leak_latch_reset"}};
  for (const told_kind& each : kinds) {
    rack_bench bench;
    bench.arm([](interlock::Status& status) { status.set_last_record_number(3); });
    Latch line = line_of(3, each.kind, "r01/c01");
    line.set_trip(2);
    line.set_cause(interlock::NO_FLOW);
    line.set_detector("0_Manifold");
    line.set_principal("uid 7");
    line.set_detail("words of the line");
    line.set_until_wall_ns(1'700'000'400'000'000'000);
    bench.give(latches_read{{line}});
    ASSERT_EQ(bench.count_told(each.type), 1U) << each.type;
    const journal::Event* found = nullptr;
    for (const journal::Event& event : bench.events) {
      if (event.type() == each.type) found = &event;
    }
    EXPECT_NE(found->message().find("words of the line"), std::string::npos) << found->message();
    EXPECT_EQ(found->details().at("number"), "3");
    EXPECT_EQ(found->details().at("device"), "r01/c01");
    EXPECT_EQ(found->details().at("cause"), "no flow");
    EXPECT_EQ(found->details().at("time"), "2023-11-14T22:13:20Z");
    const bool latches = each.kind == Latch::LEAK_SEEN || each.kind == Latch::RESET;
    EXPECT_EQ(bench.effects_of<tell_latch>().size(), latches ? 1U : 0U) << "nothing else lifts or sets a latch";
    EXPECT_EQ(bench.effects_of<tell_read_off>().size(), each.kind == Latch::STEP_DONE ? 1U : 0U);
  }
}

TEST(trip_lines, are_taken_once_in_order_and_only_when_they_are_synced) {
  rack_bench bench;
  bench.arm([](interlock::Status& status) { status.set_last_record_number(2); });
  const std::vector<Latch> lines = {line_of(3, Latch::STEP_DONE, "r01/c02"), line_of(2, Latch::STEP_DONE, "r01/c01"),
                                    line_of(1, Latch::TRIP_OPENED, "r01")};
  bench.give(latches_read{lines});
  EXPECT_EQ(bench.count_told("trip_opened"), 1U);
  EXPECT_EQ(bench.count_told("trip_step_done"), 1U) << "line 3 may still be lost with the interlock's host";
  bench.arm([](interlock::Status& status) { status.set_last_record_number(3); });
  bench.give(latches_read{lines});
  bench.give(latches_read{lines});
  EXPECT_EQ(bench.count_told("trip_opened"), 1U);
  EXPECT_EQ(bench.count_told("trip_step_done"), 2U);
  EXPECT_EQ(bench.state.rack.facts().at("latches_imported"), "3");
}

TEST(trip_lines, of_a_kind_that_this_release_does_not_know_are_told_and_lift_nothing) {
  rack_bench bench;
  bench.arm([](interlock::Status& status) { status.set_last_record_number(1); });
  bench.give(latches_read{{line_of(1, static_cast<Latch::Kind>(77), "r01/c01")}});
  EXPECT_EQ(bench.count_told("interlock_line"), 1U);
  EXPECT_TRUE(bench.effects_of<tell_latch>().empty());
}

TEST(trip_of_the_rack, ends_a_bring_up_at_every_step_with_its_reason) {
  for (int step = journal::PLANNED; step <= journal::RACK_VALIDATED; ++step) {
    rack_bench bench;
    bench.add_controller();
    bench.reach(static_cast<journal::RackStep>(step));
    ASSERT_EQ(bench.operation_state(), "") << step;
    hear_trip(bench, "r01");
    EXPECT_EQ(bench.operation_state(), "FAILED") << step;
    EXPECT_EQ(bench.state.rack.failure().fault(), "TRIP_OPEN");
    EXPECT_EQ(bench.state.rack.step(), journal::PLANNED);
    EXPECT_EQ(bench.state.rack.state(), "emergency_off");
    EXPECT_FALSE(bench.state.run.test_running);
    EXPECT_EQ(bench.effects_of<tell_trip>().size(), bench.state.run.members.size());
    const std::size_t events = bench.events.size();
    hear_trip(bench, "r01");
    EXPECT_EQ(bench.events.size(), events) << "a heartbeat says nothing new";
    ASSERT_NE(condition(bench, "TRIP_OPEN"), nullptr);
    EXPECT_EQ(condition(bench, "TRIP_OPEN")->health(), journal::HEALTH_BAD);
  }
}

TEST(trip_of_the_rack, in_production_takes_it_down_without_an_act_of_ours) {
  rack_bench bench;
  bench.reach(journal::RACK_VALIDATED);
  bench.raise_all(journal::PRODUCTION);
  bench.change_all(journal::POWER_SHELF, [](journal::Node& node) { node.set_step(journal::PRODUCTION); });
  ASSERT_EQ(bench.operation_state(), "SUCCEEDED");
  bench.effects.clear();
  hear_trip(bench, "r01");
  EXPECT_EQ(bench.state.rack.state(), "emergency_off");
  EXPECT_EQ(bench.state.rack.step(), journal::PLANNED);
  EXPECT_TRUE(bench.effects_of<core::operation_end>().empty());
  EXPECT_FALSE(bench.effects_of<tell_trip>().empty());
}

TEST(trip_of_the_rack, refuses_a_new_bring_up_and_a_retry_and_names_the_next_step) {
  rack_bench bench;
  bench.reach(journal::COOLED);
  hear_trip(bench, "r01", 7, true);
  for (const char* const verb : {"rack_bringup", "node_retry"}) {
    core::command what;
    what.verb = verb;
    what.target = verb == std::string("rack_bringup") ? "r01" : "r01/c01";
    const absl::Status refused = refuse_command(what, bench.state, false);
    EXPECT_EQ(core::fault_of(refused), core::fault::TRIP_OPEN) << verb;
    EXPECT_TRUE(absl::IsFailedPrecondition(refused));
    EXPECT_NE(std::string(refused.message()).find("busbar leak reset r01"), std::string::npos);
  }
  bench.arm();
  core::command what;
  what.verb = "rack_bringup";
  what.target = "r01";
  EXPECT_TRUE(refuse_command(what, bench.state, false).ok());
  EXPECT_EQ(condition(bench, "TRIP_OPEN")->health(), journal::HEALTH_GOOD);
}

TEST(trip_of_the_rack, that_is_heard_by_a_bring_up_taken_over_after_a_restart_ends_that_too) {
  rack_bench bench;
  bench.reach(journal::COOLED);
  hear_trip(bench, "r01");
  rack_bench next;  // what is stored, in another life
  next.state.rack = bench.state.rack;
  next.state.run.members = bench.state.run.members;
  next.give(begin_bringup{"operations/1"});
  hear_trip(next, "r01");
  EXPECT_EQ(next.operation_state(), "FAILED");
  EXPECT_EQ(next.state.rack.state(), "emergency_off");
}

TEST(trip_of_the_rack, gives_no_permit_to_anything) {
  rack_bench bench;
  bench.reach(journal::COOLED);
  hear_trip(bench, "r01");
  for (const std::string& name : {slot('p', 1), slot('s', 1), slot('c', 1)}) {
    bench.give(permit_wanted{name, node::permit_kind::power_on});
    ASSERT_NE(bench.last_answer(name), nullptr);
    EXPECT_FALSE(bench.last_answer(name)->granted) << name;
  }
}

TEST(trip_of_a_tray, is_told_to_it_alone_and_leaves_the_rack_going) {
  rack_bench bench;
  bench.reach(journal::POWERED);
  hear_trip(bench, slot('c', 4), 9, false, interlock::EMERGENCY_STOP);
  const auto told = bench.effects_of<tell_trip>();
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told.front().member, slot('c', 4));
  EXPECT_EQ(told.front().number, 9U);
  EXPECT_EQ(bench.operation_state(), "");
  EXPECT_EQ(bench.state.rack.step(), journal::POWERED);
  EXPECT_NE(condition(bench, "TRIP_OPEN"), nullptr);
}

TEST(trip_of_a_tray, that_is_in_the_rack_suites_run_ends_the_run) {
  rack_bench bench;
  bench.reach(journal::NODE_VALIDATED);
  ASSERT_TRUE(bench.state.run.test_running);
  hear_trip(bench, slot('c', 4), 9, false, interlock::EMERGENCY_STOP);
  EXPECT_EQ(bench.operation_state(), "FAILED");
  EXPECT_EQ(bench.state.rack.failure().fault(), "TRIP_OPEN");
  EXPECT_FALSE(bench.state.run.test_running);
}

TEST(suspected_leak, is_shown_as_bad_and_blocks_nothing) {
  rack_bench bench;
  bench.reach(journal::COOLED);
  bench.arm([](interlock::Status& status) { status.set_suspected_leak("pressure and level fall"); });
  ASSERT_NE(condition(bench, "LEAK_SUSPECTED"), nullptr);
  EXPECT_EQ(condition(bench, "LEAK_SUSPECTED")->health(), journal::HEALTH_BAD);
  bench.give(permit_wanted{slot('s', 1), node::permit_kind::power_on});
  EXPECT_TRUE(bench.last_answer(slot('s', 1))->granted);
  bench.arm();
  EXPECT_EQ(condition(bench, "LEAK_SUSPECTED")->health(), journal::HEALTH_GOOD);
}

TEST(bypass, is_shown_with_owner_reason_and_end_until_it_ends) {
  rack_bench bench;
  bench.arm([](interlock::Status& status) { status.set_last_record_number(2); });
  Latch line = line_of(1, Latch::BYPASS, "r01/c01");
  line.set_detector("0_Manifold");
  line.set_principal("uid 7");
  line.set_detail("cable ordered");
  line.set_until_wall_ns(1'700'000'400'000'000'000);
  bench.give(latches_read{{line}});
  ASSERT_NE(condition(bench, "BYPASSED"), nullptr);
  EXPECT_EQ(condition(bench, "BYPASSED")->health(), journal::HEALTH_UNKNOWN);
  for (const char* const part : {"r01/c01", "0_Manifold", "uid 7", "cable ordered", "2023-11-14T22:20:00Z"})
    EXPECT_NE(condition(bench, "BYPASSED")->message().find(part), std::string::npos) << part;
  ASSERT_EQ(bench.state.rack.bypasses_size(), 1);
  Latch end = line_of(2, Latch::BYPASS_ENDED, "r01/c01");
  end.set_detector("0_Manifold");
  bench.give(latches_read{{end}});
  EXPECT_EQ(bench.state.rack.bypasses_size(), 0);
  EXPECT_EQ(condition(bench, "BYPASSED")->health(), journal::HEALTH_GOOD);
}

TEST(interlock_reach, of_what_a_trip_needs_beside_the_trays_is_missed_aloud_after_a_while) {
  rack_bench bench;
  bench.reach(journal::COOLED);
  const auto with = [&bench](bool armed) {
    bench.arm([armed](interlock::Status& status) {
      interlock::DeviceStatus& cdu = *status.add_devices();
      cdu.set_name("cdu01");
      cdu.set_armed(armed);
    });
  };
  with(false);
  EXPECT_EQ(condition(bench, "INTERLOCK_REACHES"), nullptr) << "one late poll is no loss";
  bench.wait_ns(16'000'000'000);
  with(false);
  ASSERT_NE(condition(bench, "INTERLOCK_REACHES"), nullptr);
  EXPECT_NE(condition(bench, "INTERLOCK_REACHES")->message().find("cdu01"), std::string::npos);
  with(true);
  EXPECT_EQ(condition(bench, "INTERLOCK_REACHES")->health(), journal::HEALTH_GOOD);
}

// ---- a rack controller among the members

TEST(rack_controller, comes_in_with_the_rest_needs_no_shelf_and_is_left_alone_by_a_shutdown) {
  rack_bench bench;
  bench.add_controller();
  bench.bring_up();
  EXPECT_EQ(bench.goal(slot('m', 1)), journal::CREDENTIALED) << "before any shelf is on";
  bench.arm();
  bench.cool();
  bench.change_all(journal::POWER_SHELF, [](journal::Node& node) { node.set_step(journal::READY); });
  bench.raise_all(journal::CREDENTIALED);
  EXPECT_EQ(bench.state.rack.step(), journal::STANDBY);
  EXPECT_NE(bench.state.rack.waits_for().find("rack controllers"), std::string::npos);
  bench.change(slot('m', 1), [](journal::Node& node) { node.set_step(journal::CREDENTIALED); });
  EXPECT_EQ(bench.state.rack.step(), journal::INGESTED);
  EXPECT_EQ(bench.goal(slot('m', 1)), journal::READY);
  bench.change(slot('m', 1), [](journal::Node& node) { node.set_step(journal::READY); });
  bench.give(begin_shutdown{"operations/2"});
  EXPECT_EQ(bench.goal(slot('m', 1)), journal::READY);
  EXPECT_TRUE(is_off(bench.node(slot('m', 1))));
}

TEST(rack_controller, that_fails_stops_a_bring_up_before_there_is_liquid_and_lowers_a_rack_in_service) {
  rack_bench bench;
  bench.add_controller();
  bench.bring_up();
  bench.arm();
  bench.cool();
  bench.change_all(journal::POWER_SHELF, [](journal::Node& node) { node.set_step(journal::READY); });
  bench.break_member(slot('m', 1), core::fault::BMC_UNREACHABLE);
  EXPECT_EQ(bench.operation_state(), "FAILED");
  EXPECT_EQ(bench.state.rack.failure().fault(), "BMC_UNREACHABLE");
  EXPECT_EQ(ceiling_of(bench.state.rack.spec(), bench.state.run.members), "degraded");
}

// ---- the arming record

std::string password_of(const journal::Node&) { return "secret"; }

interlock::ArmingRecord record_of(rack_bench& bench, const std::optional<devices::credentials>& cdu) {
  std::set<std::string> all;
  for (const auto& [name, member] : bench.state.run.members) all.insert(name);
  return arming_record(bench.state.rack, bench.state.run.members, all, 5, password_of, cdu);
}

const interlock::ArmedDevice* device_of(const interlock::ArmingRecord& record, const std::string& name) {
  for (const auto& device : record.devices()) {
    if (device.name() == name) return &device;
  }
  return nullptr;
}

void give_cdu(rack_bench& bench, const std::string& pin) {
  journal::CoolingSpec& cooling = *bench.spec().mutable_manifest()->mutable_cooling();
  cooling.set_cdu("cdu01");
  cooling.set_address("127.18.200.1:8443");
  cooling.add_detectors("r01_rope");
  cooling.add_detectors("r01_pan");
  cooling.set_supply_max_c(50);
  cooling.mutable_login()->set_user("reader");
  devices::cooling_facts facts;
  facts.flow_lpm = 200;
  facts.dp_kpa = 60;
  facts.detectors = {{"rope", journal::Detector::DRY, "", std::nullopt}};
  facts.certificate_sha256 = pin;
  bench.give(cooling_read{facts});
}

TEST(arming_record, names_shelves_valves_and_the_cdu_with_its_limits) {
  rack_bench bench;
  bench.add_controller();
  bench.bring_up();
  give_cdu(bench, std::string(64, 'a'));
  const auto record = record_of(bench, devices::credentials{"reader", "pw"});
  EXPECT_EQ(record.devices_size(), static_cast<int>(bench.state.run.members.size()) + 1);
  EXPECT_EQ(device_of(record, slot('p', 3))->kind(), "power_shelf");
  EXPECT_TRUE(device_of(record, slot('p', 3))->detectors().empty());
  const interlock::ArmedDevice& valves = *device_of(record, slot('m', 1));
  EXPECT_EQ(valves.kind(), "rack_controller");
  ASSERT_EQ(valves.valves_size(), 2);
  EXPECT_EQ(valves.valves(0).name(), "supply");
  EXPECT_EQ(valves.valves(0).stroke_ms(), 5000U);
  const interlock::ArmedDevice& cdu = *device_of(record, "cdu01");
  EXPECT_EQ(cdu.kind(), "cdu");
  EXPECT_EQ(cdu.pin_sha256(), std::string(64, 'a'));
  EXPECT_EQ(cdu.account(), "reader");
  EXPECT_EQ(cdu.connector(), "r01");
  EXPECT_EQ(cdu.detectors_size(), 2);
  EXPECT_EQ(record.coolant().flow_min_lpm(), bench.spec().manifest().cooling().flow_min_lpm());
  EXPECT_EQ(record.coolant().supply_max_c(), 50);
  EXPECT_FALSE(record.coolant().has_pressure_max_kpa()) << "not watched is not zero";
}

TEST(arming_record, without_a_known_certificate_or_a_login_there_is_no_cdu_in_it_and_no_limit) {
  rack_bench bench;
  bench.bring_up();
  give_cdu(bench, "");
  EXPECT_EQ(device_of(record_of(bench, devices::credentials{"reader", "pw"}), "cdu01"), nullptr);
  give_cdu(bench, std::string(64, 'a'));
  EXPECT_EQ(device_of(record_of(bench, std::nullopt), "cdu01"), nullptr);
  EXPECT_FALSE(record_of(bench, std::nullopt).has_coolant());
}

TEST(arming_record, keeps_the_first_certificate_of_the_cdu_until_its_address_changes) {
  rack_bench bench;
  bench.bring_up();
  give_cdu(bench, std::string(64, 'a'));
  EXPECT_EQ(known_cdu_pin(bench.state.rack), std::string(64, 'a'));
  give_cdu(bench, std::string(64, 'b'));
  EXPECT_EQ(known_cdu_pin(bench.state.rack), std::string(64, 'a'));
  bench.give(trust_cdu{std::string(64, 'b'), "exchanged"});
  EXPECT_EQ(known_cdu_pin(bench.state.rack), std::string(64, 'b'));
  bench.spec().mutable_manifest()->mutable_cooling()->set_address("127.18.200.2:8443");
  EXPECT_FALSE(known_cdu_pin(bench.state.rack).has_value());
}

TEST(arming_record, what_no_member_asks_for_is_handed_over_by_itself_and_not_again) {
  rack_bench bench;
  bench.bring_up();
  const auto hold = [&bench] { bench.arm([](interlock::Status& status) { status.set_generation(4); }); };
  hold();
  EXPECT_TRUE(bench.effects_of<arm_anew>().empty());
  give_cdu(bench, std::string(64, 'a'));
  ASSERT_EQ(bench.effects_of<arm_anew>().size(), 1U);
  bench.give(record_answered{absl::OkStatus(), 5, shape_of(record_of(bench, devices::credentials{"reader", "pw"}))});
  bench.wait_ns(60'000'000'000);
  hold();
  EXPECT_EQ(bench.effects_of<arm_anew>().size(), 1U);
  bench.spec().mutable_manifest()->mutable_cooling()->set_supply_max_c(45);
  hold();
  EXPECT_EQ(bench.effects_of<arm_anew>().size(), 2U);
}

TEST(arming_record, that_is_refused_is_said_and_what_lacks_a_device_too) {
  rack_bench bench;
  bench.bring_up();
  bench.arm([](interlock::Status& status) { status.set_generation(4); });
  give_cdu(bench, std::string(64, 'a'));
  bench.give(record_answered{absl::FailedPreconditionError("r01/c09 would be removed: only at the operator's socket"), 5, {}});
  ASSERT_NE(condition(bench, "INTERLOCK_RECORD_REFUSED"), nullptr);
  EXPECT_NE(condition(bench, "INTERLOCK_RECORD_REFUSED")->message().find("r01/c09"), std::string::npos);
  bench.give(record_answered{absl::OkStatus(), 6, {}});
  EXPECT_EQ(condition(bench, "INTERLOCK_RECORD_REFUSED")->health(), journal::HEALTH_BAD);
  EXPECT_NE(condition(bench, "INTERLOCK_RECORD_REFUSED")->message().find("cdu01"), std::string::npos);
  bench.give(record_answered{absl::OkStatus(), 7, shape_of(record_of(bench, devices::credentials{"reader", "pw"}))});
  EXPECT_EQ(condition(bench, "INTERLOCK_RECORD_REFUSED")->health(), journal::HEALTH_GOOD);
}

TEST(rack_detectors, are_kept_with_the_rack_and_written_when_a_verdict_changes) {
  rack_bench bench;
  bench.bring_up();
  bench.cool();
  ASSERT_EQ(bench.state.rack.detectors_size(), 2);
  EXPECT_EQ(bench.state.rack.detectors(0).verdict(), journal::Detector::DRY);
  bench.cool();
  EXPECT_FALSE(bench.durable);
  devices::cooling_facts facts;
  facts.detectors = {{"rope", journal::Detector::LEAK, "Critical", std::nullopt}};
  bench.give(cooling_read{facts});
  EXPECT_EQ(bench.state.rack.detectors(0).verdict(), journal::Detector::LEAK);
}

}  // namespace
}  // namespace busbar::rack::test
