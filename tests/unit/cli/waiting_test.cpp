// Names that nobody holds, limits of what is shown, and the commands that stay: wait and watch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/cli/one_rack.hpp"

namespace busbar::cli {
namespace {

using ::testing::AllOf;
using testing::fake_daemon;
using ::testing::HasSubstr;
using testing::outcome;
using testing::sample_node;
using testing::sample_rack;
using limits = one_rack;
using usage_of_names = one_rack;

// One answer by every command, whatever the kind of the name.
TEST_F(usage_of_names, a_name_that_nobody_holds_is_two_by_every_command) {
  fake_daemon r02(here.folder(), "r02");
  fill(r02, "r02");
  for (const std::vector<std::string>& command : {std::vector<std::string>{"get", "nodes", "r01/c09"},
                                                  {"get", "racks", "r09"},
                                                  {"get", "nodes", "r09"},
                                                  {"get", "ops", "r01/operations/9"},
                                                  {"describe", "nodes", "r01/c09"},
                                                  {"describe", "racks", "r09"},
                                                  {"watch", "nodes", "r01/c09"},
                                                  {"watch", "racks", "r09"},
                                                  {"watch", "nodes", "r09"},
                                                  {"watch", "events", "r01/c09"},
                                                  {"events", "r01/c09"},
                                                  {"diff", "nodes", "r01/c09"},
                                                  {"wait", "nodes", "r01/c09"},
                                                  {"wait", "racks", "r09"},
                                                  {"wait", "ops", "r01/operations/9"},
                                                  {"rack", "status", "r09"},
                                                  {"rack", "bringup", "r09"},
                                                  {"node", "retry", "r01/c09"},
                                                  {"node", "retry", "r01/c01", "r01/c09"},
                                                  {"bmc", "release", "r01/c09", "--yes", "--reason", "x"}}) {
    const outcome result = here.busbar(command);
    EXPECT_EQ(result.code, exit_code::usage) << ::testing::PrintToString(command) << result.err;
    EXPECT_THAT(result.err, AllOf(HasSubstr("9: UNKNOWN_TARGET"), HasSubstr("busbar explain")))
        << ::testing::PrintToString(command);
  }
}

TEST_F(usage_of_names, a_rack_that_is_not_declared_yet_may_be_watched) {
  r01.racks.clear();
  r01.watch_end = {grpc::StatusCode::PERMISSION_DENIED, "enough"};
  EXPECT_EQ(here.busbar({"watch", "rack", "r01", "--timeout", "30s"}).code, exit_code::not_permitted);
}

// While the store takes no writes what is shown may be old: it fulfils no wait, whatever it says.
TEST_F(usage_of_names, a_wait_is_not_fulfilled_by_what_may_be_old) {
  const std::string state = r01.racks.at("racks/r01").status().state();
  for (const bool old : {false, true}) {
    for (auto& [name, rack] : r01.racks) {
      rack.clear_conditions();
      if (old) rack.add_conditions()->set_type("MAY_BE_OLD");
    }
    const outcome result = here.busbar({"wait", "racks", "r01", "--for", "state=" + state, "--timeout", "1s"});
    EXPECT_EQ(result.code, old ? exit_code::timeout : exit_code::done) << state << result.err;
  }
}

void add_events(fake_daemon& daemon, int count) {
  for (int i = 1; i <= count; ++i) {
    v1::Event& event = daemon.events.emplace_back();
    event.mutable_position()->set_revision(static_cast<std::uint64_t>(i));
    event.set_object("racks/r01/nodes/c01");
    *event.mutable_time() = testing::sample_time();
  }
}

std::ptrdiff_t lines_of(const std::string& text) {
  return std::count(text.begin(), text.end(), '\n');
}

TEST_F(limits, events_say_that_older_ones_are_left_out_and_all_shows_them) {
  r01.page = 40;  // less than is shown: page after page is asked for
  add_events(r01, 50);
  EXPECT_EQ(here.busbar({"events"}).err, "");
  r01.events.clear();
  add_events(r01, 130);
  const outcome some = here.busbar({"events", "-o", "name"});
  EXPECT_EQ(lines_of(some.out), 50);
  EXPECT_THAT(some.out, HasSubstr("130:0"));
  EXPECT_THAT(some.err, AllOf(HasSubstr("only the newest 50 events"), HasSubstr("--all")));
  EXPECT_EQ(some.code, exit_code::done);
  const outcome all = here.busbar({"events", "-o", "name", "--all"});
  EXPECT_EQ(lines_of(all.out), 130);
  EXPECT_TRUE(all.out.starts_with("1:0\n"));
  EXPECT_EQ(all.err, "");
  const outcome more = here.busbar({"events", "-o", "name", "--limit", "120"});
  EXPECT_EQ(lines_of(more.out), 120);
  EXPECT_THAT(more.err, HasSubstr("only the newest 120 events"));
}

TEST_F(limits, a_limit_holds_for_every_kind_and_is_said) {
  for (int i = 1; i <= 4; ++i) {
    const std::string name = "racks/r01/operations/" + std::to_string(i);
    r01.operations[name].set_name(name);
    *r01.operations[name].mutable_create_time() = testing::sample_time();
    r01.operations[name].mutable_create_time()->set_seconds(testing::sample_time().seconds() + i);
  }
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"ops", "-o", "name", "--limit", "2"}, {"get", "ops", "-o", "name", "--limit", "2"}}) {
    const outcome two = here.busbar(command);
    EXPECT_EQ(two.out, "r01/operations/4\nr01/operations/3\n");
    EXPECT_THAT(two.err, HasSubstr("only the first 2 operations"));
  }
  EXPECT_EQ(here.busbar({"ops"}).err, "");
  const outcome nodes = here.busbar({"get", "nodes", "-o", "name", "--limit", "1"});
  EXPECT_EQ(nodes.out, "r01/c01\n");
  EXPECT_THAT(nodes.err, HasSubstr("only the first 1 nodes"));
  EXPECT_EQ(here.busbar({"get", "nodes", "--limit", "3"}).err, "");
}

using waiting = one_rack;

TEST_F(waiting, ends_when_all_are_as_asked) {
  v1::WatchResponse& change = r01.changes.emplace_back();
  *change.mutable_rack() = sample_rack("r01");
  change.mutable_rack()->mutable_status()->set_state("production");
  const outcome done = here.busbar({"wait", "racks", "r01", "--timeout", "30s", "-o", "name"});
  EXPECT_EQ(done.code, exit_code::done);
  EXPECT_EQ(done.out, "r01\n");
}

TEST_F(waiting, is_one_when_it_ends_otherwise) {
  EXPECT_EQ(here.busbar({"wait", "nodes", "r01/c02", "--timeout", "30s"}).code, exit_code::no);
}

TEST_F(waiting, takes_any_field) {
  EXPECT_EQ(here.busbar({"wait", "nodes", "r01/c01", "--for", "step=credentialed", "--timeout", "30s"}).code,
            exit_code::done);
  EXPECT_EQ(
      here.busbar({"wait", "nodes", "r01/c01", "--for", "status.power.observed=OFF", "--timeout", "30s"})
          .code,
      exit_code::done);
}

TEST_F(waiting, is_six_at_the_time_limit) {
  EXPECT_EQ(here.busbar({"wait", "racks", "r01", "--timeout", "50ms"}).code, exit_code::timeout);
}

// A typing error is told at once, with what there is; it is never waited for.
TEST_F(waiting, refuses_conditions_that_can_never_be) {
  struct slip {
    const char* kind;
    const char* name;
    const char* condition;
    const char* told;
  };
  for (const slip& one : {slip{"nodes", "r01/c01", "step=PRODUKTION", "firmware_current"},
                          {"nodes", "r01/c01", "stepp=PRODUCTION", "step, "},
                          {"nodes", "r01/c01", "step", "no FIELD=VALUE"},
                          {"nodes", "r01/c01", "step=", "never ''"},
                          {"nodes", "r01/c01", "step=unknown", "declared"},
                          {"nodes", "r01/c01", "power.observed=UP", "powering_on"},
                          {"nodes", "r01/c01", "power=ON", "no single value"},
                          {"nodes", "r01/c01", "facts=1", "no single value"},
                          {"nodes", "r01/c01", "agent_connected=yes", "true, false"},
                          {"nodes", "r01/c01", "generation=two", "number"},
                          {"nodes", "r01/c01", "health=GREEN", "good, bad"},
                          {"racks", "r01", "state=prodction", "degraded"},
                          {"racks", "r01", "step=powerd", "powered"},
                          {"operations", "r01/operations/1", "state=DONE", "succeeded"}}) {
    const outcome refused = here.busbar({"wait", one.kind, one.name, "--for", one.condition});
    EXPECT_EQ(refused.code, exit_code::usage) << one.condition;
    EXPECT_THAT(refused.err, HasSubstr(one.told)) << one.condition;
  }
}

TEST_F(waiting, takes_every_word_that_is_shown) {
  EXPECT_EQ(here.busbar({"wait", "nodes", "r01/c01", "--for", "health=good", "--timeout", "30s"}).code,
            here.busbar({"wait", "nodes", "r01/c01", "--for", "health=HEALTH_GOOD", "--timeout", "30s"}).code);
  EXPECT_EQ(here.busbar({"wait", "nodes", "r01/c01", "--for", "kind=compute_tray", "--timeout", "50ms"}).code,
            exit_code::usage);  // the kind is of the spec, and says so
  EXPECT_EQ(
      here.busbar({"wait", "nodes", "r01/c01", "--for", "spec.kind=compute_tray", "--timeout", "30s"}).code,
      exit_code::done);
}

TEST_F(waiting, watch_prints_a_line_a_change) {
  v1::WatchResponse& change = r01.changes.emplace_back();
  *change.mutable_node() = sample_node("r01", "c01");
  change.mutable_node()->mutable_status()->set_step(v1::NodeStep::STAGED);
  r01.watch_end = {grpc::StatusCode::PERMISSION_DENIED, "enough"};
  const outcome seen = here.busbar({"watch", "nodes", "r01/c01", "-o", "json", "--timeout", "30s"});
  EXPECT_EQ(seen.code, exit_code::not_permitted);
  EXPECT_EQ(std::count(seen.out.begin(), seen.out.end(), '\n'), 2);
  EXPECT_THAT(seen.out, AllOf(HasSubstr("\"initial\":true"), HasSubstr("\"step\":\"STAGED\"")));
  const outcome live = here.busbar({"watch", "rack", "r01", "--timeout", "30s"});
  EXPECT_THAT(
      live.out,
      AllOf(
          HasSubstr("r01 cooled"),
          HasSubstr("r01/c02 credentialed FAILED (IDENTITY_SERIAL_MISMATCH at identified: serial differs)")));
}

}  // namespace
}  // namespace busbar::cli
