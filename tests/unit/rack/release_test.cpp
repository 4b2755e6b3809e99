// Handing a BMC back and trusting a pin, as the rack admits them; and words of waiting that hold still while
// nothing changes.
#include <gtest/gtest.h>

#include <set>

#include "actors/rack/rack_members.hpp"
#include "tests/unit/rack/rack_bench.hpp"

namespace busbar::rack::test {
namespace {

using core::fault;

core::command command(std::string verb, std::string target) {
  core::command what;
  what.verb = std::move(verb);
  what.target = std::move(target);
  return what;
}

void take_over(journal::Node& node) {
  node.set_step(journal::CREDENTIALED);
  node.mutable_access()->set_account_created(true);
  node.mutable_access()->set_interlock_account_created(true);
  node.mutable_access()->set_factory_password_changed(true);
  node.mutable_power()->set_observed(journal::POWER_OFF);
  node.mutable_power()->set_wanted(journal::POWER_OFF);
}

TEST(release_command, is_admitted_only_for_a_tray_that_is_ours_idle_and_read_off) {
  const std::string c01 = slot('c', 1);
  struct row {
    const char* why;
    std::function<void(journal::Node&)> make;
    bool admitted;
    const char* says;
  };
  const row rows[] = {
      {"read off", [](journal::Node&) {}, true, ""},
      {"in production", [](journal::Node& n) { n.set_step(journal::PRODUCTION); }, false, "rack shutdown"},
      {"in production, with what a shutdown takes away", [](journal::Node& n) { n.set_step(journal::PRODUCTION); },
       false, "turn a shelf's output on again"},
      {"staged", [](journal::Node& n) { n.set_step(journal::STAGED); }, false, "rack shutdown"},
      {"read on", [](journal::Node& n) { n.mutable_power()->set_observed(journal::POWER_ON); }, false,
       "read off"},
      {"going on", [](journal::Node& n) { n.mutable_power()->set_observed(journal::POWERING_ON); }, false,
       "read off"},
      {"wanted on", [](journal::Node& n) { n.mutable_power()->set_wanted(journal::POWER_ON); }, false,
       "read off"},
      {"handed back", [](journal::Node& n) { n.set_hold(journal::RELEASED); }, false, "node retry"},
      {"never ours", [](journal::Node& n) { n.clear_access(); }, false, "nothing to hand back"},
  };
  for (const row& one : rows) {
    rack_bench bench;
    bench.change(c01, [&one](journal::Node& node) {
      take_over(node);
      one.make(node);
    });
    const absl::Status status = refuse_command(command("bmc_release", c01), bench.state, false);
    EXPECT_EQ(status.ok(), one.admitted) << one.why << ": " << status;
    if (one.admitted) continue;
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << one.why;
    EXPECT_NE(std::string(status.message()).find(one.says), std::string::npos) << status;
  }
}

TEST(release_command, waits_for_whoever_holds_the_rack) {
  rack_bench bench;
  bench.change(slot('c', 1), take_over);
  bench.bring_up();
  EXPECT_EQ(core::fault_of(refuse_command(command("bmc_release", slot('c', 1)), bench.state, false)),
            fault::OPERATION_CONFLICT);
}

TEST(release_command, ends_when_the_bmc_is_handed_back_and_not_before) {
  rack_bench bench;
  const std::string c01 = slot('c', 1);
  bench.change(c01, [](journal::Node& node) {
    take_over(node);
    node.set_goal(journal::CREDENTIALED);
    node.set_hold(journal::RELEASING);
    node.mutable_access()->set_interlock_armed(true);
    node.set_operation_id("operations/9");
  });
  bench.give(watch_member{"operations/9", c01});
  const auto ends = [&bench] { return bench.effects_of<core::operation_end>(); };
  EXPECT_TRUE(ends().empty());
  bench.change(c01, [](journal::Node& node) {
    node.set_step(journal::DECLARED);
    node.set_hold(journal::RELEASED);
  });
  ASSERT_EQ(ends().size(), 1U);
  EXPECT_EQ(ends().front().state, "SUCCEEDED");
  EXPECT_NE(ends().front().message.find("only a person"), std::string::npos) << ends().front().message;
}

TEST(release_command, a_tray_handed_back_stays_in_the_interlocks_record_as_it_was) {
  rack_bench bench;
  const std::string c01 = slot('c', 1);
  bench.change(c01, [](journal::Node& node) {
    node.mutable_access()->set_interlock_armed(true);
    (*node.mutable_facts())["interlock_pin"] = "aa11";
  });
  const auto record = arming_record(bench.state.rack, bench.state.run.members, {}, 7,
                                    [](const journal::Node&) { return std::string("secret"); });
  const auto found = std::find_if(record.devices().begin(), record.devices().end(),
                                  [&c01](const auto& device) { return device.name() == c01; });
  ASSERT_NE(found, record.devices().end()) << "a record without it would be a wider one";
  EXPECT_EQ(found->pin_sha256(), "aa11");
}

// Two trays get their accounts in one moment, and the rack has not heard the first one's when the second
// asks.
TEST(arming, a_record_holds_every_tray_of_the_records_before_it) {
  rack_bench bench;
  const std::string c01 = slot('c', 1);
  const std::string c02 = slot('c', 2);
  for (const std::string& tray : {c01, c02}) {
    bench.change(tray, [](journal::Node& node) {
      node.mutable_access()->set_interlock_account_created(false);
      node.mutable_access()->set_interlock_armed(false);
    });
  }
  arming_queue queue;
  const auto trays_of = [&bench, &queue] {
    std::set<std::string> names;
    const auto record = arming_record(bench.state.rack, bench.state.run.members, queue.joining(), 7,
                                      [](const journal::Node&) { return std::string("secret"); });
    for (const auto& device : record.devices()) names.insert(device.name());
    return names;
  };
  queue.ask(c01);
  ASSERT_TRUE(queue.begin());
  EXPECT_TRUE(trays_of().contains(c01));
  queue.ask(c02);
  EXPECT_FALSE(queue.begin()) << "one record at a time";
  EXPECT_EQ(queue.end(), std::set<std::string>{c01});
  ASSERT_TRUE(queue.begin());
  EXPECT_TRUE(trays_of().contains(c01));
  EXPECT_TRUE(trays_of().contains(c02));
  EXPECT_EQ(queue.end(), std::set<std::string>{c02});
  EXPECT_FALSE(queue.begin());
}

TEST(trust_command, takes_only_the_certificate_that_is_shown_now) {
  core::command what = command("node_trust", slot('c', 1));
  what.arguments["pin"] = "aa";
  devices::probe_facts shown;
  shown.certificate_sha256 = "aa";
  EXPECT_TRUE(refuse_trust(what, shown).ok());
  shown.certificate_sha256 = "bb";
  const absl::Status other = refuse_trust(what, shown);
  EXPECT_EQ(core::fault_of(other), fault::CERTIFICATE_CHANGED);
  EXPECT_EQ(other.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(core::expected_of(other), "aa");
  EXPECT_EQ(core::seen_of(other), "bb");
  const absl::Status unseen = refuse_trust(what, core::make_fault(fault::BMC_UNREACHABLE, "no route"));
  EXPECT_EQ(core::fault_of(unseen), fault::BMC_UNREACHABLE);
}

// Every reading on one side of the limits gives the same words: a wait that changes its words is a commit.
TEST(waiting, words_hold_still_while_flow_and_pressure_stay_on_their_side_of_the_limits) {
  journal::CoolingSpec limits;
  limits.set_flow_min_lpm(120);
  limits.set_dp_min_kpa(20);
  limits.set_dp_max_kpa(100);
  const core::instant now{1'000'000'000'000, 0};
  const auto words = [&](std::optional<double> flow, std::optional<double> dp) {
    cooling_state state;
    devices::cooling_facts facts;
    facts.flow_lpm = flow;
    facts.dp_kpa = dp;
    take_cooling(state, limits, facts, now);
    const auto no = flow_not_proven(state, limits, now);
    return no.has_value() ? no->why : std::string();
  };
  for (const double flow : {0.0, 3.7, 60.0, 119.9}) EXPECT_EQ(words(flow, 50.0), words(1.0, 61.0)) << flow;
  for (const double dp : {100.1, 140.0, 900.0}) EXPECT_EQ(words(200.0, dp), words(130.0, 101.0)) << dp;
  for (const double dp : {0.0, 7.5, 19.9}) EXPECT_EQ(words(200.0, dp), words(130.0, 1.0)) << dp;
  EXPECT_NE(words(1.0, 50.0), words(200.0, 1.0));
  EXPECT_NE(words(std::nullopt, 50.0), words(1.0, 50.0)) << "unknown is not low";
}

}  // namespace
}  // namespace busbar::rack::test
