#include "actors/manifest/spec_reader.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/manifest/site_files.hpp"

namespace busbar::manifest {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::site_files;
using testing::site_files_with;
using ::testing::SizeIs;
using ::testing::StartsWith;
using testing::texts;

const std::string r01 = "manifests/r01.yaml";

TEST(spec_reader, reads_a_whole_site) {
  const read_result result = read_spec(site_files());
  ASSERT_THAT(texts(result.errors), IsEmpty());
  ASSERT_THAT(result.racks, SizeIs(1));
  const journal::RackSpec& spec = result.racks[0];
  EXPECT_EQ(spec.manifest().cooling().dp_min_kpa(), 20);
  EXPECT_EQ(spec.manifest().cooling().dp_max_kpa(), 120);
  EXPECT_EQ(spec.manifest().power().group_interval().nanos(), 200'000'000);
  EXPECT_EQ(spec.manifest().members(3).bmc_mac(), "02:18:01:00:00:0a");
  EXPECT_EQ(spec.manifest().members(4).kind(), journal::SWITCH_TRAY);
  EXPECT_EQ(spec.manifest().factory_logins().at("switch_tray").user(), "root");
  EXPECT_EQ(spec.sku().compute_tray().nics().pcie_generation(), 6U);
  EXPECT_EQ(spec.sku().rack().switch_(), 1U);
  EXPECT_EQ(spec.baseline().deadlines().at("firmware").seconds(), 10'800);
  EXPECT_EQ(spec.baseline().device().at("compute_tray").values().at("leak_reaction.critical"), "ForceOff");
  EXPECT_EQ(spec.suites().at("node").tests(1).metrics(0).min().at("vr-4x1"), 15'000);
  EXPECT_EQ(spec.suites().at("node").tests(0).metrics(0).max().at(""), 0);
  EXPECT_EQ(spec.suites().at("node").tests(0).metrics(1).equal(), "16");
  EXPECT_EQ(spec.suites().at("rack").tests(0).parameters().at("bytes"), "8388608");
  EXPECT_THAT(spec.digest(), SizeIs(64));
}

TEST(spec_reader, keeps_texts_as_written_and_attributes_canonical) {
  const journal::Baseline baseline = read_spec(site_files()).racks.at(0).baseline();
  EXPECT_EQ(baseline.bios().at("compute_tray").values().at("SriovEnable"), "true");
  EXPECT_EQ(baseline.device().at("compute_tray").values().at("ratio"), "87.5");
  EXPECT_EQ(baseline.firmware().at("compute_tray").rows(1).version(), "2.10");
}

TEST(spec_reader, puts_firmware_rows_into_baseline_order) {
  const journal::Baseline baseline = read_spec(site_files()).racks.at(0).baseline();
  const auto& rows = baseline.firmware().at("compute_tray");
  ASSERT_EQ(rows.rows_size(), 2);
  EXPECT_EQ(rows.rows(0).component(), "FW_BMC_0");
  EXPECT_EQ(rows.rows(1).component(), "UEFI");
  EXPECT_EQ(baseline.firmware().at("power_shelf").rows_size(), 0);
}

TEST(spec_reader, digest_follows_the_content_and_not_the_order_of_files) {
  std::vector<source_file> files = site_files();
  const std::string digest = read_spec(files).racks.at(0).digest();
  std::swap(files.front(), files.back());
  EXPECT_EQ(read_spec(files).racks.at(0).digest(), digest);
  const auto changed = read_spec(site_files_with(r01, "flow_min_lpm: 120", "flow_min_lpm: 121"));
  EXPECT_NE(changed.racks.at(0).digest(), digest);
}

TEST(spec_reader, finds_suites_beside_the_baseline_when_paths_have_a_folder_before_them) {
  std::vector<source_file> files = site_files();
  for (source_file& file : files) file.path = "delivery/" + file.path;
  EXPECT_THAT(texts(read_spec(files).errors), IsEmpty());
}

struct spoiled {
  const char* path;
  const char* text;
  const char* other;
  std::vector<const char*> errors;  // beginnings
};

void PrintTo(const spoiled& sample, std::ostream* out) {
  *out << sample.errors.front();
}

class spoiled_site : public ::testing::TestWithParam<spoiled> {};

TEST_P(spoiled_site, is_refused_with_file_and_key_path) {
  const spoiled& sample = GetParam();
  const read_result result = read_spec(site_files_with(sample.path, sample.text, sample.other));
  EXPECT_THAT(result.racks, IsEmpty());
  const std::vector<std::string> found = texts(result.errors);
  ASSERT_THAT(found, SizeIs(sample.errors.size())) << ::testing::PrintToString(found);
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_THAT(found[i], StartsWith(sample.errors[i]));
}

INSTANTIATE_TEST_SUITE_P(
    cases, spoiled_site,
    ::testing::Values(
        spoiled{"manifests/r01.yaml",
                "site: lab",
                "site: lab\ncolour: red",
                {"manifests/r01.yaml: colour: unknown key"}},
        spoiled{"manifests/r01.yaml", "cdu: cdu01, ", "", {"manifests/r01.yaml: cooling.cdu: missing"}},
        spoiled{"manifests/r01.yaml",
                "site: lab",
                "site: [lab]",
                {"manifests/r01.yaml: site: expected a text, found a list"}},
        spoiled{"manifests/r01.yaml",
                "site: lab",
                "site: lab\nsite: lab",
                {"manifests/r01.yaml: site: the key is there twice"}},
        spoiled{"manifests/r01.yaml",
                "slot: c02",
                "slot: c01",
                {"manifests/r01.yaml: members[1].slot: c01 is already that of members[0]"}},
        spoiled{"manifests/r01.yaml",
                "00:00:02",
                "00:00:01",
                {"manifests/r01.yaml: members[1].bmc_mac: 02:18:01:00:00:01 is already that of members[0]"}},
        spoiled{"manifests/r01.yaml",
                "SN1830002",
                "SN1830001",
                {"manifests/r01.yaml: members[1].serial: SN1830001 is already"}},
        spoiled{"manifests/r01.yaml",
                "SN1830002",
                "N/A",
                {"manifests/r01.yaml: members[1].serial: 'N/A' is not a serial number"}},
        spoiled{"manifests/r01.yaml",
                "02:18:01:00:00:02",
                "02:18:01:00:02",
                {"manifests/r01.yaml: members[1].bmc_mac: '02:18:01:00:02' is not a MAC"}},
        spoiled{"manifests/r01.yaml",
                "address: 127.18.1.2}",
                "address: 127.18.1.300}",
                {"manifests/r01.yaml: members[1].address: '127.18.1.300' is not an address"}},
        spoiled{"manifests/r01.yaml",
                "slot: s01, kind: switch_tray",
                "slot: s01, kind: swich_tray",
                {"manifests/r01.yaml: members[4].kind: 'swich_tray' is not one of: compute_tray, "
                 "switch_tray, power_shelf"}},
        spoiled{"manifests/r01.yaml",
                "slot: s01",
                "slot: c09",
                {"manifests/r01.yaml: members[4].slot: 'c09' is not a slot of a switch_tray"}},
        spoiled{"manifests/r01.yaml",
                "[node, rack]",
                "[node, fabric]",
                {"manifests/r01.yaml: gates[1]: 'fabric' is not possible here"}},
        spoiled{"manifests/r01.yaml",
                "[node, rack]",
                "[node, gate]",
                {"manifests/r01.yaml: gates[1]: 'gate' is not one of"}},
        spoiled{"manifests/r01.yaml",
                "sku: vr-4x1",
                "sku: vr-9",
                {"manifests/r01.yaml: sku: no Sku is named 'vr-9' (given: vr-4x1)",
                 "suites/node-quick.yaml: tests[1].metrics[0].min: has no limit for SKU vr-9",
                 "suites/rack-quick.yaml: tests[0].metrics[0].min: has no limit for SKU vr-9"}},
        spoiled{"manifests/r01.yaml",
                "baseline: vr-2026-11",
                "baseline: other",
                {"manifests/r01.yaml: baseline: no Baseline is named 'other'"}},
        spoiled{"manifests/r01.yaml",
                "group_interval: 200ms",
                "group_interval: 200",
                {"manifests/r01.yaml: power.group_interval: '200' is not a duration"}},
        spoiled{"manifests/r01.yaml",
                "rack_limit_kw: 230",
                "rack_limit_kw: .nan",
                {"manifests/r01.yaml: power.rack_limit_kw: expected a number, found '.nan'"}},
        spoiled{"manifests/r01.yaml",
                "rack_limit_kw: 230",
                "rack_limit_kw: nan",
                {"manifests/r01.yaml: power.rack_limit_kw: expected a number, found 'nan'"}},
        spoiled{"manifests/r01.yaml",
                "flow_min_lpm: 120",
                "flow_min_lpm: -120",
                {"manifests/r01.yaml: cooling.flow_min_lpm: -120 is negative"}},
        spoiled{"manifests/r01.yaml",
                "flow_min_lpm: 120",
                "flow_min_lpm: \"120\"",
                {"manifests/r01.yaml: cooling.flow_min_lpm: expected a number"}},
        spoiled{"manifests/r01.yaml",
                "dp_kpa: [20, 120]",
                "dp_kpa: [120, 20]",
                {"manifests/r01.yaml: cooling.dp_kpa: the second"}},
        spoiled{"manifests/r01.yaml",
                "dp_kpa: [20, 120]",
                "dp_min_kpa: 20",
                {"manifests/r01.yaml: cooling.dp_min_kpa: unknown key",
                 "manifests/r01.yaml: cooling.dp_kpa: missing",
                 "manifests/r01.yaml: cooling.dp_kpa: the second"}},
        spoiled{"manifests/r01.yaml",
                "site/factory.pw",
                "../../etc/shadow",
                {"manifests/r01.yaml: factory_logins.compute_tray.password_file: '../../etc/shadow' is not a "
                 "path inside"}},
        spoiled{"manifests/r01.yaml",
                "  power_shelf: {user: root, password_file: site/factory.pw}\n",
                "",
                {"manifests/r01.yaml: factory_logins.power_shelf: missing"}},
        spoiled{"manifests/r01.yaml",
                "  - {slot: s01, kind: switch_tray, bmc_mac: \"02:18:01:00:00:1f\", serial: SN1830031}\n",
                "",
                {"manifests/r01.yaml: members: 0 of kind switch_tray, SKU vr-4x1 has 1"}},
        spoiled{"manifests/r01.yaml",
                "apiVersion: busbar.v1",
                "apiVersion: busbar.v2",
                {"manifests/r01.yaml: apiVersion: 'busbar.v2'"}},
        spoiled{"manifests/r01.yaml",
                "site: lab",
                "site: {lab",
                {"manifests/r01.yaml: line 4, column 8: is not YAML"}},
        spoiled{"sku.yaml", "gpus: 16", "gpus: 17", {"sku.yaml: rack.gpus: is 17, but"}},
        spoiled{"sku.yaml",
                "count: 8, model: ConnectX-9",
                "count: 8.5, model: ConnectX-9",
                {"sku.yaml: compute_tray.nics.count: 8.5 is not a whole number"}},
        spoiled{
            "sku.yaml", "width: 16}", "lanes: 16}", {"sku.yaml: compute_tray.nics.pcie.lanes: unknown key"}},
        spoiled{"sku.yaml",
                "[leakage1, leakage2]",
                "[]",
                {"sku.yaml: switch_tray.leak_detectors: names no detector"}},
        spoiled{"baseline.yaml", "staged: 20m, ", "", {"baseline.yaml: deadlines.staged: missing"}},
        spoiled{"baseline.yaml",
                "staged: 20m",
                "staged: 20m, stagged: 20m",
                {"baseline.yaml: deadlines.stagged: 'stagged' is not one of"}},
        spoiled{"baseline.yaml",
                "staged: 20m",
                "staged: 0s",
                {"baseline.yaml: deadlines.staged: must be greater than zero"}},
        spoiled{"baseline.yaml",
                "staged: 20m",
                "staged: -20m",
                {"baseline.yaml: deadlines.staged: '-20m' is not a duration"}},
        spoiled{"baseline.yaml",
                "component: UEFI",
                "component: FW_BMC_0",
                {"baseline.yaml: firmware.compute_tray[1].component: FW_BMC_0 is already that of "
                 "firmware.compute_tray[0]"}},
        spoiled{"baseline.yaml",
                "0123456789abcdef0123",
                "xyz",
                {"baseline.yaml: firmware.compute_tray[1].sha256: 'xyz"}},
        spoiled{"baseline.yaml",
                "bios: {compute_tray:",
                "bios: {tray:",
                {"baseline.yaml: bios.tray: 'tray' is not one of"}},
        spoiled{"baseline.yaml",
                "suites/node-quick.yaml",
                "suites/none.yaml",
                {"baseline.yaml: suites.node: no file given is 'suites/none.yaml'"}},
        spoiled{"baseline.yaml",
                "{node: suites/node-quick.yaml, ",
                "{",
                {"manifests/r01.yaml: gates[0]: baseline vr-2026-11 names no suite of level node"}},
        spoiled{"suites/node-quick.yaml",
                ", max: 2.1",
                "",
                {"suites/node-quick.yaml: tests[2].metrics[0]: has none of"}},
        spoiled{"suites/node-quick.yaml",
                "vr-4x1: 15000, ",
                "",
                {"suites/node-quick.yaml: tests[1].metrics[0].min: has no limit for SKU vr-4x1"}},
        spoiled{"suites/node-quick.yaml",
                "level: node",
                "level: rack",
                {"baseline.yaml: suites.node: suites/node-quick.yaml is of level rack"}},
        spoiled{"suites/rack-quick.yaml",
                "kind: Suite",
                "kind: Suit",
                {"suites/rack-quick.yaml: kind: 'Suit' is not one of",
                 "baseline.yaml: suites.rack: no file given"}}));

TEST(spec_reader, names_all_errors_at_once_in_all_files) {
  std::vector<source_file> files = site_files_with(r01, "02:18:01:00:00:02", "zz");
  files[0].content.replace(files[0].content.find("inrush_limit_a: 900"), 19, "inrush_limit: 900");
  files[1].content.replace(files[1].content.find("psus: 6"), 7, "psus: six");
  files[3].content.replace(files[3].content.find("duration: 1s"), 12, "duration: soon");
  EXPECT_THAT(texts(read_spec(files).errors),
              ElementsAre(HasSubstr("r01.yaml: power.inrush_limit: unknown key"),
                          HasSubstr("r01.yaml: power.inrush_limit_a: missing"),
                          HasSubstr("r01.yaml: members[1].bmc_mac: 'zz'"),
                          HasSubstr("r01.yaml: power.inrush_per_tray_a: is above"),
                          HasSubstr("sku.yaml: power_shelf.psus: expected a number, found 'six'"),
                          HasSubstr("node-quick.yaml: tests[0].duration: 'soon' is not a duration")));
}

TEST(spec_reader, finds_one_bmc_declared_in_two_racks) {
  std::vector<source_file> files = site_files();
  source_file second = files[0];
  second.path = "manifests/r02.yaml";
  second.content.replace(second.content.find("rack: r01"), 9, "rack: r02");
  for (std::size_t at = 0; (at = second.content.find("SN183", at)) != std::string::npos; ++at)
    second.content[at + 3] = '9';
  for (std::size_t at = 0; (at = second.content.find("127.18.1.", at)) != std::string::npos; ++at)
    second.content[at + 7] = '2';
  for (std::size_t at = 0; (at = second.content.find("02:18:01", at)) != std::string::npos; ++at) {
    if (second.content.substr(at, 17) != "02:18:01:00:00:1f") second.content[at + 7] = '2';
  }
  files.push_back(second);
  EXPECT_THAT(
      texts(read_spec(files).errors),
      ElementsAre("manifests/r02.yaml: members[4].bmc_mac: 02:18:01:00:00:1f is also members[4].bmc_mac in "
                  "manifests/r01.yaml"));
}

// Every pair of things with an address of their own: tray, switch tray, shelf, CDU, within a file and across
// two.
TEST(spec_reader, refuses_one_address_of_two_with_both_key_paths) {
  struct sample {
    const char* text;
    const char* other;
    const char* error;
  };
  const std::vector<sample> samples = {
      {"127.18.1.2}", "127.18.1.1}", "members[1].address: 127.18.1.1 is also members[0].address"},
      {"127.18.1.2}", "127.18.200.1}", "members[1].address: 127.18.200.1 is also cooling.address"},
      {"SN1830031}", "SN1830031, address: 127.18.1.1}",
       "members[4].address: 127.18.1.1 is also members[0].address"},
      {"SN1830051}", "SN1830051, address: 127.18.1.2}",
       "members[5].address: 127.18.1.2 is also members[1].address"},
      {"SN1830051}", "SN1830051, address: 127.18.200.1}",
       "members[5].address: 127.18.200.1 is also cooling.address"},
      {"address: \"127.18.200.1:8443\"", "address: \"127.18.1.1:443\"",
       "members[0].address: 127.18.1.1 is also cooling.address"},
  };
  for (const sample& one : samples) {
    const auto result = read_spec(site_files_with(r01, one.text, one.other));
    EXPECT_THAT(texts(result.errors), ElementsAre(r01 + ": " + one.error));
    EXPECT_THAT(result.racks, IsEmpty());
  }
}

// A second rack that shares nothing with r01 but what the caller puts back.
std::vector<source_file> two_racks(const std::string& text, const std::string& other) {
  std::vector<source_file> files = site_files();
  source_file second = files[0];
  second.path = "manifests/r02.yaml";
  for (const auto& [from, to] :
       std::vector<std::pair<std::string, std::string>>{{"rack: r01", "rack: r02"},
                                                        {"SN183", "SN283"},
                                                        {"02:18:01", "02:18:02"},
                                                        {"127.18.1.", "127.18.2."}}) {
    for (std::size_t at = 0; (at = second.content.find(from, at)) != std::string::npos; ++at)
      second.content.replace(at, from.size(), to);
  }
  const std::size_t place = second.content.find(text);
  EXPECT_NE(place, std::string::npos);
  second.content.replace(place, text.size(), other);
  files.push_back(second);
  return files;
}

TEST(spec_reader, racks_may_share_a_cdu_by_its_name_and_nothing_else) {
  EXPECT_THAT(texts(read_spec(two_racks("site: lab", "site: lab")).errors), IsEmpty());
  EXPECT_THAT(texts(read_spec(two_racks("cdu: cdu01", "cdu: cdu02")).errors),
              ElementsAre("manifests/r02.yaml: cooling.address: 127.18.200.1:8443 is also cooling.address in "
                          "manifests/r01.yaml"));
  EXPECT_THAT(
      texts(read_spec(two_racks("127.18.200.1:8443", "127.18.200.2:8443")).errors),
      ElementsAre("manifests/r02.yaml: cooling.address: cdu01 is 127.18.200.2:8443 here, another manifest "
                  "gives 127.18.200.1:8443 as its cooling.address"));
  EXPECT_THAT(texts(read_spec(two_racks("127.18.2.2}", "127.18.1.2}")).errors),
              ElementsAre("manifests/r02.yaml: members[1].address: 127.18.1.2 is also members[1].address in "
                          "manifests/r01.yaml"));
  EXPECT_THAT(texts(read_spec(two_racks("127.18.2.2}", "127.18.200.1}")).errors),
              ElementsAre("manifests/r02.yaml: members[1].address: 127.18.200.1 is also cooling.address in "
                          "manifests/r01.yaml"));
}

TEST(spec_reader, two_manifests_of_one_rack_are_an_error) {
  std::vector<source_file> files = site_files();
  files.push_back({"copy.yaml", files[0].content});
  EXPECT_THAT(texts(read_spec(files).errors),
              ElementsAre(HasSubstr("members[0].address"), HasSubstr("members[1].address"),
                          "copy.yaml: rack: 'r01' is also declared in manifests/r01.yaml",
                          HasSubstr("members[0].bmc_mac"), HasSubstr("members[0].serial"),
                          HasSubstr("members[1].bmc_mac"), HasSubstr("members[1].serial"),
                          HasSubstr("members[2].bmc_mac"), HasSubstr("members[2].serial"),
                          HasSubstr("members[3].bmc_mac"), HasSubstr("members[4].bmc_mac"),
                          HasSubstr("members[4].serial"), HasSubstr("members[5].bmc_mac"),
                          HasSubstr("members[5].serial")));
}

TEST(spec_reader, survives_documents_that_are_no_maps) {
  for (const char* content :
       {"", "---", "- 1", "text", "{[]: 1}", "kind: Manifest", "? {a: 1}\n: 2", "a: &a [*a]", "\xff\xfe"}) {
    const read_result result = read_spec({{"odd.yaml", content}});
    EXPECT_FALSE(result.errors.empty()) << content;
    EXPECT_THAT(result.racks, IsEmpty());
  }
}

TEST(spec_reader, stops_at_a_document_that_aliases_make_huge) {
  std::string content = "apiVersion: busbar.v1\nkind: Baseline\nname: b\nx: &a0 {k: v}\n";
  for (int i = 1; i < 9; ++i) {
    content += "y" + std::to_string(i) + ": &a" + std::to_string(i) + " {";
    for (int j = 0; j < 12; ++j) content += "k" + std::to_string(j) + ": *a" + std::to_string(i - 1) + ", ";
    content += "}\n";
  }
  content += "device: {compute_tray: *a7}\n";
  EXPECT_THAT(texts(read_spec({{"bomb.yaml", content}}).errors),
              ::testing::Contains(HasSubstr("not read further")));
}

}  // namespace
}  // namespace busbar::manifest
