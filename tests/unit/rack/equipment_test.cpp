// Valves and PDUs as the rack holds them: what a spec makes of them, what it may not take away, who depends
// on an outlet, and no host power behind a shut valve.
#include <gtest/gtest.h>

#include <algorithm>

#include "actors/core/mutant.hpp"
#include "actors/rack/rack_equipment.hpp"
#include "tests/unit/rack/rack_bench.hpp"

namespace busbar::rack {
namespace {

using core::fault;

// A state in memory: batches are published without a journal.
struct world {
  world() { apply(); }
  journal::RackSpec spec = [] {
    journal::RackSpec made;
    journal::Manifest& manifest = *made.mutable_manifest();
    manifest.set_rack("r01");
    for (const char* name : {"supply", "return"}) {
      journal::ValveSpec& valve = *manifest.add_valves();
      valve.set_name(name);
      valve.set_kind("isolation");
      valve.set_member("m01");
    }
    for (const auto& [pdu, outlet, feeds] : {std::tuple{"u01", "1", "p01"}, {"u02", "1", "p01"}}) {
      journal::PduSpec& strip = *manifest.add_pdus();
      strip.set_name(pdu);
      journal::OutletSpec& row = *strip.add_outlets();
      row.set_id(outlet);
      row.set_feeds(feeds);
    }
    made.mutable_sku()->mutable_power_shelf()->set_psus(6);
    made.mutable_sku()->mutable_power_shelf()->set_psu_watts(5500);
    return made;
  }();
  std::shared_ptr<const core::snapshot> state = std::make_shared<core::snapshot>();

  void publish(core::journal_batch batch) {
    core::committed_batch done;
    done.position.set_revision(state->position.revision() + 1);
    done.batch = std::make_shared<const core::journal_batch>(std::move(batch));
    state = core::advance(*state, {&done, 1});
  }
  void apply() {
    core::journal_batch batch;
    apply_equipment(
        spec, *state, [] { return std::string("uid"); }, batch);
    auto rack = std::make_shared<journal::Rack>();
    rack->set_name("r01");
    *rack->mutable_spec() = spec;
    batch.put(std::shared_ptr<const journal::Rack>(std::move(rack)));
    publish(std::move(batch));
  }
  void member(const std::string& slot, journal::MemberKind kind, journal::PowerState seen,
              journal::PowerState wanted = journal::POWER_UNKNOWN) {
    auto node = std::make_shared<journal::Node>();
    node->set_name("r01/" + slot);
    node->mutable_spec()->set_kind(kind);
    node->mutable_power()->set_observed(seen);
    node->mutable_power()->set_wanted(wanted);
    core::journal_batch batch;
    batch.put(std::shared_ptr<const journal::Node>(std::move(node)));
    publish(std::move(batch));
  }
  void outlet(const std::string& pdu, journal::Outlet::State seen,
              journal::Health health = journal::HEALTH_GOOD) {
    auto strip = std::make_shared<journal::Pdu>(*state->pdu(pdu));
    strip->mutable_outlets(0)->set_state(seen);
    strip->set_health(health);
    core::journal_batch batch;
    batch.put(std::shared_ptr<const journal::Pdu>(std::move(strip)));
    publish(std::move(batch));
  }
};

TEST(equipment, a_spec_declares_keeps_changes_and_removes) {
  world w;
  EXPECT_EQ(w.state->valves->size(), 2U);
  EXPECT_EQ(w.state->pdu("r01/u01")->outlets(0).feeds(), "p01");
  auto proven = std::make_shared<journal::Valve>(*w.state->valve("r01/supply"));
  proven->set_proven_percent(100);
  core::journal_batch batch;
  batch.put(std::shared_ptr<const journal::Valve>(proven));
  w.publish(std::move(batch));
  const auto before = w.state->valve("r01/supply");
  w.apply();
  EXPECT_EQ(w.state->valve("r01/supply"), before) << "as declared before: not even written";
  w.spec.mutable_manifest()->mutable_valves(0)->set_fail_position("open");
  w.spec.mutable_manifest()->mutable_valves()->DeleteSubrange(1, 1);
  w.spec.mutable_manifest()->clear_pdus();
  w.apply();
  EXPECT_EQ(w.state->valve("r01/supply")->proven_percent(), 100) << "what is known of it stays";
  EXPECT_EQ(w.state->valve("r01/supply")->generation(), 2U);
  EXPECT_EQ(w.state->valve("r01/return"), nullptr);
  EXPECT_TRUE(w.state->pdus->empty());
}

TEST(equipment, with_an_open_command_is_not_changed) {
  world w;
  auto moving = std::make_shared<journal::Valve>(*w.state->valve("r01/supply"));
  moving->add_intents()->set_id("r01/supply/set/0");
  core::journal_batch batch;
  batch.put(std::shared_ptr<const journal::Valve>(moving));
  w.publish(std::move(batch));
  EXPECT_TRUE(refuse_equipment_changes(w.spec, *w.state).ok()) << "the same spec again";
  journal::RackSpec changed = w.spec;
  changed.mutable_manifest()->mutable_valves(0)->set_fail_position("open");
  EXPECT_EQ(core::fault_of(refuse_equipment_changes(changed, *w.state)), fault::MEMBER_IN_USE);
  changed.mutable_manifest()->clear_valves();
  EXPECT_EQ(core::fault_of(refuse_equipment_changes(changed, *w.state)), fault::MEMBER_IN_USE);
}

TEST(equipment, only_what_is_read_off_and_not_wanted_on_needs_no_liquid) {
  world w;
  w.member("c01", journal::COMPUTE_TRAY, journal::POWER_OFF, journal::POWER_OFF);
  w.member("c02", journal::COMPUTE_TRAY, journal::POWER_OFF, journal::POWER_ON);
  w.member("c03", journal::COMPUTE_TRAY, journal::POWER_UNKNOWN);
  w.member("s01", journal::SWITCH_TRAY, journal::POWERING_OFF);
  w.member("p01", journal::POWER_SHELF, journal::POWER_ON);
  w.member("m01", journal::RACK_CONTROLLER, journal::POWER_UNKNOWN);
  EXPECT_EQ(hosts_not_off("r01", *w.state), (std::vector<std::string>{"r01/c02", "r01/c03", "r01/s01"}));
}

TEST(equipment, a_trip_of_the_rack_holds_its_valves_and_one_of_a_tray_keeps_them_from_opening) {
  world w;
  interlock_view view;
  auto status = std::make_shared<interlock::Status>();
  auto* trip = status->add_open_trips();
  trip->set_scope("r01/c04");
  view.status = status;
  EXPECT_TRUE(surroundings_of("r01", *w.state, &view).trip.empty());
  EXPECT_FALSE(surroundings_of("r01", *w.state, &view).no_opening.empty());
  trip->set_scope("r01");
  view.life = interlock_life::dead;
  EXPECT_FALSE(surroundings_of("r01", *w.state, &view).trip.empty()) << "a silent interlock ends no trip";
  EXPECT_TRUE(surroundings_of("r01", *w.state, nullptr).no_opening.empty());
  auto latched = std::make_shared<journal::Node>();
  latched->set_name("r01/c05");
  latched->set_leak_latched(true);
  core::journal_batch batch;
  batch.put(std::shared_ptr<const journal::Node>(latched));
  w.publish(std::move(batch));
  EXPECT_FALSE(surroundings_of("r01", *w.state, nullptr).no_opening.empty());
}

TEST(equipment, an_outlet_is_needed_unless_the_hosts_are_off_the_other_feed_is_on_or_other_shelves_carry) {
  world w;
  w.member("p01", journal::POWER_SHELF, journal::POWER_ON);
  const auto needs = [&w] { return what_needs("r01", *w.state, "r01/u01", "1"); };
  EXPECT_TRUE(needs().empty()) << "no host is on";
  w.member("c01", journal::COMPUTE_TRAY, journal::POWER_ON);
  EXPECT_EQ(needs(), std::vector<std::string>{"r01/c01"});
  w.outlet("r01/u02", journal::Outlet::ON);
  EXPECT_TRUE(needs().empty()) << "the other feed is read on";
  w.outlet("r01/u02", journal::Outlet::ON, journal::HEALTH_UNKNOWN);
  EXPECT_EQ(needs().size(), 1U) << "what was on once says nothing now";
  w.outlet("r01/u02", journal::Outlet::UNKNOWN);
  EXPECT_EQ(needs().size(), 1U);
  w.member("p02", journal::POWER_SHELF, journal::POWER_ON);
  EXPECT_TRUE(needs().empty()) << "the other shelf carries one tray";
  for (int i = 2; i < 9; ++i) w.member("c0" + std::to_string(i), journal::COMPUTE_TRAY, journal::POWER_ON);
  EXPECT_EQ(needs().size(), 8U);
}

TEST(equipment, an_outlet_that_feeds_a_tray_is_needed_by_that_tray_alone) {
  world w;
  w.spec.mutable_manifest()->mutable_pdus(0)->mutable_outlets(0)->set_feeds("s01");
  w.apply();
  w.member("c01", journal::COMPUTE_TRAY, journal::POWER_ON);
  w.member("s01", journal::SWITCH_TRAY, journal::POWER_OFF);
  EXPECT_TRUE(what_needs("r01", *w.state, "r01/u01", "1").empty());
  w.member("s01", journal::SWITCH_TRAY, journal::POWER_UNKNOWN);
  EXPECT_EQ(what_needs("r01", *w.state, "r01/u01", "1"), std::vector<std::string>{"r01/s01"});
}

TEST(equipment, no_host_is_powered_behind_a_shut_valve) {
  test::rack_bench bench;
  bench.bring_up();
  bench.reach(journal::COOLED);
  bench.state.run.shut_valves["r01/supply"] = "valve r01/supply is told 0 %";
  bench.give(permit_wanted{"r01/s01", node::permit_kind::power_on});
  const node::permit_answer* const answer = bench.last_answer("r01/s01");
  ASSERT_NE(answer, nullptr);
  EXPECT_FALSE(answer->granted);
  EXPECT_EQ(answer->fault, fault::POWER_FLOW_NOT_PROVEN);
  EXPECT_NE(answer->why.find("r01/supply"), std::string::npos);
  bench.state.run.shut_valves.clear();
  bench.give(wake{});
  EXPECT_TRUE(bench.last_answer("r01/s01")->granted);
}

#ifdef BUSBAR_MUTANTS
TEST(equipment, a_rack_that_did_not_ask_its_valves_would_be_seen) {
  test::rack_bench bench;
  bench.bring_up();
  bench.reach(journal::COOLED);
  bench.state.run.shut_valves["r01/supply"] = "valve r01/supply is told 0 %";
  core::switch_mutant("shut_valve_ignored");
  bench.give(permit_wanted{"r01/s01", node::permit_kind::power_on});
  core::switch_mutant("");
  ASSERT_NE(bench.last_answer("r01/s01"), nullptr);
  EXPECT_TRUE(bench.last_answer("r01/s01")->granted);
}
#endif

TEST(equipment, a_shut_valve_takes_back_a_promise_that_has_not_left) {
  test::rack_bench bench;
  bench.bring_up();
  bench.reach(journal::COOLED);
  bench.give(permit_wanted{"r01/s01", node::permit_kind::power_on});
  ASSERT_TRUE(bench.last_answer("r01/s01")->granted);
  const auto lease = bench.last_answer("r01/s01")->lease;
  ASSERT_TRUE(lease->holds());
  bench.state.run.shut_valves["r01/supply"] = "shut";
  bench.give(wake{});
  EXPECT_FALSE(lease->holds());
}

TEST(equipment, a_power_condition_is_shown_while_it_holds) {
  test::rack_bench bench;
  bench.give(power_judged{"POWER_CAPPED", false, ""});
  const auto rows = [&bench] {
    return std::count_if(
        bench.state.rack.conditions().begin(), bench.state.rack.conditions().end(),
        [](const auto& row) { return row.type() == "POWER_CAPPED" && row.health() == journal::HEALTH_BAD; });
  };
  EXPECT_EQ(rows(), 0) << "what never held is not shown";
  bench.give(power_judged{"POWER_CAPPED", true, "to hold 30 kW"});
  EXPECT_EQ(rows(), 1);
  bench.give(power_judged{"POWER_CAPPED", false, ""});
  EXPECT_EQ(rows(), 0);
}

}  // namespace
}  // namespace busbar::rack
