// busbar as a user runs it, against daemons in this process. Output is compared with tests/e2e/golden byte by
// byte; BUSBAR_GOLDEN_WRITE=1 writes what is printed now, to be looked at and committed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>

#include "tests/unit/cli/one_rack.hpp"

namespace busbar::cli {
namespace {

using ::testing::AllOf;
using testing::fake_daemon;
using testing::fault_status;
using ::testing::HasSubstr;
using testing::outcome;
using testing::site;
using ::testing::SizeIs;

void expect_golden(const std::string& name, const std::string& text) {
  const std::string path = std::string(BUSBAR_GOLDEN) + "/" + name;
  if (std::getenv("BUSBAR_GOLDEN_WRITE") != nullptr) std::ofstream(path) << text;
  std::ifstream in(path);
  ASSERT_TRUE(in) << path;
  std::stringstream content;
  content << in.rdbuf();
  EXPECT_EQ(text, content.str()) << path;
}

using golden = one_rack;

TEST(golden_text, help) {
  site here;
  expect_golden("help", here.busbar({"--help"}).out);
}

TEST_F(golden, racks_table) {
  expect_golden("racks.table", here.busbar({"get", "racks"}).out);
}
TEST_F(golden, racks_json) {
  expect_golden("racks.json", here.busbar({"get", "racks", "-o", "json"}).out);
}
TEST_F(golden, nodes_table) {
  expect_golden("nodes.table", here.busbar({"get", "nodes"}).out);
}
TEST_F(golden, nodes_wide) {
  expect_golden("nodes.wide", here.busbar({"get", "nodes", "-o", "wide"}).out);
}
TEST_F(golden, nodes_json) {
  expect_golden("nodes.json", here.busbar({"get", "nodes", "r01/c01", "-o", "json"}).out);
}
TEST_F(golden, nodes_yaml) {
  expect_golden("nodes.yaml", here.busbar({"get", "nodes", "r01/c02", "-o", "yaml"}).out);
}
TEST_F(golden, nodes_name) {
  expect_golden("nodes.name", here.busbar({"get", "nodes", "-o", "name"}).out);
}
TEST_F(golden, rack_described) {
  expect_golden("rack.describe", here.busbar({"describe", "rack", "r01"}).out);
}
TEST_F(golden, node_described) {
  expect_golden("node.describe", here.busbar({"describe", "node", "r01/c02"}).out);
}
TEST_F(golden, explained_fault) {
  expect_golden("explain.fault", here.busbar({"explain", "CERTIFICATE_CHANGED"}).out);
}
TEST_F(golden, explained_state) {
  expect_golden("explain.state", here.busbar({"explain", "staged"}).out);
}
TEST_F(golden, an_operation) {
  expect_golden("operation.table", here.busbar({"rack", "bringup", "r01", "--reason", "first light"}).out);
}

// Every option that goes to a daemon as text, and names.
std::vector<std::vector<std::string>> commands_with(const std::string& text) {
  return {{"rack", "bringup", "r01", "--reason", text},   {"rack", "shutdown", "r01", "--yes", "--reason", text},
          {"bmc", "release", "r01/c01", "--yes", "--reason", text},
          {"rack", "bringup", "r01", "--request-id", text}, {"rack", "bringup", "r01", "--etag", text},
          {"rack", "bringup", "r01", "--members", text},  {"node", "retry", "r01/c01", "--from", text},
          {"node", "trust", "r01/c01", "--yes", "--reason", "r", "--pin", text},
          {"get", "nodes", "--filter", text},             {"events", "--filter", text},
          {"ops", "--filter", text},                      {"wait", "racks", "r01", "--for", text},
          {"get", "nodes", text},                         {"rack", "bringup", text},
          {"get", text},                                  {"explain", text}};
}

TEST_F(golden, text_that_is_no_utf8_is_refused_in_our_own_words) {
  for (const std::string& bytes : {std::string("\xff\xfe"), std::string("caf\xe9"), std::string("\xed\xa0\x80")}) {
    for (const auto& command : commands_with(bytes)) {
      const auto done = here.busbar(command);
      SCOPED_TRACE(done.err);
      EXPECT_EQ(done.code, exit_code::usage);
      EXPECT_THAT(done.err, AllOf(HasSubstr("UTF-8"), ::testing::Not(HasSubstr("protobuf")), ::testing::Not(HasSubstr(bytes))));
      EXPECT_EQ(done.out, "");
    }
  }
  EXPECT_THAT(r01.acts, SizeIs(0));
  EXPECT_EQ(here.busbar({"rack", "bringup", "r01", "--reason", "caf\xc3\xa9"}).code, exit_code::done);
}

TEST_F(golden, text_that_is_too_long_is_refused_in_our_own_words) {
  for (const auto& command : commands_with(std::string(100'000, 'a'))) {
    const auto done = here.busbar(command);
    SCOPED_TRACE(done.err.substr(0, 300));
    EXPECT_EQ(done.code, exit_code::usage);
    EXPECT_THAT(done.err, AllOf(HasSubstr("100000 bytes"), HasSubstr("4096")));
    EXPECT_LT(done.err.size(), 300U);
  }
  EXPECT_THAT(r01.acts, SizeIs(0));
}

TEST_F(golden, a_refused_question_is_not_answered_by_there_is_none) {
  v1::ErrorInfo info;
  info.set_message("filter term 'nonsense': a term is field=value");
  r01.list_refusal = fault_status(grpc::StatusCode::INVALID_ARGUMENT, info);
  for (const char* kind : {"racks", "nodes", "shelves", "operations", "events", "endpoints"}) {
    const auto done = here.busbar({"get", kind, "--filter", "nonsense"});
    EXPECT_EQ(done.code, exit_code::usage) << kind << done.err;
    EXPECT_THAT(done.err, AllOf(HasSubstr("filter term"), ::testing::Not(HasSubstr("no ")))) << kind;
  }
}

TEST_F(golden, unreachable_daemon) {
  std::filesystem::create_directories(here.folder() / "r02");
  std::ofstream(here.folder() / "r02" / "busbard.sock") << "";  // a socket nobody listens at
  const outcome table = here.busbar({"get", "racks"});
  EXPECT_EQ(table.code, exit_code::unreachable);
  EXPECT_THAT(table.out, AllOf(HasSubstr("r01 "), HasSubstr("\nr02   UNREACHABLE")));
  const outcome json = here.busbar({"get", "racks", "-o", "json"});
  EXPECT_EQ(json.code, exit_code::unreachable);
  EXPECT_THAT(json.out, AllOf(HasSubstr("\"instance\": \"r02\""), HasSubstr("\"name\": \"racks/r01\"")));
  const outcome names = here.busbar({"get", "racks", "-o", "name"});
  EXPECT_EQ(names.out, "r01\n");
  EXPECT_THAT(names.err, HasSubstr("r02: UNREACHABLE"));
  EXPECT_EQ(names.code, exit_code::unreachable);
}

using reading = one_rack;

TEST_F(reading, merges_the_rows_of_all_daemons) {
  fake_daemon r02(here.folder(), "r02");
  fill(r02, "r02");
  const outcome all = here.busbar({"get", "nodes", "-o", "name"});
  EXPECT_EQ(all.out, "r01/c01\nr01/c02\nr01/s01\nr02/c01\nr02/c02\nr02/s01\n");
  EXPECT_EQ(all.code, exit_code::done);
  EXPECT_EQ(here.busbar({"get", "nodes", "r02", "-o", "name"}).out, "r02/c01\nr02/c02\nr02/s01\n");
  EXPECT_EQ(here.busbar({"get", "nodes", "r[01-02]/c[01-02]", "-o", "name"}).out,
            "r01/c01\nr01/c02\nr02/c01\nr02/c02\n");
  EXPECT_THAT(here.busbar({"get", "nodes", "-o", "json"}).out, HasSubstr("\"position\": null"));
}

TEST_F(reading, goes_through_all_pages) {
  r01.page = 1;
  EXPECT_EQ(here.busbar({"get", "nodes", "-o", "name"}).out, "r01/c01\nr01/c02\nr01/s01\n");
}

TEST_F(reading, of_something_unhealthy_is_still_answered) {
  EXPECT_EQ(here.busbar({"get", "nodes"}).code, exit_code::done);
}

TEST_F(reading, a_name_that_is_not_there_is_told_with_its_fault) {
  const outcome none = here.busbar({"get", "nodes", "r01/c09"});
  EXPECT_EQ(none.code, exit_code::usage);
  EXPECT_THAT(none.err,
              AllOf(HasSubstr("r01/c09: UNKNOWN_TARGET"), HasSubstr("busbar explain UNKNOWN_TARGET")));
}

TEST_F(reading, a_daemon_that_does_not_hold_it_does_not_disturb) {
  fake_daemon other(here.folder(), "plant1");
  const outcome one = here.busbar(
      {"get", "racks", "r01", "-o", "name", "--endpoint", (here.folder() / "r01/busbard.sock").string()});
  EXPECT_EQ(one.out, "r01\n");
  EXPECT_EQ(one.code, exit_code::done);
}

TEST_F(reading, diff_is_one_when_different_and_three_when_unknown) {
  const outcome differs = here.busbar({"diff", "nodes", "r01/c02"});
  EXPECT_EQ(differs.code, exit_code::unknown);
  EXPECT_THAT(differs.out,
              AllOf(HasSubstr("serial"), HasSubstr("SN-OTHER"), HasSubstr("25.10-3"), HasSubstr("unknown")));
  r01.nodes["racks/r01/nodes/c02"].mutable_status()->mutable_firmware(0)->set_seen("25.10-3");
  EXPECT_EQ(here.busbar({"diff", "nodes", "r01/c02"}).code, exit_code::no);
  const outcome same = here.busbar({"diff", "nodes", "r01/c01"});
  EXPECT_EQ(same.code, exit_code::done);
  EXPECT_EQ(same.out, "");
}

TEST_F(reading, rack_status_is_zero_only_in_healthy_production) {
  EXPECT_EQ(here.busbar({"rack", "status", "r01"}).code, exit_code::no);
  auto& status = *r01.racks["racks/r01"].mutable_status();
  status.set_state("production");
  EXPECT_EQ(here.busbar({"rack", "status", "r01"}).code, exit_code::unknown);
  status.set_health(v1::HEALTH_GOOD);
  EXPECT_EQ(here.busbar({"rack", "status", "r01"}).code, exit_code::done);
  status.set_health(v1::HEALTH_BAD);
  EXPECT_EQ(here.busbar({"rack", "status", "r01"}).code, exit_code::no);
}

TEST_F(reading, events_come_oldest_first_and_no_more_than_asked_for) {
  for (int i = 1; i <= 5; ++i) {
    v1::Event& event = r01.events.emplace_back();
    event.mutable_position()->set_revision(static_cast<std::uint64_t>(i));
    event.set_object("racks/r01/nodes/c0" + std::to_string(i));
    event.set_message("number " + std::to_string(i));
    *event.mutable_time() = testing::sample_time();
  }
  EXPECT_EQ(here.busbar({"events", "-o", "name", "--limit", "3"}).out, "3:0\n4:0\n5:0\n");
  EXPECT_THAT(here.busbar({"events", "r01/c02"}).out,
              AllOf(HasSubstr("number 2"), ::testing::Not(HasSubstr("number 3"))));
}

TEST(nobody, to_ask_is_unreachable) {
  site here;
  const outcome none = here.busbar({"get", "racks"});
  EXPECT_EQ(none.code, exit_code::unreachable);
  EXPECT_THAT(none.err, HasSubstr("BUSBAR_RUN_DIR"));
}

TEST(usage, is_two_and_talks_on_stderr_only) {
  site here;
  fake_daemon daemon(here.folder(), "r01");
  for (const std::vector<std::string>& wrong : {std::vector<std::string>{},
                                                {"frobnicate"},
                                                {"get"},
                                                {"get", "tables"},
                                                {"get", "nodes", "-o", "xml"},
                                                {"get", "nodes", "-o", ""},
                                                {"get", "nodes", "--limit", "0"},
                                                {"get", "nodes", "--limit", "-1"},
                                                {"ops", "--limit", "many"},
                                                {"events", "--limit", "99999999999999999999"},
                                                {"events", "--limit", "5", "--all"},
                                                {"get", "nodes", "c["},
                                                {"get", "nodes", "r01/x/y/z"},
                                                {"wait", "racks"},
                                                {"wait", "racks", "r01", "--timeout", "soon"},
                                                {"explain", "nonsense"},
                                                {"manifest", "apply", "/nowhere"},
                                                {"rack"},
                                                {"node", "trust", "r01/c01", "--pin", "ab"}}) {
    const outcome result = here.busbar(wrong);
    EXPECT_EQ(result.code, exit_code::usage) << ::testing::PrintToString(wrong);
    EXPECT_EQ(result.out, "");
    EXPECT_NE(result.err, "");
  }
}

TEST(usage, an_unknown_format_is_told_with_those_there_are) {
  site here;
  for (const char* verb : {"get", "describe", "watch", "wait", "diff"}) {
    const outcome wrong = here.busbar({verb, "nodes", "-o", "wat"});
    EXPECT_EQ(wrong.err, std::string("busbar: --output: 'wat' is no format: table, wide, json, yaml or name\n") +
                             "  help      busbar " + verb + " --help\n");
  }
}

TEST(usage, tls_files_that_cannot_be_read_are_named) {
  site here;
  const outcome none = here.busbar({"get", "racks", "--endpoint", "127.0.0.1:1"});
  EXPECT_EQ(none.code, exit_code::usage);
  EXPECT_THAT(none.err, AllOf(HasSubstr("--tls-ca"), HasSubstr("--tls-cert"), HasSubstr("--tls-key")));
  const outcome folder = here.busbar({"get", "racks", "--endpoint", "127.0.0.1:1", "--tls-ca", here.folder().string(),
                                      "--tls-cert", "/nowhere", "--tls-key", "/nowhere"});
  EXPECT_EQ(folder.code, exit_code::usage);
  EXPECT_THAT(folder.err, AllOf(HasSubstr("no regular file"), HasSubstr("/nowhere")));
}

// A person types what a fault tells him to; it must at least be a command.
TEST(usage, the_commands_that_faults_name_are_understood) {
  site here;
  const std::map<std::string, std::string> samples{{"NODE", "r01/c01"},
                                                   {"RACK", "r01"},
                                                   {"TEXT", "why"},
                                                   {"DIR", "/nowhere"},
                                                   {"SHA256", std::string(64, 'a')}};
  const std::vector<std::string_view> commands{
#define BUSBAR_FAULT(name, status, meaning, evidence, next_step, command) command,
#include "actors/core/faults.def"
#undef BUSBAR_FAULT
  };
  for (const std::string_view command : commands) {
    if (!command.starts_with("busbar ") || command.starts_with("busbar bmc inspect")) continue;
    std::istringstream words{std::string(command.substr(7))};
    std::vector<std::string> arguments;
    for (std::string word; words >> word;)
      arguments.push_back(samples.contains(word) ? samples.at(word) : word);
    const outcome result = here.busbar(arguments);
    EXPECT_EQ(result.code, exit_code::unreachable) << command << "\n" << result.err;
  }
}

TEST(bmc_inspect, of_nobody_is_unreachable_and_of_no_url_is_usage) {
  site here;
  const outcome nobody =
      here.busbar({"bmc", "inspect", "https://127.0.0.1:1", "-o", "json", "--timeout", "30s"});
  EXPECT_EQ(nobody.code, exit_code::unreachable);
  EXPECT_THAT(nobody.out, HasSubstr("\"reachable\""));
  EXPECT_EQ(here.busbar({"bmc", "inspect", "ftp://127.0.0.1:1"}).code, exit_code::usage);
  EXPECT_EQ(here.busbar({"bmc", "inspect", "https://root:secret@127.0.0.1:1"}).code, exit_code::usage);
  EXPECT_EQ(here.busbar({"bmc", "inspect", "https://127.0.0.1:1", "--user", "root"}).code, exit_code::usage);
}

TEST(usage, help_and_version_are_data) {
  site here;
  EXPECT_EQ(here.busbar({"--help"}).code, exit_code::done);
  EXPECT_THAT(here.busbar({"--version"}).out, HasSubstr("busbar "));
}

using acting = one_rack;

TEST_F(acting, bringup_answers_with_its_operation) {
  const outcome started = here.busbar({"rack", "bringup", "r01", "-o", "name"});
  EXPECT_EQ(started.code, exit_code::done);
  EXPECT_EQ(started.out, "r01/operations/1\n");
  ASSERT_THAT(r01.acts, SizeIs(1));
  EXPECT_FALSE(r01.acts[0].request_id().empty());
}

TEST_F(acting, wait_gives_the_code_of_the_operation) {
  EXPECT_EQ(here.busbar({"rack", "bringup", "r01", "--wait", "--timeout", "30s"}).code, exit_code::done);
  r01.ends_operations = false;
  const outcome late = here.busbar({"rack", "bringup", "r01", "--wait", "--timeout", "50ms"});
  EXPECT_EQ(late.code, exit_code::timeout);
  EXPECT_THAT(late.err, HasSubstr("still running"));
}

TEST_F(acting, a_failed_operation_is_one_with_a_row_for_each_member_that_is_not_done) {
  v1::Operation& operation = r01.operations["racks/r01/operations/7"];
  operation.set_name("racks/r01/operations/7");
  operation.set_done(true);
  operation.set_state(v1::Operation::FAILED);
  operation.mutable_error()->set_fault("SUITE_BELOW_LIMIT");
  operation.mutable_error()->set_message("16 of 17");
  auto& component = *operation.add_components();
  component.set_target("racks/r01/nodes/c03");
  component.set_state(v1::ComponentResult::FAILED);
  component.set_fault("SUITE_BELOW_LIMIT");
  r01.racks["racks/r01"].mutable_status()->set_operation(operation.name());
  const outcome got = here.busbar({"get", "ops", "r01/operations/7"});
  EXPECT_EQ(got.code, exit_code::done);
  EXPECT_THAT(got.out, HasSubstr("SUITE_BELOW_LIMIT"));
}

TEST_F(acting, dry_run_changes_nothing_and_starts_no_operation) {
  const outcome dry = here.busbar({"rack", "bringup", "r01", "--dry-run"});
  EXPECT_EQ(dry.code, exit_code::done);
  EXPECT_EQ(dry.out, "");
  ASSERT_THAT(r01.acts, SizeIs(1));
  EXPECT_TRUE(r01.acts[0].validate_only());
  EXPECT_TRUE(r01.operations.empty());
}

TEST_F(acting, what_takes_energy_away_asks_first) {
  EXPECT_EQ(here.busbar({"rack", "shutdown", "r01"}).code, exit_code::usage);
  EXPECT_EQ(here.busbar({"rack", "shutdown", "r01"}, "n\n", true).code, exit_code::usage);
  EXPECT_TRUE(r01.acts.empty());
  EXPECT_EQ(here.busbar({"rack", "shutdown", "r01"}, "y\n", true).code, exit_code::done);
  EXPECT_EQ(here.busbar({"rack", "shutdown", "r01", "--yes"}).code, exit_code::done);
  EXPECT_THAT(r01.acts, SizeIs(2));
}

TEST_F(acting, giving_a_bmc_back_needs_a_reason) {
  EXPECT_EQ(here.busbar({"bmc", "release", "r01/c01", "--yes"}).code, exit_code::usage);
  EXPECT_EQ(here.busbar({"bmc", "release", "r01/c01", "--yes", "--reason", "goes to the other hall"}).code,
            exit_code::done);
}

TEST_F(acting, retry_goes_to_each_of_a_host_list) {
  EXPECT_EQ(here.busbar({"node", "retry", "r01/c[01-02]", "--from", "staged"}).code, exit_code::done);
  ASSERT_THAT(r01.acts, SizeIs(4));  // all are asked for before one is begun
  EXPECT_TRUE(r01.acts[0].validate_only() && r01.acts[1].validate_only());
  EXPECT_FALSE(r01.acts[2].validate_only() || r01.acts[3].validate_only());
  EXPECT_EQ(r01.acts[3].name(), "racks/r01/nodes/c02");
  EXPECT_NE(r01.acts[2].request_id(), r01.acts[3].request_id());
  EXPECT_EQ(r01.from_step, "staged");
}

TEST_F(acting, one_refused_name_of_several_leaves_the_others_alone) {
  r01.refused_names = {"racks/r01/nodes/c09"};
  EXPECT_NE(here.busbar({"node", "retry", "r01/c01", "r01/c09"}).code, exit_code::done);
  for (const v1::ActRequest& act : r01.acts) EXPECT_TRUE(act.validate_only()) << act.name();
}

struct refusal_case {
  grpc::StatusCode code;
  const char* fault;
  exit_code expected;
};

TEST_F(acting, a_refusal_is_told_with_expected_seen_and_next_step) {
  v1::ErrorInfo info;
  info.set_message("the certificate is another one");
  info.set_target("racks/r01/nodes/c01");
  info.set_expected("aa");
  info.set_seen("bb");
  info.set_next_step("If the change is legitimate, trust the new pin.");
  for (const refusal_case& one :
       {refusal_case{grpc::StatusCode::FAILED_PRECONDITION, "CERTIFICATE_CHANGED", exit_code::conflict},
        {grpc::StatusCode::PERMISSION_DENIED, "", exit_code::not_permitted},
        {grpc::StatusCode::ABORTED, "OPERATION_CONFLICT", exit_code::conflict},
        {grpc::StatusCode::UNAVAILABLE, "STORE_READ_ONLY", exit_code::conflict},
        {grpc::StatusCode::INTERNAL, "", exit_code::unknown}}) {
    info.set_fault(one.fault);
    r01.refusal = fault_status(one.code, info);
    const outcome refused = here.busbar({"rack", "bringup", "r01"});
    EXPECT_EQ(refused.code, one.expected) << one.fault;
    EXPECT_EQ(refused.out, "");
    EXPECT_THAT(refused.err, AllOf(HasSubstr("r01/c01: "), HasSubstr(one.fault), HasSubstr("expected  aa"),
                                   HasSubstr("seen      bb"), HasSubstr("next      If the change")));
  }
}

TEST_F(acting, wrong_files_are_listed_with_file_and_key_path) {
  v1::SpecErrors errors;
  auto& error = *errors.add_errors();
  error.set_file("manifests/r01.yaml");
  error.set_key_path("members[3].bmc_mac");
  error.set_message("is not a MAC address");
  v1::ErrorInfo info;
  info.set_fault("SPEC_INVALID");
  info.set_message("1 error; nothing was stored");
  r01.refusal = fault_status(grpc::StatusCode::INVALID_ARGUMENT, info, errors);
  const auto file = here.folder() / "x.yaml";
  std::ofstream(file) << "kind: Manifest\n";
  const outcome refused = here.busbar({"manifest", "apply", file.string()});
  EXPECT_EQ(refused.code, exit_code::usage);
  EXPECT_THAT(refused.err, HasSubstr("\n  manifests/r01.yaml: members[3].bmc_mac: is not a MAC address\n"));
}

TEST_F(acting, apply_sends_a_folder_with_paths_inside_it_and_shows_what_changes) {
  std::filesystem::create_directories(here.folder() / "files/suites");
  std::ofstream(here.folder() / "files/r01.yaml") << "a";
  std::ofstream(here.folder() / "files/suites/node.yaml") << "b";
  std::ofstream(here.folder() / "files/readme.txt") << "c";
  v1::SpecChange& change = r01.spec_changes.emplace_back();
  change.set_rack("racks/r01");
  change.set_key_path("baseline.deadlines.staged");
  change.set_stored("20m");
  change.set_declared("30m");
  const outcome applied = here.busbar({"manifest", "apply", (here.folder() / "files").string()});
  EXPECT_EQ(applied.code, exit_code::done);
  EXPECT_EQ(
      applied.out,
      "RACK  KEY                        STORED  DECLARED\nr01   baseline.deadlines.staged  20m     30m\n");
  ASSERT_THAT(r01.files, SizeIs(2));
  EXPECT_EQ(r01.files[1].path(), "suites/node.yaml");
  EXPECT_EQ(here.busbar({"manifest", "diff", (here.folder() / "files").string()}).code, exit_code::no);
  r01.spec_changes.clear();
  EXPECT_EQ(here.busbar({"manifest", "diff", (here.folder() / "files").string()}).code, exit_code::done);
}

TEST_F(acting, a_rack_that_no_daemon_takes_is_no_success) {
  std::ofstream(here.folder() / "x.yaml") << "a";
  r01.takes_rack = false;
  const outcome nobody = here.busbar({"manifest", "apply", (here.folder() / "x.yaml").string()});
  EXPECT_EQ(nobody.code, exit_code::usage);
  EXPECT_THAT(nobody.err, HasSubstr("r09: no daemon that was asked holds this rack"));
}

}  // namespace
}  // namespace busbar::cli
