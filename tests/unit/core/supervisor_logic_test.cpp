#include "actors/core/supervisor_logic.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace busbar::core {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr supervisor_logic::time_point start{std::chrono::hours(24)};

child_plan child(std::string name, restart_policy restart = restart_policy::permanent) {
  return {.name = std::move(name), .restart = restart, .stop_limit = 5s, .kill_limit = 2s};
}

supervisor_plan plan(restart_scope scope = restart_scope::one) {
  return {.name = "test", .limits = {.at_most = 3, .within = 1min, .first_back_off = 100ms, .longest_back_off = 1s}, .scope = scope};
}

supervisor_effect starts(std::size_t index) { return start_child{index}; }
supervisor_effect stops(std::size_t index) { return stop_child{index}; }
supervisor_effect kills(std::size_t index) { return kill_child{index}; }
supervisor_effect ends(std::string failure = "") { return end_supervisor{std::move(failure)}; }

// All children running.
supervisor_logic running(supervisor_plan what, std::vector<child_plan> children) {
  const std::size_t count = children.size();
  supervisor_logic logic(std::move(what), std::move(children));
  logic.begin(start);
  for (std::size_t i = 0; i < count; ++i) logic.child_started(i, start);
  return logic;
}

TEST(supervisor_logic, starts_children_in_order_each_after_the_one_before) {
  supervisor_logic logic(plan(), {child("a"), child("b"), child("c")});
  EXPECT_THAT(logic.begin(start), ElementsAre(starts(0)));
  EXPECT_THAT(logic.child_started(0, start), ElementsAre(starts(1)));
  EXPECT_THAT(logic.child_started(1, start), ElementsAre(starts(2)));
  EXPECT_THAT(logic.child_started(2, start), IsEmpty());
  EXPECT_EQ(logic.next_deadline(), std::nullopt);
}

TEST(supervisor_logic, restarts_after_a_back_off_that_doubles_up_to_its_limit) {
  auto what = plan();
  what.limits.at_most = 10;
  auto logic = running(what, {child("a")});
  auto now = start;
  for (const auto wait : {100ms, 200ms, 400ms, 800ms, 1000ms, 1000ms}) {
    EXPECT_THAT(logic.child_down(0, false, "crash", now), IsEmpty());
    EXPECT_EQ(logic.next_deadline(), now + wait);
    EXPECT_THAT(logic.tick(now + wait - 1ns), IsEmpty());
    now += wait;
    EXPECT_THAT(logic.tick(now), ElementsAre(starts(0)));
    logic.child_started(0, now);
  }
  EXPECT_EQ(logic.starts(0), 7U);
}

TEST(supervisor_logic, restart_policies_are_kept) {
  auto logic = running(plan(), {child("permanent"), child("transient", restart_policy::transient),
                                child("temporary", restart_policy::temporary)});
  logic.child_down(0, true, "done", start);
  logic.child_down(1, true, "done", start);
  logic.child_down(2, false, "crash", start);
  EXPECT_EQ(logic.phase(0), child_phase::down);
  EXPECT_EQ(logic.phase(1), child_phase::ended);
  EXPECT_EQ(logic.phase(2), child_phase::ended);
}

TEST(supervisor_logic, a_transient_child_that_crashes_is_started_again) {
  auto logic = running(plan(), {child("transient", restart_policy::transient)});
  logic.child_down(0, false, "crash", start);
  EXPECT_THAT(logic.tick(start + 100ms), ElementsAre(starts(0)));
}

TEST(supervisor_logic, one_failure_too_many_stops_all_and_escalates_with_the_name) {
  auto logic = running(plan(), {child("store"), child("rack")});
  auto now = start;
  for (int i = 0; i < 3; ++i) {
    logic.child_down(1, false, "crash", now);
    now += 1s;
    EXPECT_THAT(logic.tick(now), ElementsAre(starts(1)));
    logic.child_started(1, now);
  }
  EXPECT_THAT(logic.child_down(1, false, "disk on fire", now), ElementsAre(stops(0)));
  const auto last = logic.child_down(0, true, "", now);
  ASSERT_EQ(last.size(), 1U);
  const auto& failure = std::get<end_supervisor>(last.front()).failure;
  EXPECT_THAT(failure, HasSubstr("rack"));
  EXPECT_THAT(failure, HasSubstr("disk on fire"));
}

TEST(supervisor_logic, failures_older_than_the_window_do_not_count) {
  auto logic = running(plan(), {child("a")});
  auto now = start;
  for (int i = 0; i < 20; ++i) {
    EXPECT_THAT(logic.child_down(0, false, "crash", now), IsEmpty());
    now += 31s;
    EXPECT_THAT(logic.tick(now), ElementsAre(starts(0)));
    logic.child_started(0, now);
  }
}

TEST(supervisor_logic, a_factory_that_fails_counts_as_a_failure) {
  supervisor_logic logic(plan(), {child("a"), child("b")});
  logic.begin(start);
  EXPECT_THAT(logic.child_down(0, false, "no disk", start), ElementsAre(starts(1))) << "scope one: b does not wait for a";
  EXPECT_EQ(logic.phase(0), child_phase::down);
}

TEST(supervisor_logic, scope_rest_stops_later_children_in_reverse_and_starts_all_in_order) {
  auto logic = running(plan(restart_scope::rest), {child("a"), child("b"), child("c"), child("d")});
  EXPECT_THAT(logic.child_down(1, false, "crash", start), ElementsAre(stops(3)));
  EXPECT_THAT(logic.tick(start + 200ms), IsEmpty()) << "b waits until all that held its handle is gone";
  EXPECT_THAT(logic.child_down(3, true, "", start + 300ms), ElementsAre(stops(2)));
  EXPECT_THAT(logic.child_down(2, true, "", start + 300ms), ElementsAre(starts(1)));
  EXPECT_THAT(logic.child_started(1, start + 300ms), ElementsAre(starts(2)));
  EXPECT_THAT(logic.child_started(2, start + 300ms), ElementsAre(starts(3)));
  EXPECT_THAT(logic.child_started(3, start + 300ms), IsEmpty());
  EXPECT_EQ(logic.starts(0), 1U);
}

TEST(supervisor_logic, scope_rest_waits_out_the_back_off_without_an_idle_timer) {
  auto logic = running(plan(restart_scope::rest), {child("a"), child("b")});
  EXPECT_THAT(logic.child_down(0, false, "crash", start), ElementsAre(stops(1)));
  EXPECT_THAT(logic.child_down(1, true, "", start), IsEmpty());
  EXPECT_EQ(logic.next_deadline(), start + 100ms) << "not b's, which is over";
  EXPECT_THAT(logic.tick(start + 100ms), ElementsAre(starts(0)));
}

TEST(supervisor_logic, stops_in_reverse_order_one_at_a_time) {
  auto logic = running(plan(), {child("a"), child("b"), child("c")});
  EXPECT_THAT(logic.stop(start), ElementsAre(stops(2)));
  EXPECT_THAT(logic.stop(start), IsEmpty()) << "asked twice";
  EXPECT_THAT(logic.child_down(2, true, "", start), ElementsAre(stops(1)));
  EXPECT_THAT(logic.child_down(1, true, "", start), ElementsAre(stops(0)));
  EXPECT_THAT(logic.child_down(0, true, "", start), ElementsAre(ends()));
  EXPECT_EQ(logic.next_deadline(), std::nullopt);
}

TEST(supervisor_logic, kills_a_child_that_ignores_stop_and_goes_on) {
  auto logic = running(plan(), {child("a"), child("b")});
  EXPECT_THAT(logic.stop(start), ElementsAre(stops(1)));
  EXPECT_EQ(logic.next_deadline(), start + 5s);
  EXPECT_THAT(logic.tick(start + 5s), ElementsAre(kills(1)));
  EXPECT_THAT(logic.child_down(1, false, "killed", start + 5s), ElementsAre(stops(0)));
  EXPECT_THAT(logic.child_down(0, true, "", start + 6s), ElementsAre(ends()));
}

TEST(supervisor_logic, gives_up_a_child_that_survives_kill_and_names_it) {
  auto logic = running(plan(), {child("a"), child("hangs")});
  logic.stop(start);
  logic.tick(start + 5s);
  EXPECT_THAT(logic.tick(start + 7s), ElementsAre(stops(0)));
  EXPECT_EQ(logic.phase(1), child_phase::given_up);
  EXPECT_THAT(logic.child_down(0, true, "", start + 7s), ElementsAre(ends("hangs could not be stopped")));
}

TEST(supervisor_logic, never_starts_a_second_instance_beside_one_that_may_live) {
  auto logic = running(plan(restart_scope::rest), {child("a"), child("hangs")});
  EXPECT_THAT(logic.child_down(0, false, "crash", start), ElementsAre(stops(1)));
  EXPECT_THAT(logic.tick(start + 5s), ElementsAre(kills(1)));
  EXPECT_THAT(logic.tick(start + 7s), ElementsAre(ends("hangs could not be stopped")));
}

TEST(supervisor_logic, stop_during_a_back_off_starts_nothing_more) {
  auto logic = running(plan(), {child("a"), child("b")});
  logic.child_down(0, false, "crash", start);
  EXPECT_THAT(logic.stop(start), ElementsAre(stops(1)));
  EXPECT_THAT(logic.tick(start + 1s), IsEmpty());
  EXPECT_THAT(logic.child_down(1, true, "", start + 1s), ElementsAre(ends()));
  EXPECT_THAT(logic.tick(start + 2s), IsEmpty());
}

}  // namespace
}  // namespace busbar::core
