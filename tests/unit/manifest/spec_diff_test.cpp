#include "actors/manifest/spec_diff.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/manifest/site_files.hpp"

namespace busbar::manifest {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using testing::site_files;
using testing::site_files_with;

journal::RackSpec spec_with(const std::string& path, const std::string& text, const std::string& other) {
  return read_spec(site_files_with(path, text, other)).racks.at(0);
}

TEST(spec_diff, equal_specs_differ_in_nothing) {
  const journal::RackSpec spec = read_spec(site_files()).racks.at(0);
  EXPECT_THAT(diff(spec, spec), IsEmpty());
}

TEST(spec_diff, names_each_key_with_both_values) {
  const journal::RackSpec before = read_spec(site_files()).racks.at(0);
  EXPECT_THAT(diff(before, spec_with("manifests/r01.yaml", "SN1830002", "SN7")),
              ElementsAre(Pair("manifest.members[c02].serial", "SN1830002 -> SN7")));
  EXPECT_THAT(diff(before, spec_with("baseline.yaml", "staged: 20m", "staged: 90s")),
              ElementsAre(Pair("baseline.deadlines.staged", "20m -> 1m30s")));
  EXPECT_THAT(diff(before, spec_with("suites/node-quick.yaml", "vr-4x1: 15000", "vr-4x1: 15001")),
              ElementsAre(Pair("suites.node.tests[hbm].metrics[hbm_copy].min.vr-4x1", "15000 -> 15001")));
  EXPECT_THAT(diff(before, spec_with("baseline.yaml", "critical: ForceOff", "critical: None")),
              ElementsAre(Pair("baseline.device.compute_tray.leak_reaction.critical", "ForceOff -> None")));
}

TEST(spec_diff, a_row_taken_out_is_no_change_of_the_rows_behind_it) {
  const journal::RackSpec before = read_spec(site_files()).racks.at(0);
  journal::RackSpec after = before;
  after.mutable_manifest()->mutable_members()->DeleteSubrange(1, 1);
  const auto found = diff(before, after);
  EXPECT_EQ(found.size(), 5U);
  EXPECT_EQ(found.at("manifest.members[c02].slot"), "c02 -> (none)");
}

TEST(spec_diff, the_first_spec_is_all_new) {
  for (const auto& [path, text] : diff({}, read_spec(site_files()).racks.at(0))) {
    EXPECT_EQ(text.rfind("(none) -> ", 0), 0U) << path;
  }
}

}  // namespace
}  // namespace busbar::manifest
