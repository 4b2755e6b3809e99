#include "actors/core/operations_logic.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "actors/core/errors.hpp"
#include "actors/core/operations_report.hpp"

namespace busbar::core {
namespace {

using act = operation_decision::act;

constexpr std::int64_t second_ns = 1'000'000'000;

class operations : public ::testing::Test {
 protected:
  operations() {
    auto nodes = std::make_shared<object_map<journal::Node>>();
    for (int i = 1; i <= 17; ++i) add(*nodes, "c" + std::string(i < 10 ? "0" : "") + std::to_string(i), journal::COMPUTE_TRAY);
    add(*nodes, "s01", journal::SWITCH_TRAY);
    auto racks = std::make_shared<object_map<journal::Rack>>();
    auto rack = std::make_shared<journal::Rack>();
    rack->set_name("r01");
    racks->emplace("r01", versioned<journal::Rack>{1, rack});
    state.nodes = nodes;
    state.racks = racks;
  }

  static void add(object_map<journal::Node>& nodes, const std::string& slot, journal::MemberKind kind) {
    auto node = std::make_shared<journal::Node>();
    node->set_name("r01/" + slot);
    node->mutable_spec()->set_kind(kind);
    nodes.emplace(node->name(), versioned<journal::Node>{1, node});
  }

  static command bringup(std::string request_id = "a", std::string digest = "1") {
    command what;
    what.verb = "rack_bringup";
    what.target = "r01";
    what.request_id = std::move(request_id);
    what.request_digest = std::move(digest);
    what.principal.set_name("uid:0");
    return what;
  }

  operations_logic logic() const { return operations_logic(config, state, now); }

  // Puts an operation into the state, as if it were committed.
  void keep(const journal::Operation& operation) {
    auto next = std::make_shared<object_map<journal::Operation>>(*state.operations);
    next->insert_or_assign(operation.id(), versioned<journal::Operation>{2, std::make_shared<journal::Operation>(operation)});
    state.operations = next;
  }

  std::string begin(operations_logic& on, const command& what) {
    const operation_decision decision = on.decide(what, state, now);
    EXPECT_EQ(decision.what, act::create) << decision.status;
    on.committed(decision.operation_id, true);
    on.accepted(decision.operation_id);
    return decision.operation_id;
  }

  operations_config config;
  snapshot state;
  instant now{1000 * second_ns, 5'000'000 * second_ns};
};

TEST_F(operations, declare_their_members_at_the_start) {
  operations_logic on = logic();
  const operation_decision decision = on.decide(bringup(), state, now);
  ASSERT_EQ(decision.what, act::create);
  EXPECT_EQ(decision.operation_id, "operations/1");
  EXPECT_EQ(decision.created->components_size(), 18);
  EXPECT_EQ(decision.created->state(), "RUNNING");
  EXPECT_EQ(decision.created->principal().name(), "uid:0");
  EXPECT_EQ(creation_batch(*decision.created).requests.size(), 1u);
}

TEST_F(operations, a_run_of_named_trays_declares_those_and_all_that_is_no_compute_tray) {
  operations_logic on = logic();
  command what = bringup();
  what.arguments["members"] = "r01/c01,r01/c02";
  const operation_decision decision = on.decide(what, state, now);
  ASSERT_EQ(decision.what, act::create);
  ASSERT_EQ(decision.created->components_size(), 3);
  EXPECT_EQ(decision.created->components(2).target(), "r01/s01");
}

TEST_F(operations, an_unknown_target_is_refused_whole) {
  operations_logic on = logic();
  command what = bringup();
  what.arguments["members"] = "r01/c01,r01/c99";
  EXPECT_EQ(fault_of(on.decide(what, state, now).status), fault::UNKNOWN_TARGET);
  what = bringup();
  what.target = "r02";
  EXPECT_EQ(fault_of(on.decide(what, state, now).status), fault::UNKNOWN_TARGET);
  what = bringup();
  what.verb = "node_retry";
  EXPECT_EQ(fault_of(on.decide(what, state, now).status), fault::UNKNOWN_TARGET);
  what.verb = "explode";
  EXPECT_EQ(on.decide(what, state, now).status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(on.unwritten().empty());
  EXPECT_TRUE(on.running().empty());
}

TEST_F(operations, a_repeated_request_starts_nothing_new) {
  operations_logic on = logic();
  const operation_decision first = on.decide(bringup("a"), state, now);
  ASSERT_EQ(first.what, act::create);
  // While it is being begun, and after.
  EXPECT_EQ(on.decide(bringup("a"), state, now).what, act::join);
  on.committed(first.operation_id, true);
  on.accepted(first.operation_id);
  const operation_decision again = on.decide(bringup("a"), state, now);
  EXPECT_EQ(again.what, act::answer);
  EXPECT_EQ(again.operation_id, first.operation_id);
}

TEST_F(operations, the_same_request_id_with_another_body_is_refused) {
  operations_logic on = logic();
  begin(on, bringup("a", "1"));
  const operation_decision other = on.decide(bringup("a", "2"), state, now);
  EXPECT_EQ(other.what, act::refuse);
  EXPECT_EQ(fault_of(other.status), fault::REQUEST_ID_REUSED);
}

TEST_F(operations, a_request_id_is_remembered_over_a_restart_for_a_day) {
  journal::Operation ended;
  ended.set_id("operations/7");
  ended.set_verb("rack_bringup");
  ended.set_target("r01");
  ended.set_state("SUCCEEDED");
  ended.set_request_id("a");
  ended.set_request_digest("1");
  ended.set_created_wall_ns(now.wall_ns - 23 * 3600 * second_ns);
  ended.add_components()->set_target("r01");
  keep(ended);
  {
    operations_logic on = logic();
    const operation_decision again = on.decide(bringup("a"), state, now);
    EXPECT_EQ(again.what, act::answer);
    EXPECT_EQ(again.operation_id, "operations/7");
  }
  ended.set_created_wall_ns(now.wall_ns - 25 * 3600 * second_ns);
  keep(ended);
  operations_logic on = logic();
  const operation_decision fresh = on.decide(bringup("a"), state, now);
  EXPECT_EQ(fresh.what, act::create);
  EXPECT_EQ(fresh.operation_id, "operations/8") << "an id is never used twice";
}

TEST_F(operations, a_second_run_of_the_same_conflicts) {
  operations_logic on = logic();
  begin(on, bringup("a"));
  const operation_decision second = on.decide(bringup("b"), state, now);
  EXPECT_EQ(fault_of(second.status), fault::OPERATION_CONFLICT);
  EXPECT_NE(std::string(second.status.message()).find("busbar ops cancel r01/operations/1"), std::string::npos)
      << "names what runs and the command that stops it";
}

TEST_F(operations, sixteen_of_seventeen_is_failed_with_all_rows) {
  operations_logic on = logic();
  const std::string id = begin(on, bringup());
  on.report(component_update{id, "r01/s01", "SUCCEEDED", "production", "", ""});
  for (int i = 1; i <= 16; ++i) {
    const std::string slot = "r01/c" + std::string(i < 10 ? "0" : "") + std::to_string(i);
    EXPECT_TRUE(on.report(component_update{id, slot, "SUCCEEDED", "production", "", ""}));
  }
  EXPECT_TRUE(on.report(component_update{id, "r01/c17", "FAILED", "identified", "IDENTITY_SERIAL_MISMATCH", "A is not B"}));
  ASSERT_TRUE(on.report(operation_end{id, "SUCCEEDED", "", ""}, now));
  const auto operation = on.find(id);
  EXPECT_EQ(operation->state(), "FAILED");
  EXPECT_EQ(operation->fault(), "IDENTITY_SERIAL_MISMATCH");
  EXPECT_EQ(operation->message(), "17 of 18 succeeded");
  ASSERT_EQ(operation->components_size(), 18);
}

TEST_F(operations, a_row_without_result_is_not_a_success) {
  operations_logic on = logic();
  const std::string id = begin(on, bringup());
  ASSERT_TRUE(on.report(operation_end{id, "SUCCEEDED", "", ""}, now));
  const auto operation = on.find(id);
  EXPECT_EQ(operation->state(), "FAILED");
  for (const auto& row : operation->components()) EXPECT_EQ(row.state(), "FAILED") << row.target();
}

TEST_F(operations, all_of_all_is_succeeded) {
  operations_logic on = logic();
  command what = bringup();
  what.arguments["members"] = "r01/c01";
  const std::string id = begin(on, what);
  on.report(component_update{id, "r01/c01", "FAILED", "", "DEADLINE", "late"});
  on.report(component_update{id, "r01/c01", "SUCCEEDED", "production", "", ""});
  on.report(component_update{id, "r01/s01", "SUCCEEDED", "production", "", ""});
  ASSERT_TRUE(on.report(operation_end{id, "SUCCEEDED", "", ""}, now));
  EXPECT_EQ(on.find(id)->state(), "SUCCEEDED");
  EXPECT_EQ(on.find(id)->components(0).fault(), "");
}

TEST_F(operations, what_was_not_declared_is_ignored_and_counted) {
  operations_logic on = logic();
  const std::string id = begin(on, bringup());
  EXPECT_FALSE(on.report(component_update{id, "r01/c99", "SUCCEEDED", "", "", ""}));
  EXPECT_FALSE(on.report(component_update{"operations/99", "r01/c01", "SUCCEEDED", "", "", ""}));
  EXPECT_FALSE(on.report(operation_end{id, "RUNNING", "", ""}, now));
  EXPECT_EQ(on.ignored_reports(), 3u);
}

TEST_F(operations, a_late_report_changes_no_ended_operation) {
  operations_logic on = logic();
  const std::string id = begin(on, bringup());
  ASSERT_TRUE(on.report(operation_end{id, "CANCELLED", "", "by a person"}, now));
  EXPECT_FALSE(on.report(component_update{id, "r01/c01", "SUCCEEDED", "", "", ""}));
  EXPECT_FALSE(on.report(operation_end{id, "SUCCEEDED", "", ""}, now));
  EXPECT_EQ(on.find(id)->state(), "CANCELLED");
  EXPECT_EQ(on.find(id)->components(0).state(), "CANCELLED");
}

TEST_F(operations, every_operation_ends_by_its_deadline) {
  config.deadlines["rack_bringup"] = std::chrono::seconds(60);
  operations_logic on = logic();
  const std::string id = begin(on, bringup());
  now.monotonic_ns += 59 * second_ns;
  EXPECT_TRUE(on.expire(now).empty());
  now.monotonic_ns += second_ns;
  EXPECT_EQ(on.expire(now), std::vector<std::string>{id});
  EXPECT_EQ(on.find(id)->state(), "FAILED");
  EXPECT_EQ(on.find(id)->fault(), "DEADLINE");
  EXPECT_TRUE(on.expire(now).empty());
}

TEST_F(operations, a_step_of_the_wall_clock_ends_nothing) {
  config.deadlines["rack_bringup"] = std::chrono::seconds(60);
  operations_logic on = logic();
  begin(on, bringup());
  now.wall_ns += 365 * 24 * 3600 * second_ns;
  EXPECT_TRUE(on.expire(now).empty());
}

TEST_F(operations, what_was_running_is_taken_over_with_what_is_left_of_its_time) {
  journal::Operation running;
  running.set_id("operations/3");
  running.set_verb("rack_bringup");
  running.set_target("r01");
  running.set_state("RUNNING");
  running.set_deadline_wall_ns(now.wall_ns + 10 * second_ns);
  keep(running);
  operations_logic on = logic();
  ASSERT_EQ(on.running().size(), 1u);
  EXPECT_TRUE(on.expire(now).empty());
  now.monotonic_ns += 10 * second_ns;
  EXPECT_EQ(on.expire(now).size(), 1u);
}

TEST_F(operations, a_refusal_is_remembered_as_the_answer) {
  operations_logic on = logic();
  const operation_decision first = on.decide(bringup("a"), state, now);
  on.committed(first.operation_id, true);
  ASSERT_TRUE(on.refused(first.operation_id, make_fault(fault::OPERATION_CONFLICT, "r01 is shutting down"), now));
  const auto batch = on.take_commit(first.operation_id, state, now);
  ASSERT_TRUE(batch.has_value());
  EXPECT_EQ(on.find(first.operation_id)->state(), "FAILED");
  keep(*on.find(first.operation_id));
  on.committed(first.operation_id, true);
  const operation_decision again = on.decide(bringup("a"), state, now);
  EXPECT_EQ(again.what, act::refuse);
  EXPECT_EQ(fault_of(again.status), fault::OPERATION_CONFLICT);
  EXPECT_EQ(again.status.message(), "r01 is shutting down");
}

TEST_F(operations, changes_during_a_write_go_into_the_next_one) {
  operations_logic on = logic();
  const std::string id = begin(on, bringup());
  on.report(component_update{id, "r01/c01", "RUNNING", "identified", "", ""});
  ASSERT_TRUE(on.take_commit(id, state, now).has_value());
  on.report(component_update{id, "r01/c02", "RUNNING", "identified", "", ""});
  on.report(component_update{id, "r01/c03", "RUNNING", "identified", "", ""});
  EXPECT_FALSE(on.take_commit(id, state, now).has_value()) << "one write at a time";
  on.committed(id, true);
  ASSERT_TRUE(on.take_commit(id, state, now).has_value());
  on.committed(id, true);
  EXPECT_FALSE(on.take_commit(id, state, now).has_value());
}

TEST_F(operations, a_refused_write_is_tried_again) {
  operations_logic on = logic();
  const std::string id = begin(on, bringup());
  ASSERT_TRUE(on.report(operation_end{id, "CANCELLED", "", ""}, now));
  ASSERT_TRUE(on.take_commit(id, state, now).has_value());
  on.committed(id, false);
  EXPECT_EQ(on.unwritten(), std::vector<std::string>{id});
  ASSERT_TRUE(on.take_commit(id, state, now).has_value());
  on.committed(id, true);
  EXPECT_EQ(on.find(id), nullptr);
}

TEST_F(operations, cancelling_an_ended_operation_is_refused_with_how_it_ended) {
  command what;
  what.verb = "operation_cancel";
  what.target = "operations/3";
  for (const char* how : {"SUCCEEDED", "FAILED", "CANCELLED"}) {
    journal::Operation ended;
    ended.set_id("operations/3");
    ended.set_verb("rack_bringup");
    ended.set_target("r01");
    ended.set_state(how);
    ended.set_message("in its own words");
    keep(ended);
    operations_logic before = logic();
    for (const bool check_only : {false, true}) {
      what.validate_only = check_only;
      const operation_decision refused = before.decide(what, state, now);
      EXPECT_EQ(fault_of(refused.status), fault::OPERATION_ENDED);
      EXPECT_EQ(refused.status.code(), absl::StatusCode::kFailedPrecondition);
      const std::string words(refused.status.message());
      for (const std::string& part : {std::string("r01/operations/3"), std::string(how), std::string("in its own words")})
        EXPECT_NE(words.find(part), std::string::npos) << words;
    }
  }
  what.validate_only = false;
  operations_logic on = logic();
  what.target = "operations/4";
  EXPECT_EQ(fault_of(on.decide(what, state, now).status), fault::UNKNOWN_TARGET);
  const std::string id = begin(on, bringup());
  what.target = id;
  EXPECT_EQ(on.decide(what, state, now).what, act::cancel);
  ASSERT_TRUE(on.report(operation_end{id, "CANCELLED", "", ""}, now));
  EXPECT_EQ(fault_of(on.decide(what, state, now).status), fault::OPERATION_ENDED) << "ended, not yet written";
}

TEST_F(operations, a_cancel_sent_again_after_it_worked_is_answered_as_the_first_time) {
  operations_logic on = logic();
  command what;
  what.verb = "operation_cancel";
  what.target = begin(on, bringup());
  what.request_id = "c";
  EXPECT_EQ(on.decide(what, state, now).what, act::cancel);
  ASSERT_TRUE(on.report(operation_end{what.target, "CANCELLED", "", ""}, now));
  EXPECT_EQ(on.decide(what, state, now).what, act::answer);
  what.request_id = "d";
  EXPECT_EQ(fault_of(on.decide(what, state, now).status), fault::OPERATION_ENDED);
}

TEST_F(operations, checking_only_creates_nothing) {
  operations_logic on = logic();
  command what = bringup();
  what.validate_only = true;
  EXPECT_EQ(on.decide(what, state, now).what, act::validate);
  EXPECT_EQ(on.find("operations/1"), nullptr);
}

TEST_F(operations, old_ones_make_room_but_not_the_newest) {
  config.kept_count = 2;
  for (int i = 1; i <= 5; ++i) {
    journal::Operation old;
    old.set_id("operations/" + std::to_string(i));
    old.set_state("SUCCEEDED");
    old.set_ended_wall_ns(1);
    keep(old);
  }
  operations_logic on = logic();
  const std::string id = begin(on, bringup());
  ASSERT_TRUE(on.report(operation_end{id, "CANCELLED", "", ""}, now));
  const auto batch = on.take_commit(id, state, now);
  ASSERT_TRUE(batch.has_value());
  ASSERT_EQ(batch->erases.size(), 3u);
  EXPECT_EQ(batch->erases[0].name, "operations/1");
  EXPECT_EQ(batch->erases[2].name, "operations/3");
}

}  // namespace
}  // namespace busbar::core
