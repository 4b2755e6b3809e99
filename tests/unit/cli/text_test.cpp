// The parts of the CLI that need no daemon: host lists, exit codes, explain, the live view.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <absl/status/status.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "actors/core/errors.hpp"
#include "actors/node/node_table.hpp"
#include "daemon/cli/describe.hpp"
#include "daemon/cli/exit_code.hpp"
#include "daemon/cli/explain.hpp"
#include "daemon/cli/explain_table.hpp"
#include "daemon/cli/host_list.hpp"
#include "daemon/cli/live_view.hpp"
#include "daemon/cli/table.hpp"
#include "daemon/cli/word_table.hpp"
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
      exit_code::timeout,      exit_code::usage,    exit_code::conflict,    exit_code::not_permitted,
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

struct tray_kind {
  journal::MemberKind kind;
  std::string_view subject;
};

// The words say of every arrow what the tables do: where it leads, and which deadline of the baseline it has.
TEST(explain, tells_every_step_as_the_members_tables_have_it) {
  for (const tray_kind& of : {tray_kind{journal::COMPUTE_TRAY, "compute tray"},
                              {journal::SWITCH_TRAY, "switch tray"},
                              {journal::POWER_SHELF, "power shelf"},
                              {journal::RACK_CONTROLLER, "rack controller"}}) {
    std::map<std::string, const step_text*> told;
    for (const step_text& text : step_texts()) {
      if (text.subject == of.subject) told[std::string(text.step)] = &text;
    }
    EXPECT_EQ(told.size(), 11U) << of.subject;
    for (const node::arrow& arrow : node::arrows_of(of.kind)) {
      const std::string from = word(journal::NodeStep_Name(arrow.from));
      const std::string to = word(journal::NodeStep_Name(arrow.to));
      ASSERT_TRUE(told.contains(from) && told.contains(to)) << of.subject << ": " << from << " to " << to;
      EXPECT_EQ(told[from]->leads_to, to) << of.subject;
      EXPECT_EQ(told[to]->deadline, arrow.deadline_key) << of.subject << ": " << to;
    }
  }
}

// Every word of the public resources, alone and as JSON has it.
TEST(explain, knows_every_word_of_the_api) {
  std::vector<const google::protobuf::EnumDescriptor*> enums;
  for (const auto* file : {v1::Rack::descriptor()->file(), v1::Operation::descriptor()->file()}) {
    for (int i = 0; i < file->enum_type_count(); ++i) enums.push_back(file->enum_type(i));
    for (int i = 0; i < file->message_type_count(); ++i) {
      for (int j = 0; j < file->message_type(i)->enum_type_count(); ++j)
        enums.push_back(file->message_type(i)->enum_type(j));
    }
  }
  ASSERT_GE(enums.size(), 12U);
  for (const auto* type : enums) {
    for (int i = 0; i < type->value_count(); ++i) {
      const std::string& name = type->value(i)->name();
      if (name.ends_with("_UNSPECIFIED")) continue;
      EXPECT_NE(explain_text(name), "") << type->full_name() << ": " << name;
      EXPECT_NE(explain_text(word(name)), "") << type->full_name() << ": " << word(name);
    }
  }
}

// Read from the sources: a condition that is set somewhere and told nowhere would leave a person alone with it.
TEST(explain, knows_every_condition_that_is_set) {
  const std::regex call("set_condition\\(\"([A-Z_]+)\"|set_type\\(\"([A-Z_]+)\"\\)");
  std::set<std::string> conditions;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(std::string(BUSBAR_SOURCE) + "/actors")) {
    if (entry.path().extension() != ".cpp") continue;
    std::stringstream text;
    text << std::ifstream(entry.path()).rdbuf();
    const std::string source = text.str();
    for (std::sregex_iterator at(source.begin(), source.end(), call), end; at != end; ++at)
      conditions.insert((*at)[1].matched ? (*at)[1].str() : (*at)[2].str());
  }
  EXPECT_TRUE(conditions.contains("FLOW_PROVEN")) << "the sources are read wrongly";
  for (const std::string& condition : conditions)
    EXPECT_THAT(explain_text(condition), HasSubstr("meaning")) << condition;
}

TEST(explain, knows_every_exit_code_and_every_status) {
  for (const exit_text& text : exit_texts())
    EXPECT_THAT(explain_text(std::to_string(static_cast<int>(text.code))), HasSubstr(std::string(text.meaning).substr(0, 4)));
  for (int code = 0; code <= 16; ++code)
    EXPECT_NE(explain_text(absl::StatusCodeToString(static_cast<absl::StatusCode>(code))), "") << code;
}

TEST(explain, tells_a_family_of_faults) {
  EXPECT_THAT(explain_text("POWER_*"), ::testing::AllOf(HasSubstr("POWER_LEAK_LATCHED"), HasSubstr("POWER_OVER_BUDGET")));
  EXPECT_EQ(explain_text("NOTHING_*"), "");
}

// One slip in any name that there is finds it again.
TEST(explain, finds_the_nearest_name) {
  std::vector<std::string> all;
#define BUSBAR_FAULT(name, ...) all.emplace_back(#name);
#include "actors/core/faults.def"
#undef BUSBAR_FAULT
  for (const step_text& text : step_texts()) all.emplace_back(text.step);
  for (std::string name : all) {
    const std::string right = name;
    std::swap(name[name.size() / 2], name[name.size() / 2 + 1]);
    EXPECT_THAT(names_like(name), HasSubstr(right)) << name;
  }
  EXPECT_EQ(names_like("PRODUKTION"), "production");
  EXPECT_EQ(names_like("xyzzyxyzzy"), "");
  EXPECT_EQ(names_like(std::string(100'000, 'x')), "");
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

std::string described(v1::MemberKind kind, const std::function<void(v1::MemberStatus&)>& fill) {
  v1::Node node = testing::sample_node("r01", "c01");
  node.mutable_spec()->set_kind(kind);
  v1::MemberStatus& status = *node.mutable_status();
  status.clear_agent_connected();
  status.clear_boot_id();
  fill(status);
  return describe_text(node, testing::sample_now());
}

TEST(describe, leaves_out_what_does_not_apply_and_says_what_is_not_known) {
  const auto nothing = [](v1::MemberStatus&) {};
  EXPECT_THAT(described(v1::COMPUTE_TRAY, nothing), HasSubstr("agent connected          unknown"));
  EXPECT_THAT(described(v1::MEMBER_KIND_UNSPECIFIED, nothing), HasSubstr("agent connected          unknown"));
  for (const v1::MemberKind kind : {v1::SWITCH_TRAY, v1::POWER_SHELF}) {
    const std::string text = described(kind, nothing);
    EXPECT_THAT(text, ::testing::Not(HasSubstr("agent connected")));
    EXPECT_THAT(text, ::testing::Not(HasSubstr("boot id")));
    EXPECT_THAT(text, HasSubstr("health"));
  }
  const auto no_wish = [](v1::MemberStatus& status) {
    status.clear_goal();
    status.mutable_power()->clear_wanted();
    status.mutable_power()->clear_observed();
  };
  const std::string text = described(v1::COMPUTE_TRAY, no_wish);
  EXPECT_THAT(text, ::testing::Not(HasSubstr("goal")));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("wanted")));
  EXPECT_THAT(text, HasSubstr("observed               unknown"));
}

// Of every kind of part: what it cannot have is blank, what it has and did not say is unknown.
TEST(describe, tells_parts_by_what_they_can_have) {
  const std::map<std::string, int> unknown_fields{{"gpu", 4},  {"cpu", 1},  {"nic", 3},  {"dpu", 3}, {"drive", 3},
                                                  {"dimm", 1}, {"asic", 1}, {"psu", 0}, {"later", 6}};
  for (const auto& [kind, expected] : unknown_fields) {
    const std::string text = described(v1::COMPUTE_TRAY, [&kind = kind](v1::MemberStatus& status) {
      status.clear_parts();
      v1::Part& all = *status.add_parts();  // keeps every column
      all.set_kind("all");
      all.set_id("all");
      all.set_model("m");
      all.set_serial("s");
      all.set_health(v1::HEALTH_GOOD);
      all.set_memory_gib(1);
      all.set_cores(1);
      all.set_gbps(1);
      all.set_pcie_generation(1);
      all.set_pcie_width(1);
      all.set_links_up(1);
      v1::Part& part = *status.add_parts();
      part = all;
      part.set_kind(kind);
      part.set_id("the-part");
      for (auto clear : {&v1::Part::clear_memory_gib, &v1::Part::clear_cores, &v1::Part::clear_gbps,
                         &v1::Part::clear_pcie_generation, &v1::Part::clear_pcie_width, &v1::Part::clear_links_up}) {
        (part.*clear)();
      }
    });
    const std::size_t begin = text.find("the-part");
    ASSERT_NE(begin, std::string::npos);
    const std::string line = text.substr(begin, text.find('\n', begin) - begin);
    int unknowns = 0;
    for (std::size_t at = line.find("unknown"); at != std::string::npos; at = line.find("unknown", at + 1)) ++unknowns;
    EXPECT_EQ(unknowns, expected) << kind << ": " << line;
  }
}

TEST(describe, of_a_latched_member_names_the_reset_with_its_own_names) {
  const std::string text = described(v1::COMPUTE_TRAY, [](v1::MemberStatus& status) {
    status.clear_failure();
    status.set_emergency_off(true);
  });
  EXPECT_THAT(text, HasSubstr("busbar-interlock reset r01/c01 --instance r01 --reason TEXT\n"));
  EXPECT_THAT(text, HasSubstr(" busbar node retry r01/c01\n"));
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
