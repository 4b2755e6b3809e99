// What a manifest says of valves, PDUs, caps and the coolant's limits, and how it is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "actors/manifest/values.hpp"
#include "tests/unit/manifest/site_files.hpp"

namespace busbar::manifest {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;
using testing::site_files_with;
using testing::texts;

const std::string r01 = "manifests/r01.yaml";
const std::string last_row = "serial: SN1830051}";

// The site with a controller, and what a test writes behind the members.
std::vector<source_file> with_controller(const std::string& more) {
  std::vector<source_file> files = site_files_with(
      r01, last_row, last_row + "\n  - {slot: m01, kind: rack_controller, bmc_mac: \"02:18:01:00:00:47\"}\n" + more);
  for (source_file& file : files) {
    const std::string logins = "factory_logins:\n";
    const std::size_t place = file.content.find(logins);
    if (place != std::string::npos)
      file.content.insert(place + logins.size(), "  rack_controller: {user: root, password_file: site/factory.pw}\n");
  }
  return files;
}

std::string valve(const std::string& changed) {
  return "valves:\n  - {name: supply, kind: isolation, member: m01, authority: busbar, fail_position: hold, stroke: 15s}\n"
         "  - {" +
         changed + "}\n";
}

TEST(cooling_keys, are_read_with_what_they_mean) {
  std::vector<source_file> files = with_controller(
      valve("name: flow, kind: control, member: m01, connector: rack_flow, authority: device, fail_position: open, "
            "stroke: 800ms, least_percent: 10, most_percent: 90, rated_lpm: 160") +
      "pdus:\n  - {name: u01, protocol: snmp, dialect: apc_rpdu2, address: \"127.18.1.80:1161\", login: {user: \"\", "
      "password_file: site/community}, outlets: [{id: \"7\", feeds: c01}, {id: \"8\", feeds: the fan of the door}]}\n");
  for (source_file& file : files) {
    const std::string flow = "flow_min_lpm: 120, ";
    if (file.path != r01) continue;
    file.content.insert(file.content.find(flow),
                        "connector: c3, detectors: [r01_rope], supply_max_c: 50, pressure_max_kpa: 400, plant: "
                        "\"unix:/run/busbar/plant1/plant.sock\", interlock_login: {user: guard, password_file: site/g.pw}, ");
    file.content.insert(file.content.find("rack_limit_kw"),
                        "gpu_cap_min_w: 600, gpu_cap_max_w: 1800, cap_priority: {c01: 10, c02: -3}, ");
  }
  const read_result result = read_spec(files);
  ASSERT_THAT(texts(result.errors), IsEmpty());
  const journal::Manifest& manifest = result.racks.at(0).manifest();
  EXPECT_EQ(manifest.members(6).kind(), journal::RACK_CONTROLLER);
  EXPECT_EQ(manifest.cooling().connector(), "c3");
  EXPECT_EQ(manifest.cooling().supply_max_c(), 50);
  EXPECT_EQ(manifest.cooling().interlock_login().user(), "guard");
  EXPECT_EQ(manifest.power().cap_priority().at("c02"), -3);
  ASSERT_THAT(manifest.valves(), SizeIs(2));
  EXPECT_EQ(manifest.valves(0).stroke().seconds(), 15);
  EXPECT_EQ(manifest.valves(1).stroke().nanos(), 800'000'000);
  EXPECT_EQ(manifest.valves(1).most_percent(), 90);
  EXPECT_EQ(manifest.pdus(0).outlets(1).feeds(), "the fan of the door");
  EXPECT_EQ(manifest.pdus(0).login().user(), "");
}

TEST(cooling_keys, rack_without_valves_and_pdus_is_read_as_before) {
  EXPECT_THAT(texts(read_spec(testing::site_files()).errors), IsEmpty());
  EXPECT_THAT(texts(read_spec(with_controller("")).errors), IsEmpty());
}

struct refused_key {
  const char* name;
  std::string more;
  const char* error;  // its beginning
};

TEST(cooling_keys, every_contradiction_is_refused_with_its_key_path) {
  const std::string pdu = "pdus:\n  - {name: u01, protocol: redfish, address: \"127.18.1.80:8443\", login: {user: root, "
                          "password_file: site/factory.pw}}\n  - {";
  const refused_key cases[] = {
      {"two of a name", valve("name: supply, kind: control, member: m01, authority: busbar, fail_position: hold, stroke: 1s"),
       "manifests/r01.yaml: valves[1].name: supply is already that of valves[0]"},
      {"one connector twice",
       valve("name: other, connector: supply, kind: control, member: m01, authority: busbar, fail_position: hold, stroke: 1s"),
       "manifests/r01.yaml: valves[1].connector: supply of m01 is already valves[0]"},
      {"no such controller",
       valve("name: flow, kind: control, member: m02, authority: busbar, fail_position: hold, stroke: 1s"),
       "manifests/r01.yaml: valves[1].member: 'm02' is not a rack_controller"},
      {"behind a tray", valve("name: flow, kind: control, member: c01, authority: busbar, fail_position: hold, stroke: 1s"),
       "manifests/r01.yaml: valves[1].member: 'c01' is not a rack_controller"},
      {"no stroke", valve("name: flow, kind: control, member: m01, authority: busbar, fail_position: hold, stroke: 0s"),
       "manifests/r01.yaml: valves[1].stroke: must be greater than zero"},
      {"stroke left out", valve("name: flow, kind: control, member: m01, authority: busbar, fail_position: hold"),
       "manifests/r01.yaml: valves[1].stroke: missing"},
      {"a stroke beyond what a trip plans with",
       valve("name: flow, kind: control, member: m01, authority: busbar, fail_position: hold, stroke: 3m"),
       "manifests/r01.yaml: valves[1].stroke: is not within 10ms and 120s"},
      {"above whole", valve("name: flow, kind: control, member: m01, authority: busbar, fail_position: hold, stroke: 1s, "
                            "most_percent: 101"),
       "manifests/r01.yaml: valves[1].most_percent: 101 is above 100"},
      {"limits crossed", valve("name: flow, kind: control, member: m01, authority: busbar, fail_position: hold, stroke: 1s, "
                               "least_percent: 60, most_percent: 50"),
       "manifests/r01.yaml: valves[1].least_percent: is above most_percent"},
      {"a negative limit", valve("name: flow, kind: control, member: m01, authority: busbar, fail_position: hold, stroke: 1s, "
                                 "least_percent: -1"),
       "manifests/r01.yaml: valves[1].least_percent: -1 is negative"},
      {"a name with digits", valve("name: c07, kind: control, member: m01, authority: busbar, fail_position: hold, stroke: 1s"),
       "manifests/r01.yaml: valves[1].name: 'c07' is not a word"},
      {"no such authority", valve("name: flow, kind: control, member: m01, authority: me, fail_position: hold, stroke: 1s"),
       "manifests/r01.yaml: valves[1].authority: 'me' is not one of"},
      {"two PDUs of a name", pdu + "name: u01, protocol: redfish, address: \"127.18.1.81:8443\", login: {user: r, password_file: f}}\n",
       "manifests/r01.yaml: pdus[1].name: u01 is already that of pdus[0]"},
      {"no dialect", pdu + "name: u02, protocol: snmp, address: \"127.18.1.81:161\", login: {user: r, password_file: f}}\n",
       "manifests/r01.yaml: pdus[1].dialect: missing"},
      {"an unknown dialect", pdu + "name: u02, protocol: snmp, dialect: acme, address: \"127.18.1.81:161\", login: {user: r, password_file: f}}\n",
       "manifests/r01.yaml: pdus[1].dialect: 'acme' is not one of"},
      {"dialect of redfish", pdu + "name: u02, protocol: redfish, dialect: cyberpower, address: \"127.18.1.81:8443\", login: {user: r, password_file: f}}\n",
       "manifests/r01.yaml: pdus[1].dialect: is of snmp"},
      {"an unknown protocol", pdu + "name: u02, protocol: modbus, address: \"127.18.1.81:161\", login: {user: r, password_file: f}}\n",
       "manifests/r01.yaml: pdus[1].protocol: 'modbus' is not one of"},
      {"no user", pdu + "name: u02, protocol: redfish, address: \"127.18.1.81:8443\", login: {user: \"\", password_file: f}}\n",
       "manifests/r01.yaml: pdus[1].login.user: '' is not a text"},
      {"an outlet twice", pdu + "name: u02, protocol: redfish, address: \"127.18.1.81:8443\", login: {user: r, password_file: f}, "
                                "outlets: [{id: \"1\"}, {id: \"1\"}]}\n",
       "manifests/r01.yaml: pdus[1].outlets[1].id: 1 is already that of pdus[1].outlets[0]"},
      {"feeds nobody", pdu + "name: u02, protocol: redfish, address: \"127.18.1.81:8443\", login: {user: r, password_file: f}, "
                             "outlets: [{id: \"1\", feeds: c09}]}\n",
       "manifests/r01.yaml: pdus[1].outlets[0].feeds: 'c09' is no member"},
  };
  for (const refused_key& each : cases) {
    const std::vector<std::string> found = texts(read_spec(with_controller(each.more)).errors);
    ASSERT_THAT(found, SizeIs(1)) << each.name << ": " << ::testing::PrintToString(found);
    EXPECT_THAT(found[0], StartsWith(each.error)) << each.name;
  }
}

TEST(cooling_keys, contradictions_of_caps_and_limits_come_all_at_once) {
  std::vector<source_file> files = with_controller("");
  for (source_file& file : files) {
    if (file.path != r01) continue;
    file.content.insert(file.content.find("flow_min_lpm"), "supply_max_c: 0, pressure_max_kpa: -1, detectors: [a, a], ");
    file.content.insert(file.content.find("rack_limit_kw"), "gpu_cap_min_w: 600, cap_priority: {c09: 1, c01: 1.5}, ");
  }
  const std::vector<std::string> found = texts(read_spec(files).errors);
  EXPECT_THAT(found, ::testing::UnorderedElementsAre(
                         StartsWith("manifests/r01.yaml: cooling.supply_max_c: must be greater"),
                         StartsWith("manifests/r01.yaml: cooling.pressure_max_kpa: -1 is negative"),
                         StartsWith("manifests/r01.yaml: cooling.detectors[1]: 'a' is there twice"),
                         StartsWith("manifests/r01.yaml: power.gpu_cap_max_w: missing"),
                         StartsWith("manifests/r01.yaml: power.cap_priority.c01: 1.5 is not a whole number"),
                         StartsWith("manifests/r01.yaml: power.cap_priority.c09: 'c09' is no compute tray")));
}

TEST(cooling_keys, login_of_a_controller_is_needed_where_there_is_one) {
  const auto files = site_files_with(
      r01, last_row, last_row + "\n  - {slot: m01, kind: rack_controller, bmc_mac: \"02:18:01:00:00:47\"}\n");
  EXPECT_THAT(texts(read_spec(files).errors),
              ::testing::ElementsAre(StartsWith("manifests/r01.yaml: factory_logins.rack_controller: missing")));
}

// The dialects that a manifest may name are the files that there are.
TEST(cooling_keys, dialects_are_the_files_of_the_driver) {
  std::size_t files = 0;
  for (const auto& each : std::filesystem::directory_iterator(BUSBAR_DIALECTS)) {
    if (each.path().extension() != ".json") continue;
    ++files;
    EXPECT_FALSE(check_pdu_dialect(each.path().stem().string()).has_value()) << each.path();
  }
  EXPECT_EQ(files, 6U) << "a dialect was added or removed: values.cpp names them";
}

}  // namespace
}  // namespace busbar::manifest
