// Valve, PDU and caps as actors: a command is durable before the device hears of it, its operation ends by
// what is read, and a refused commit asks nothing.
#include <gtest/gtest.h>

#include <caf/actor_cast.hpp>
#include <caf/send.hpp>

#include <algorithm>
#include <map>

#include "actors/core/journal_actor.hpp"
#include "actors/core/mutant.hpp"
#include "actors/core/operations_actor.hpp"
#include "actors/pdu/pdu_actor.hpp"
#include "actors/shelf/cap_actor.hpp"
#include "actors/valve/valve_actor.hpp"
#include "storage/journal_log.hpp"
#include "storage/memory_store.hpp"
#include "tests/support/deterministic.hpp"

namespace busbar {
namespace {

using namespace std::chrono_literals;

// A valve of 5 s stroke that answers inline.
struct valve_under_test final : devices::valve_port {
  explicit valve_under_test(std::function<double()> clock_s) : seconds(std::move(clock_s)) {}
  double stem() const {
    const double way = goal - from;
    const double moved = std::min(std::abs(way), 20.0 * (seconds() - since));
    return from + std::copysign(moved, way);
  }
  void read(devices::answer<devices::valve_facts> reply) override {
    ++reads;
    devices::valve_facts facts;
    facts.position_percent = stem();
    reply(facts);
  }
  void write(double percent, devices::done reply) override {
    intents_at_write.push_back(open_intents());
    from = stem();
    goal = percent;
    since = seconds();
    reply(absl::OkStatus());
  }
  std::function<double()> seconds;
  std::function<std::size_t()> open_intents;
  double from = 100, goal = 100, since = 0;
  int reads = 0;
  std::vector<std::size_t> intents_at_write;  // as durable when the write came
};

struct strip_under_test final : devices::outlet_bank {
  void read(std::function<void(absl::StatusOr<std::vector<devices::outlet_facts>>)> reply) override {
    devices::outlet_facts one;
    one.id = "1";
    one.state = on ? devices::outlet_state::on : devices::outlet_state::off;
    one.power_w = on ? 300.0 : 0.0;
    reply(std::vector<devices::outlet_facts>{one});
  }
  void ask(const std::string&, devices::outlet_act act, std::function<void(absl::Status)> reply) override {
    ++asks;
    if (obeys) on = act == devices::outlet_act::on;
    reply(absl::OkStatus());
  }
  bool on = true, obeys = true;
  int asks = 0;
};

class equipment_actors : public test_support::deterministic_fixture {
 protected:
  void SetUp() override {
    options_.clock = [this] { return clock(); };
    options_.boot_id = "boot";
    life();
    core::journal_batch batch;
    auto rack = std::make_shared<journal::Rack>();
    rack->set_name("r01");
    batch.put(std::shared_ptr<const journal::Rack>(rack));
    journal::ValveSpec spec;
    spec.set_name("supply");
    spec.set_kind("isolation");
    spec.mutable_stroke()->set_seconds(5);
    batch.put(std::make_shared<const journal::Valve>(valve::declared_valve("r01", spec, "u")));
    journal::PduSpec strip;
    strip.set_name("u01");
    strip.add_outlets()->set_id("1");
    batch.put(std::make_shared<const journal::Pdu>(pdu::declared_pdu("r01", strip, "u")));
    for (const auto& [name, kind] :
         {std::pair{"r01/c01", journal::COMPUTE_TRAY}, {"r01/p01", journal::POWER_SHELF}}) {
      auto node = std::make_shared<journal::Node>();
      node->set_name(name);
      node->mutable_spec()->set_kind(kind);
      node->mutable_power()->set_observed(journal::POWER_ON);
      batch.put(std::shared_ptr<const journal::Node>(node));
    }
    ASSERT_TRUE(ask<core::commit_ptr>(journal_, core::commit_atom_v,
                                      core::batch_ptr(std::make_shared<const core::journal_batch>(batch))));
    stem_ = std::make_shared<valve_under_test>([this] { return seconds(); });
    stem_->open_intents = [this] {
      const auto contents = log_->load();
      return contents.ok() ? contents->open_intents.size() : std::size_t{99};
    };
    strip_ = std::make_shared<strip_under_test>();
    owners();
  }
  void TearDown() override {
    operations_ = nullptr;
    journal_ = nullptr;
    valve_ = nullptr;
    pdu_ = nullptr;
    caps_ = nullptr;
    deterministic_fixture::TearDown();
  }

  core::instant clock() const { return {now().time_since_epoch().count(), wall_ns()}; }
  double seconds() const { return static_cast<double>(now().time_since_epoch().count()) / 1e9; }

  void life() {
    auto log = storage::journal_log::open(disk_, options_);
    ASSERT_TRUE(log.ok()) << log.status();
    log_ = *log;
    auto contents = log_->load();
    ASSERT_TRUE(contents.ok()) << contents.status();
    hub_ = std::make_shared<core::snapshot_hub>(contents->state);
    journal_ = core::spawn_journal(actors(), {log_, hub_}, {}, false);
    operations_ = core::spawn_operations(actors(), {journal_, hub_, options_.clock}, {});
  }
  void owners() {
    valve::valve_dependencies to_valve;
    to_valve.journal = journal_;
    to_valve.operations = operations_;
    to_valve.board = board_;
    to_valve.clock = options_.clock;
    to_valve.look = [this] { return around_; };
    to_valve.tell = [this](const std::shared_ptr<const journal::Valve>& told) { told_ = told; };
    to_valve.want_session = [this] { ++sessions_; };
    valve_ = valve::spawn_valve(actors(), to_valve, *hub_->read()->valve("r01/supply"));
    auto bound = std::make_shared<valve::bound_port>();
    bound->port = stem_;
    caf::anon_send(valve_, valve::bound_port_ptr(bound));
    pdu::pdu_dependencies to_pdu;
    to_pdu.journal = journal_;
    to_pdu.operations = operations_;
    to_pdu.board = board_;
    to_pdu.bank = strip_;
    to_pdu.clock = options_.clock;
    to_pdu.needs = [this](const std::string&) { return needs_; };
    pdu_ = pdu::spawn_pdu(actors(), to_pdu, *hub_->read()->pdu("r01/u01"));
    settle();
  }
  core::command_ptr command(const std::string& verb, const std::string& target,
                            std::map<std::string, std::string> arguments) const {
    auto made = std::make_shared<core::command>();
    made->verb = verb;
    made->target = target;
    made->arguments = std::move(arguments);
    made->principal.set_name("alice");
    made->reason = "test";
    return made;
  }
  bool submit(const auto& owner, const core::command_ptr& what, const std::string& operation) {
    return static_cast<bool>(ask<core::command_result_ptr>(owner, core::submit_atom_v, what, operation));
  }
  std::shared_ptr<const journal::Valve> stored() const { return hub_->read()->valve("r01/supply"); }

  storage::journal_options options_;
  std::shared_ptr<storage::memory_store> disk_ = std::make_shared<storage::memory_store>();
  std::shared_ptr<storage::journal_log> log_;
  std::shared_ptr<core::snapshot_hub> hub_;
  std::shared_ptr<core::reading_board> board_ = std::make_shared<core::reading_board>();
  core::journal_actor journal_;
  core::operations_actor operations_;
  valve::valve_actor valve_;
  pdu::pdu_actor pdu_;
  shelf::cap_actor caps_;
  std::shared_ptr<valve_under_test> stem_;
  std::shared_ptr<strip_under_test> strip_;
  valve::surroundings around_;
  std::vector<std::string> needs_;
  std::shared_ptr<const journal::Valve> told_;
  int sessions_ = 0;
};

TEST_F(equipment_actors, a_valve_is_told_when_its_intent_is_durable_and_proven_when_it_is_read) {
  advance(2s);
  ASSERT_TRUE(submit(valve_, command("valve_set", "r01/supply", {{"opening_percent", "0"}}), "operations/1"));
  ASSERT_EQ(stem_->intents_at_write.size(), 1U);
  EXPECT_EQ(stem_->intents_at_write[0], 1U) << "the write left before its intent was on disk";
  advance(10s);
  EXPECT_EQ(stored()->proof(), "proven");
  EXPECT_EQ(stored()->proven_percent(), 0);
  EXPECT_EQ(told_->proof(), "proven") << "the rack is told";
  EXPECT_EQ(board_->find("r01/valves/supply/position")->value, 0);
  EXPECT_EQ(log_->load()->open_intents.size(), 0U);
}

#ifdef BUSBAR_MUTANTS
TEST_F(equipment_actors, a_valve_told_before_its_intent_is_durable_would_be_seen) {
  advance(2s);
  core::switch_mutant("valve_written_before_durable");
  const bool taken =
      submit(valve_, command("valve_set", "r01/supply", {{"opening_percent", "0"}}), "operations/1");
  core::switch_mutant("");
  ASSERT_TRUE(taken);
  ASSERT_EQ(stem_->intents_at_write.size(), 1U);
  EXPECT_EQ(stem_->intents_at_write[0], 0U);
}
#endif

TEST_F(equipment_actors, a_valve_is_read_each_second_and_four_times_a_second_while_it_moves) {
  advance(3s);
  const int before = stem_->reads;
  advance(10s);
  EXPECT_EQ(stem_->reads, before + 10);
  ASSERT_TRUE(submit(valve_, command("valve_set", "r01/supply", {{"opening_percent", "0"}}), "operations/1"));
  advance(1s);
  const int moving = stem_->reads;
  advance(2s);
  EXPECT_EQ(stem_->reads, moving + 8);
}

TEST_F(equipment_actors, a_full_disk_moves_no_valve_and_the_command_goes_on_when_there_is_room) {
  advance(2s);
  disk_->fill_disk(true);
  ASSERT_TRUE(submit(valve_, command("valve_set", "r01/supply", {{"opening_percent", "0"}}), "operations/1"));
  advance(30s);
  EXPECT_TRUE(stem_->intents_at_write.empty());
  disk_->fill_disk(false);
  advance(60s);
  EXPECT_EQ(stem_->intents_at_write.size(), 1U);
  EXPECT_EQ(stored()->proof(), "proven");
}

TEST_F(equipment_actors, refusals_and_dry_runs_move_nothing) {
  advance(2s);
  around_.hosts = {"r01/c01"};
  EXPECT_FALSE(
      submit(valve_, command("valve_set", "r01/supply", {{"opening_percent", "0"}}), "operations/1"));
  around_.hosts.clear();
  auto dry = std::make_shared<core::command>(*command("valve_set", "r01/supply", {{"opening_percent", "0"}}));
  dry->validate_only = true;
  const auto said =
      ask<core::command_result_ptr>(valve_, core::submit_atom_v, core::command_ptr(dry), std::string());
  ASSERT_TRUE(said);
  EXPECT_NE((*said)->message.find("would move isolation valve r01/supply"), std::string::npos);
  advance(10s);
  EXPECT_TRUE(stem_->intents_at_write.empty());
}

TEST_F(equipment_actors, an_unread_valve_asks_for_a_session_now_and_then) {
  caf::anon_send(valve_, valve::bound_port_ptr(std::make_shared<const valve::bound_port>()));
  advance(31s);
  EXPECT_GE(sessions_, 5);
  EXPECT_LE(sessions_, 8);
}

TEST_F(equipment_actors, an_outlet_goes_off_by_what_is_read_and_stays_where_it_is_needed) {
  advance(2s);
  needs_ = {"r01/c01"};
  EXPECT_FALSE(
      submit(pdu_, command("outlet_switch", "r01/u01", {{"outlet", "1"}, {"wish", "off"}}), "operations/1"));
  needs_.clear();
  ASSERT_TRUE(
      submit(pdu_, command("outlet_switch", "r01/u01", {{"outlet", "1"}, {"wish", "off"}}), "operations/2"));
  advance(3s);
  EXPECT_EQ(hub_->read()->pdu("r01/u01")->outlets(0).state(), journal::Outlet::OFF);
  EXPECT_EQ(board_->find("r01/pdus/u01/1/power")->value, 0);
  strip_->obeys = false;
  ASSERT_TRUE(
      submit(pdu_, command("outlet_switch", "r01/u01", {{"outlet", "1"}, {"wish", "on"}}), "operations/3"));
  advance(45s);
  EXPECT_EQ(hub_->read()->pdu("r01/u01")->outlets(0).proof(), "failed");
  EXPECT_EQ(strip_->asks, 2);
}

TEST_F(equipment_actors, an_operators_cap_is_kept_and_conditions_are_told) {
  std::map<std::string, bool> conditions;
  shelf::cap_dependencies to_caps;
  to_caps.journal = journal_;
  to_caps.operations = operations_;
  to_caps.hub = hub_;
  to_caps.board = board_;
  to_caps.clock = options_.clock;
  to_caps.tell = [&conditions](const shelf::condition_judged& told) { conditions[told.type] = told.holds; };
  to_caps.setting.rack = "r01";
  to_caps.setting.rack_limit_w = 30'000;
  to_caps.setting.gpu_min_w = 400;
  to_caps.setting.gpu_max_w = 2300;
  to_caps.setting.shelf_w = 33'000;
  to_caps.setting.gpus_per_tray = 1;
  caps_ = shelf::spawn_caps(actors(), to_caps);
  const auto read = [this](const std::string& point, double value) {
    core::named_reading row;
    row.name = point;
    row.what.value = value;
    row.what.quality = core::reading_quality::good;
    row.what.received_wall_ns = wall_ns();
    board_->put({&row, 1});
  };
  read("r01/p01/output_power", 5'000);
  read("r01/c01/gpu0/power_limit", 2300);
  read("r01/c01/gpu0/power", 1000);
  advance(2s);
  EXPECT_FALSE(conditions["POWER_CAPPED"]);
  ASSERT_TRUE(submit(caps_, command("power_cap", "r01", {{"gpu_watts", "900"}}), "operations/1"));
  advance(2s);
  EXPECT_TRUE(conditions["POWER_CAPPED"]);
  ASSERT_NE(hub_->read()->record("caps/r01"), nullptr);
  EXPECT_NE(hub_->read()->record("caps/r01")->find("900"), std::string::npos);
}

}  // namespace
}  // namespace busbar
