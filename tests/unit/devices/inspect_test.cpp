// Every captured tree is read as its README says it must be concluded.
#include "actors/devices/inspect.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/unit/devices/replay_tree.hpp"
#include "tests/unit/devices/test_loop.hpp"

namespace busbar::devices {
namespace {

using redfish::captures_folder;
using redfish::http_request;

inspect_report inspect_with(redfish::scripted_transport::handler handler, inspect_options options = {}) {
  const auto loop = std::make_shared<redfish::test_loop>();
  const auto transport = std::make_shared<redfish::scripted_transport>(std::move(handler));
  int answers = 0;
  inspect_report report;
  inspect("192.0.2.1:8443", transport, loop, std::move(options), [&answers, &report](inspect_report got) {
    ++answers;
    report = std::move(got);
  });
  loop->pass_time(100'000);
  EXPECT_EQ(answers, 1);
  return report;
}

struct expectation {
  const char* tree;
  std::size_t systems;
  const char* power;
  std::size_t cpus, gpus, fpgas, sockets_empty;
  std::size_t gpus_unknown;
  std::size_t supplies_good, supplies_bad, supplies_absent, supplies_unknown;
  inspected_readings sensors;       // listed, read, no value, no body
  inspected_readings temperatures;  // listed 0: not compared
  std::size_t dry, leak, undecided;
  inspect_health health;
  const char* start = "/redfish/v1";
};

constexpr auto unknown = inspect_health::unknown;
constexpr auto bad = inspect_health::bad;

const expectation expectations[] = {
    {"nvidia-gb200-compute-tray", 2, "On", 2, 4, 0, 0, 4, 0, 0, 0, 0, {236, 83, 9, 144}, {}, 3, 0, 1, bad},
    {"nvidia-nvswitch-tray", 1, "On", 0, 0, 0, 0, 0, 0, 0, 0, 0, {5, 5, 0, 0}, {}, 7, 0, 0, unknown},
    {"nvidia-bluefield3-dpu", 1, "On", 0, 0, 0, 0, 0, 0, 0, 0, 0, {20, 18, 2, 0}, {}, 0, 0, 0, unknown},
    {"supermicro-sys-821ge-h100",
     1,
     "On",
     2,
     8,
     0,
     0,
     0,
     6,
     0,
     0,
     2,
     {1, 0, 1, 0},
     {38, 36, 2, 0},
     0,
     0,
     0,
     unknown},
    {"supermicro-a21ge-b200-partial", 2, "On", 2, 2, 1, 0, 0, 0, 0, 0, 6, {}, {}, 0, 0, 0, unknown},
    {"dell-poweredge-r750", 1, "On", 2, 1, 0, 0, 0, 2, 0, 0, 0, {33, 33, 0, 0}, {}, 0, 0, 0, unknown},
    {"dell-idrac-forbidden", 0, "", 0, 0, 0, 0, 0, 0, 0, 0, 0, {}, {}, 0, 0, 0, unknown},
    {"lenovo-sr670v2-xcc", 1, "On", 2, 8, 0, 0, 8, 4, 0, 0, 0, {236, 61, 7, 168}, {}, 0, 0, 0, unknown},
    {"hpe-xl675d-a100-ilo5", 1, "On", 2, 8, 0, 0, 0, 4, 0, 2, 0, {}, {65, 53, 12, 0}, 0, 0, 0, bad},
    {"gigabyte-h262-megarac",
     1,
     "On",
     2,
     0,
     0,
     0,
     0,
     0,
     0,
     0,
     2,
     {2, 2, 0, 0},
     {20, 17, 3, 0},
     0,
     0,
     0,
     unknown},
    {"hpe-cray-ex-cmm", 0, "On", 0, 0, 0, 0, 0, 0, 0, 0, 4, {81, 73, 8, 0}, {}, 0, 0, 3, unknown},
    {"openbmc-generic", 1, "Off", 0, 0, 0, 0, 0, 0, 0, 0, 0, {}, {}, 0, 0, 0, unknown},
    {"dmtf-public-rackmount1", 1, "On", 1, 0, 1, 1, 0, 0, 1, 1, 0, {41, 30, 11, 0}, {}, 0, 0, 0, bad},
    {"liteon-power-shelf",
     0,
     "On",
     0,
     0,
     0,
     0,
     0,
     6,
     0,
     0,
     0,
     {72, 72, 0, 0},
     {},
     0,
     0,
     0,
     inspect_health::good},
    {"rack-pdu-translation-layer", 0, "", 0, 0, 0, 0, 0, 0, 0, 0, 0, {}, {}, 0, 0, 0, bad},
    {"ocp-cdu-examples",
     0,
     "",
     0,
     0,
     0,
     0,
     0,
     0,
     0,
     0,
     0,
     {},
     {},
     0,
     0,
     1,
     unknown,
     "/redfish/v1/ThermalEquipment/CDUs/1"},
};

void PrintTo(const expectation& one, std::ostream* out) {
  *out << one.tree;
}

std::vector<expectation> present_trees() {
  if (captures_folder().empty()) return {};
  return {std::begin(expectations), std::end(expectations)};
}

class inspected_tree : public ::testing::TestWithParam<expectation> {
 protected:
  inspect_report look() {
    const auto tree = captures_folder() / GetParam().tree;
    inspect_options options;
    options.start = GetParam().start;
    return inspect_with([tree](const http_request& request) { return redfish::replay(tree, request); },
                        options);
  }
};

std::size_t with_verdict(const inspect_report& report, std::string_view verdict) {
  return static_cast<std::size_t>(
      std::count_if(report.detectors.begin(), report.detectors.end(),
                    [verdict](const inspected_detector& row) { return row.verdict == verdict; }));
}

void expect_readings(const inspected_readings& seen, const inspected_readings& wanted, const char* name) {
  EXPECT_EQ(seen.listed, wanted.listed) << name;
  EXPECT_EQ(seen.read, wanted.read) << name;
  EXPECT_EQ(seen.no_value, wanted.no_value) << name;
  EXPECT_EQ(seen.no_body, wanted.no_body) << name;
}

TEST_P(inspected_tree, is_concluded_as_its_readme_says) {
  const expectation& wanted = GetParam();
  const inspect_report report = look();
  SCOPED_TRACE(render_text(report));
  EXPECT_TRUE(report.reachable);
  EXPECT_EQ(report.systems.size(), wanted.systems);
  EXPECT_EQ(report.power, wanted.power);
  EXPECT_EQ(report.count("cpu"), wanted.cpus);
  EXPECT_EQ(report.count("gpu"), wanted.gpus);
  EXPECT_EQ(report.count("fpga"), wanted.fpgas);
  std::size_t empty = 0;
  std::size_t gpus_unknown = 0;
  for (const inspected_part& part : report.processors) {
    if (part.absent) ++empty;
    if (part.kind == "gpu" && part.health == unknown) ++gpus_unknown;
  }
  EXPECT_EQ(empty, wanted.sockets_empty);
  EXPECT_EQ(gpus_unknown, wanted.gpus_unknown);
  std::size_t supplies[4] = {};
  for (const inspected_part& part : report.supplies) {
    ++supplies[part.absent ? 2 : part.health == inspect_health::good ? 0 : part.health == bad ? 1 : 3];
  }
  EXPECT_EQ(supplies[0], wanted.supplies_good);
  EXPECT_EQ(supplies[1], wanted.supplies_bad);
  EXPECT_EQ(supplies[2], wanted.supplies_absent);
  EXPECT_EQ(supplies[3], wanted.supplies_unknown);
  expect_readings(report.sensors, wanted.sensors, "sensors");
  if (wanted.temperatures.listed > 0)
    expect_readings(report.temperatures, wanted.temperatures, "temperatures");
  EXPECT_EQ(with_verdict(report, "dry"), wanted.dry);
  EXPECT_EQ(with_verdict(report, "leak"), wanted.leak);
  EXPECT_EQ(with_verdict(report, "unknown"), wanted.undecided);
  EXPECT_EQ(report.health, wanted.health);
  EXPECT_EQ(exit_code(report), wanted.health == bad ? 1 : wanted.health == unknown ? 3 : 0);
}

TEST_P(inspected_tree, is_rendered_as_json_that_parses) {
  const auto parsed = nlohmann::json::parse(render_json(look()), nullptr, false);
  ASSERT_FALSE(parsed.is_discarded());
  EXPECT_EQ(parsed.at("kind"), "BmcInspection");
  EXPECT_EQ(parsed.at("systems").size(), GetParam().systems);
}

std::string name_of_tree(const ::testing::TestParamInfo<expectation>& info) {
  std::string name = info.param.tree;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(inspected_tree);
INSTANTIATE_TEST_SUITE_P(captures, inspected_tree, ::testing::ValuesIn(present_trees()), name_of_tree);

inspect_report look_at(const char* name) {
  const auto tree = captures_folder() / name;
  return inspect_with([tree](const http_request& request) { return redfish::replay(tree, request); });
}

TEST(inspect_captures, names_what_is_particular_to_a_tree) {
  if (captures_folder().empty()) return;
  const inspect_report forbidden = look_at("dell-idrac-forbidden");
  EXPECT_EQ(forbidden.condition, "password change required");

  const inspect_report partial = look_at("supermicro-a21ge-b200-partial");
  EXPECT_FALSE(partial.processors_complete);
  EXPECT_EQ(partial.processors_announced, 11u);  // 9 of the baseboard, 2 of the host

  const inspect_report tray = look_at("nvidia-gb200-compute-tray");
  EXPECT_EQ(tray.memory_gib, 960);
  EXPECT_THAT(tray.bad, ::testing::Contains(::testing::HasSubstr("/Chassis/HGX_CPU_0: Critical")));
  EXPECT_THAT(tray.bad, ::testing::Contains(::testing::HasSubstr("/HGX_BMC_0: Critical")));
  EXPECT_THAT(
      tray.bad,
      ::testing::Not(::testing::Contains(::testing::HasSubstr("Sensors"))));  // absent optics are absent

  const inspect_report server = look_at("hpe-xl675d-a100-ilo5");
  EXPECT_EQ(server.gpu_source, "an OEM list");
  EXPECT_THAT(server.bad, ::testing::Contains(::testing::HasSubstr("Drives/3: Critical")));

  const inspect_report pdu = look_at("rack-pdu-translation-layer");
  EXPECT_EQ(pdu.pdus, 1u);
  EXPECT_EQ(pdu.outlets, 11u);
  EXPECT_EQ(pdu.outlets_on, 10u);
  EXPECT_EQ(pdu.outlets_unknown, 1u);

  const inspect_report cabinet = look_at("hpe-cray-ex-cmm");
  EXPECT_EQ(cabinet.blades, 8u);
  EXPECT_EQ(cabinet.blades_on, 8u);

  const inspect_report model = look_at("dmtf-public-rackmount1");
  EXPECT_THAT(model.oddities, ::testing::Contains(::testing::HasSubstr("redfishpdu.contoso.com")));

  const inspect_report lenovo = look_at("lenovo-sr670v2-xcc");
  EXPECT_THAT(lenovo.oddities, ::testing::Contains(::testing::HasSubstr("PowerMetrics")));

  EXPECT_EQ(look_at("nvidia-nvswitch-tray").asics.size(), 2u);
  EXPECT_EQ(look_at("liteon-power-shelf").shelves, 1u);
}

TEST(inspect, an_unreachable_device_gives_seven_and_an_empty_service_is_unknown) {
  const inspect_report gone = inspect_with(
      [](const http_request&) { return redfish::no_answer(redfish::transport_error::unreachable); });
  EXPECT_FALSE(gone.reachable);
  EXPECT_EQ(exit_code(gone), 7);
  const inspect_report empty = inspect_with([](const http_request&) { return redfish::reply_of(200, "{}"); });
  EXPECT_TRUE(empty.reachable);
  EXPECT_EQ(exit_code(empty), 3);
}

TEST(inspect, a_refused_login_is_named_and_the_rest_is_read) {
  inspect_options options;
  options.login = credentials{"root", "wrong"};
  const inspect_report report = inspect_with(
      [](const http_request& request) {
        if (request.method == redfish::http_method::post) return redfish::reply_of(401, "{}");
        if (request.path == "/redfish/v1")
          return redfish::reply_of(200, R"({"Links":{"Sessions":{"@odata.id":"/S"}},"UUID":"u"})");
        return redfish::reply_of(404, "{}");
      },
      options);
  EXPECT_TRUE(report.reachable);
  EXPECT_THAT(report.condition, ::testing::HasSubstr("refused the login of user root"));
  EXPECT_EQ(report.uuid, "u");
  EXPECT_EQ(exit_code(report), 3);
}

TEST(inspect, a_healthy_tray_is_good_and_a_wet_detector_is_bad) {
  std::string state = "OK";
  const auto service = [&state](const http_request& request) {
    const std::map<std::string, std::string> bodies{
        {"/redfish/v1",
         R"({"Systems":{"@odata.id":"/redfish/v1/S"},"Chassis":{"@odata.id":"/redfish/v1/C"}})"},
        {"/redfish/v1/S", R"({"Members":[{"@odata.id":"/redfish/v1/S/1"}],"Members@odata.count":1})"},
        {"/redfish/v1/S/1", R"({"Id":"1","PowerState":"On","Status":{"State":"Enabled","Health":"OK"}})"},
        {"/redfish/v1/C", R"({"Members":[{"@odata.id":"/redfish/v1/C/1"}],"Members@odata.count":1})"},
        {"/redfish/v1/C/1",
         R"({"Id":"1","Status":{"State":"Enabled","Health":"OK"},"ThermalSubsystem":{"@odata.id":"/redfish/v1/T"}})"},
        {"/redfish/v1/T", R"({"LeakDetection":{"@odata.id":"/redfish/v1/L"}})"},
        {"/redfish/v1/L", R"({"LeakDetectors":{"@odata.id":"/redfish/v1/D"}})"},
        {"/redfish/v1/D", R"({"Members":[{"@odata.id":"/redfish/v1/D/a"}],"Members@odata.count":1})"},
        {"/redfish/v1/D/a",
         R"({"@odata.type":"#LeakDetector.v1_2_0.LeakDetector","Id":"a","DetectorState":")" + state +
             R"(","Status":{"State":"Enabled","Health":")" + state + R"("}})"}};
    const auto found = bodies.find(request.path);
    return found == bodies.end() ? redfish::reply_of(404, "{}") : redfish::reply_of(200, found->second);
  };
  EXPECT_EQ(exit_code(inspect_with(service)), 0);
  state = "Critical";
  EXPECT_EQ(exit_code(inspect_with(service)), 1);
}

}  // namespace
}  // namespace busbar::devices
