// A fault that fits nothing is refused with the forms that fit, for every kind on every kind of member.
#include "daemon/sim/fault_target.hpp"

#include <gmock/gmock.h>

#include <map>

#include "tests/unit/sim_model/bench_site.hpp"

namespace busbar::sim {
namespace {

using ::testing::HasSubstr;

const std::map<char, std::string> members = {
    {'c', "r01/c02"}, {'s', "r01/s01"}, {'p', "r01/p01"}, {'u', "cdu01"}};

absl::Status add(bench_site& site, std::string_view kind, const std::string& target) {
  fault_request request;
  request.kind = std::string(kind);
  request.target = target;
  return site.model->add_fault(request, site.now).status();
}

bool has_kind(const fault_text& kind, char letter) {
  return kind.targets.find(letter) != std::string_view::npos;
}

TEST(fault_targets, every_kind_takes_its_kinds_of_members_and_no_other) {
  bench_site site;
  for (const fault_text& kind : fault_table()) {
    for (const auto& [letter, member] : members) {
      const absl::Status added = add(site, kind.name, member);
      EXPECT_EQ(added.ok(), has_kind(kind, letter)) << kind.name << " on " << member << ": " << added;
      if (added.ok()) continue;
      EXPECT_EQ(added.code(), absl::StatusCode::kInvalidArgument);
      EXPECT_THAT(std::string(added.message()), HasSubstr("forms that fit: "));
      site.model->clear_faults("", "", site.now);
    }
  }
}

// What each kind of part looks like where it is and where it is not there (vr-4x1: 4 GPUs, 6 supplies).
TEST(fault_targets, a_part_that_the_member_does_not_have_is_refused_and_nothing_is_put_on) {
  const std::map<fault_part, std::pair<std::vector<std::string>, std::vector<std::string>>> parts = {
      {fault_part::psu, {{"psu0", "psu5"}, {"psu6", "psu", "gpu0", "psu01"}}},
      {fault_part::gpu, {{"gpu0", "gpu3"}, {"gpu4", "gpu", "gpu1/nvlink0", "nic0"}}},
      {fault_part::link,
       {{"gpu0/nvlink0", "gpu3/nvlink17"},
        {"gpu1", "nvlink3", "gpu4/nvlink0", "gpu1/nvlink18", "gpu1/nvlink3/x"}}},
      {fault_part::card, {{"nic0", "gpu3"}, {"nic99", "gpu4", "psu0"}}},
  };
  for (const fault_text& kind : fault_table()) {
    const auto form = parts.find(kind.part);
    for (const auto& [letter, member] : members) {
      if (!has_kind(kind, letter) || form == parts.end()) continue;
      bench_site site;
      for (const std::string& part : form->second.second) {
        const absl::Status refused = add(site, kind.name, member + "/" + part);
        EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument)
            << kind.name << " on " << member << "/" << part;
        EXPECT_THAT(std::string(refused.message()), HasSubstr(form->second.first.front()));
      }
      EXPECT_TRUE(site.model->faults(site.now).empty());
      for (const std::string& part : form->second.first) {
        const absl::Status added = add(site, kind.name, member + "/" + part);
        EXPECT_TRUE(added.ok()) << added;
      }
    }
  }
}

TEST(fault_targets, every_kind_refuses_a_part_nobody_has_and_says_what_it_wants) {
  bench_site site;
  for (const fault_text& kind : fault_table()) {
    for (const auto& [letter, member] : members) {
      if (!has_kind(kind, letter)) continue;
      const absl::Status refused = add(site, kind.name, member + "/no_such_part");
      EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << kind.name << " on " << member;
      EXPECT_THAT(std::string(refused.message()),
                  HasSubstr(kind.part == fault_part::none ? "as a whole" : "parts of"));
    }
  }
  EXPECT_TRUE(site.model->faults(site.now).empty());
}

// The names that the members show are the names that fit.
TEST(fault_targets, every_detector_and_component_of_a_member_is_taken_by_its_name) {
  bench_site site;
  for (const fault_text& kind : fault_table()) {
    if (kind.part != fault_part::detector && kind.part != fault_part::component) continue;
    for (const auto& [letter, member] : members) {
      if (!has_kind(kind, letter)) continue;
      const std::string words(add(site, kind.name, member + "/no_such_part").message());
      const std::string list = words.substr(words.find("parts of " + member + ": ") + 11 + member.size());
      ASSERT_FALSE(list.empty()) << words;
      for (std::size_t at = 0, end = 0; end != std::string::npos; at = end + 2) {
        end = list.find(", ", at);
        const std::string part = list.substr(at, end == std::string::npos ? end : end - at);
        const absl::Status added = add(site, kind.name, member + "/" + part);
        EXPECT_TRUE(added.ok()) << added;
      }
    }
  }
}

TEST(fault_targets, an_unknown_member_or_kind_is_named) {
  bench_site site;
  EXPECT_EQ(add(site, "leak", "r01/c99").code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(add(site, "leak", "r07/c01/0_ColdPlate").code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(add(site, "leaks", "r01/c01").message()), HasSubstr("fault kinds"));
  for (const char* nowhere : {"", "/", "r01", "r01/", "c01", "//c01"})
    EXPECT_FALSE(add(site, "leak", nowhere).ok()) << nowhere;
}

TEST(fault_targets, a_refused_fault_takes_no_other_of_its_kind_away) {
  bench_site site;
  ASSERT_TRUE(add(site, "leak", "r01/c01").ok());
  ASSERT_FALSE(add(site, "leak", "r01/c99").ok());
  EXPECT_EQ(site.model->faults(site.now).size(), 1U);
}

}  // namespace
}  // namespace busbar::sim
