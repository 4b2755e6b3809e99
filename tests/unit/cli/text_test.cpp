// The parts of the CLI that need no daemon: host lists, exit codes, explain, the live view.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <absl/status/status.h>

#include "actors/core/errors.hpp"
#include "daemon/cli/exit_code.hpp"
#include "daemon/cli/explain.hpp"
#include "daemon/cli/explain_table.hpp"
#include "daemon/cli/host_list.hpp"
#include "daemon/cli/live_view.hpp"
#include "tests/unit/cli/fake_daemon.hpp"

namespace busbar::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using names = std::vector<std::string>;

TEST(host_list, expands_ranges_lists_and_products) {
  EXPECT_EQ(expand_host_list("r01/c07"), names{"r01/c07"});
  EXPECT_EQ(expand_host_list("r01/c[01-03,07]"), (names{"r01/c01", "r01/c02", "r01/c03", "r01/c07"}));
  EXPECT_EQ(expand_host_list("r[01-02]/s[8-9]"), (names{"r01/s8", "r01/s9", "r02/s8", "r02/s9"}));
  EXPECT_EQ(expand_host_list("c[098-101]"), (names{"c098", "c099", "c100", "c101"}));
}

TEST(host_list, refuses_what_is_none) {
  for (const char* text : {"", "c[", "c]", "c[]", "c[a]", "c[3-1]", "c[1-]", "c[1,]", "c[001-2]",
                           "c[1-999999]", "c[[1]]", "c[1-2"}) {
    EXPECT_EQ(expand_host_list(text), std::nullopt) << text;
  }
}

TEST(host_list, folds_to_what_expands_to_the_same) {
  EXPECT_EQ(fold_host_list({"r01/c01", "r01/c02", "r01/c03", "r01/c07"}), "r01/c[01-03,07]");
  EXPECT_EQ(fold_host_list({"r01/c01"}), "r01/c01");
  EXPECT_EQ(fold_host_list({"r01/c01", "r01/s01"}), "r01/c01,r01/s01");
  EXPECT_EQ(fold_host_list({}), "");
}

TEST(exit_code, stands_for_each_canonical_status) {
  const std::vector<exit_code> expected{
      exit_code::done,         exit_code::no,       exit_code::unknown,     exit_code::usage,
      exit_code::timeout,      exit_code::no,       exit_code::conflict,    exit_code::not_permitted,
      exit_code::conflict,     exit_code::conflict, exit_code::conflict,    exit_code::conflict,
      exit_code::usage,        exit_code::unknown,  exit_code::unreachable, exit_code::unknown,
      exit_code::not_permitted};
  for (int code = 0; code < static_cast<int>(expected.size()); ++code) {
    EXPECT_EQ(exit_code_of(code, ""), expected[static_cast<std::size_t>(code)]) << code;
  }
}

TEST(exit_code, is_never_zero_on_failure) {
  for (int code = 1; code < 200; ++code) EXPECT_NE(exit_code_of(code, ""), exit_code::done) << code;
}

TEST(exit_code, a_daemon_that_answers_is_not_unreachable) {
  EXPECT_EQ(exit_code_of(static_cast<int>(absl::StatusCode::kUnavailable), "STORE_READ_ONLY"),
            exit_code::conflict);
  EXPECT_EQ(exit_code_of(static_cast<int>(absl::StatusCode::kUnavailable), "BMC_UNREACHABLE"),
            exit_code::unreachable);
}

TEST(exit_code, the_worst_of_several_wins_in_any_order) {
  EXPECT_EQ(worst(exit_code::no, exit_code::unreachable), exit_code::unreachable);
  EXPECT_EQ(worst(exit_code::unreachable, exit_code::no), exit_code::unreachable);
  EXPECT_EQ(worst({exit_code::done, exit_code::unknown, exit_code::no}), exit_code::unknown);
  EXPECT_EQ(worst(exit_code::done, exit_code::done), exit_code::done);
}

TEST(explain, knows_every_fault_and_every_step) {
#define BUSBAR_FAULT(name, ...) EXPECT_THAT(explain_text(#name), HasSubstr("next step")) << #name;
#include "actors/core/faults.def"
#undef BUSBAR_FAULT
  for (const step_text& text : step_texts())
    EXPECT_THAT(explain_text(text.step), HasSubstr("what must be seen"));
}

// A table that names a fault nobody has would send an operator nowhere.
TEST(explain, steps_name_only_faults_that_there_are) {
  for (const step_text& text : step_texts()) {
    for (std::string_view rest = text.faults; !rest.empty();) {
      const std::size_t comma = std::min(rest.find(", "), rest.size());
      const std::string_view fault = rest.substr(0, comma);
      rest.remove_prefix(std::min(comma + 2, rest.size()));
      const bool known = fault.ends_with('*') ? !names_like(fault.substr(0, fault.size() - 1)).empty()
                                              : core::fault_named(fault).has_value();
      EXPECT_TRUE(known) << text.step << ": " << fault;
    }
  }
}

TEST(explain, tells_a_step_for_each_kind_and_codes_by_number_and_name) {
  EXPECT_THAT(explain_text("credentialed"),
              ::testing::AllOf(HasSubstr("of a compute tray"), HasSubstr("of a power shelf")));
  EXPECT_THAT(explain_text("5"), HasSubstr("exit code 5"));
  EXPECT_THAT(explain_text("failed_precondition"), HasSubstr("5"));
  EXPECT_EQ(explain_text("nonsense"), "");
  EXPECT_THAT(explain_text("certificate_changed", text_format::json), HasSubstr("\"kind\": \"Explanation\""));
}

v1::WatchResponse change_of(const v1::Node& node) {
  v1::WatchResponse change;
  *change.mutable_node() = node;
  return change;
}

live_view sample_view(int trays) {
  live_view view;
  v1::WatchResponse rack;
  *rack.mutable_rack() = testing::sample_rack("r01");
  view.apply(rack);
  for (int i = 1; i <= trays; ++i)
    view.apply(
        change_of(testing::sample_node("r01", i < 10 ? "c0" + std::to_string(i) : "c" + std::to_string(i))));
  return view;
}

TEST(live_view, shows_a_row_a_member_with_step_time_and_what_it_waits_for) {
  live_view view = sample_view(2);
  v1::Node failed = testing::sample_node("r01", "c02");
  failed.mutable_status()->mutable_failure()->set_fault("CERTIFICATE_CHANGED");
  failed.mutable_status()->mutable_failure()->set_step("STAGED");
  view.apply(change_of(failed));
  EXPECT_THAT(
      view.lines(testing::sample_now(), 40, 200),
      ElementsAre("r01  cooled for 2m05s  members 0/2, 1 failed  waits for 3 of 4 compute trays powered",
                  "  r01/c01  credentialed         2m05s  host power: flow not proven",
                  "  r01/c02  credentialed FAILED  2m05s  CERTIFICATE_CHANGED at staged"));
}

TEST(live_view, folds_members_that_say_the_same_when_there_is_no_room) {
  EXPECT_THAT(sample_view(18).lines(testing::sample_now(), 10, 200),
              ElementsAre(HasSubstr("members 0/18"),
                          "  r01/c[01-18]  credentialed  2m05s  host power: flow not proven"));
}

TEST(live_view, never_draws_more_than_the_terminal_holds) {
  live_view view = sample_view(1);
  for (int i = 10; i < 40; ++i) {
    v1::Node node = testing::sample_node("r01", "c" + std::to_string(i));
    node.mutable_status()->set_waits_for("reason " + std::to_string(i));
    view.apply(change_of(node));
  }
  const auto lines = view.lines(testing::sample_now(), 12, 30);
  EXPECT_EQ(lines.size(), 12U);
  EXPECT_THAT(lines.back(), HasSubstr("more rows"));
  for (const std::string& line : lines) EXPECT_LE(line.size(), 30U);
}

TEST(live_view, says_a_change_once) {
  live_view view = sample_view(1);
  EXPECT_THAT(view.take_changes(), ElementsAre("r01 cooled (3 of 4 compute trays powered)",
                                               "r01/c01 credentialed (host power: flow not proven)"));
  v1::Node same = testing::sample_node("r01", "c01");
  same.set_revision(99);
  view.apply(change_of(same));
  EXPECT_TRUE(view.take_changes().empty());
}

}  // namespace
}  // namespace busbar::cli
