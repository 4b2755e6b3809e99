// A valve through its controller's driver: one session, whatever way the controller offers to put it
// somewhere, and nothing that is not said becomes a position.
#include "actors/devices/valve_port.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "actors/core/errors.hpp"
#include "actors/devices/redfish/redfish_bmc.hpp"
#include "tests/unit/devices/test_loop.hpp"

namespace busbar::devices::redfish {
namespace {

using core::fault;
using ::testing::HasSubstr;

const std::string connectors = "/redfish/v1/Chassis/Rack_0/ThermalSubsystem/CoolantConnectors";

std::string link(const std::string& uri) {
  return R"({"@odata.id": ")" + uri + R"("})";
}

struct controller {
  controller() {
    const std::string action =
        R"("Actions": {"#CoolantConnector.ValveControl": {"target": ")" + connectors +
        R"(/supply/Actions/CoolantConnector.ValveControl", "ValveState@Redfish.AllowableValues": ["Open", "Closed"]}})";
    tree = {
        {"/redfish/v1",
         R"({"Chassis": {"@odata.id": "/redfish/v1/Chassis"}, "SessionService": {"@odata.id": "/redfish/v1/SessionService"},
          "Links": {"Sessions": {"@odata.id": "/redfish/v1/SessionService/Sessions"}}})"},
        {"/redfish/v1/Chassis",
         R"({"Members@odata.count": 1, "Members": [)" + link("/redfish/v1/Chassis/Rack_0") + "]}"},
        {"/redfish/v1/Chassis/Rack_0",
         R"({"ThermalSubsystem": )" + link("/redfish/v1/Chassis/Rack_0/ThermalSubsystem") + "}"},
        {"/redfish/v1/Chassis/Rack_0/ThermalSubsystem", R"({"CoolantConnectors": )" + link(connectors) + "}"},
        {connectors, R"({"Members@odata.count": 2, "Members": [)" + link(connectors + "/supply") + ", " +
                         link(connectors + "/flow") + "]}"},
        {connectors + "/supply",
         R"({"Id": "supply", "ValvePositionPercent": {"Reading": 100.0}, "Status": {"State": "Enabled", "Health": "OK"}, )" +
             action + "}"},
        {connectors + "/flow",
         R"({"Id": "flow", "ValvePositionPercent": {"Reading": 40}, "FlowLitersPerMinute": {"Reading": 61.5}, "Status": {"State": "Enabled"},
          "ValvePositionControlPercent": {"SetPoint": 40, "DataSourceUri": "/redfish/v1/Chassis/Rack_0/Controls/flow"}})"},
        {"/redfish/v1/Chassis/Rack_0/Controls/flow", R"({"SetPoint": 40})"},
    };
    loop = std::make_shared<test_loop>();
    transport =
        std::make_shared<scripted_transport>([this](const http_request& request) { return answer(request); });
    driver = make_redfish_bmc("10.0.0.9:443", journal::RACK_CONTROLLER, transport, loop, {});
  }
  http_outcome answer(const http_request& request) {
    if (request.method == http_method::post && request.path == "/redfish/v1/SessionService/Sessions") {
      ++sessions;
      http_outcome made = reply_of(201, "{}");
      made.reply.headers = {{"x-auth-token", "secret"},
                            {"location", "/redfish/v1/SessionService/Sessions/1"}};
      return made;
    }
    if (request.method != http_method::get) {
      acts.push_back(request.path + " " + request.body);
      return reply_of(204, "");
    }
    const auto found = tree.find(request.path);
    return found == tree.end() ? reply_of(404, "{}") : reply_of(200, found->second);
  }
  void log_in() {
    driver->login({"busbar", "password"},
                  [](const absl::StatusOr<session_facts>& made) { ASSERT_TRUE(made.ok()) << made.status(); });
    loop->pass_time();
  }
  absl::StatusOr<valve_facts> read(const std::string& name) {
    absl::StatusOr<valve_facts> got = absl::InternalError("no answer");
    const auto port = driver->valve(name);
    port->read([&got](absl::StatusOr<valve_facts> facts) { got = std::move(facts); });
    loop->pass_time();
    return got;
  }
  absl::Status write(const std::string& name, double percent) {
    absl::Status got = absl::InternalError("no answer");
    const auto port = driver->valve(name);
    port->write(percent, [&got](absl::Status status) { got = std::move(status); });
    loop->pass_time();
    return got;
  }
  std::map<std::string, std::string> tree;
  std::shared_ptr<test_loop> loop;
  std::shared_ptr<scripted_transport> transport;
  std::shared_ptr<bmc> driver;
  std::vector<std::string> acts;
  int sessions = 0;
};

TEST(valve_port, asks_nothing_without_a_session_and_opens_none_of_its_own) {
  controller c;
  EXPECT_EQ(core::fault_of(c.read("supply").status()), fault::BMC_UNREACHABLE);
  EXPECT_EQ(core::fault_of(c.write("supply", 0)), fault::BMC_UNREACHABLE);
  EXPECT_TRUE(c.transport->seen.empty());
  c.log_in();
  ASSERT_TRUE(c.read("supply").ok());
  ASSERT_TRUE(c.read("flow").ok());
  EXPECT_EQ(c.sessions, 1);
}

TEST(valve_port, reads_what_is_said_and_nothing_more) {
  controller c;
  c.log_in();
  const auto supply = c.read("supply");
  ASSERT_TRUE(supply.ok()) << supply.status();
  EXPECT_EQ(supply->position_percent, 100);
  EXPECT_EQ(supply->flow_lpm, std::nullopt);
  EXPECT_EQ(c.read("flow")->flow_lpm, 61.5);
  for (const char* body :
       {R"({"ValvePositionPercent": {"Reading": null}})", R"({"ValvePositionPercent": {"Reading": 900}})",
        R"({"ValvePositionPercent": {"Reading": "open"}})", R"({})",
        R"({"ValvePositionPercent": {"Reading": 50}, "Status": {"State": "Absent"}})"}) {
    c.tree[connectors + "/supply"] = body;
    EXPECT_EQ(c.read("supply")->position_percent, std::nullopt) << body;
  }
  c.tree[connectors + "/supply"] =
      R"({"ValvePositionPercent": {"Reading": 0}, "Status": {"State": "Disabled"}})";
  EXPECT_EQ(c.read("supply")->position_percent, 0) << "a closed connector is Disabled";
}

TEST(valve_port, finds_a_connector_once_and_again_when_it_is_gone) {
  controller c;
  c.log_in();
  ASSERT_TRUE(c.read("supply").ok());
  const std::size_t first = c.transport->seen.size();
  ASSERT_TRUE(c.read("supply").ok());
  EXPECT_EQ(c.transport->seen.size(), first + 1) << "one request a read";
  const auto none = c.read("return");
  EXPECT_EQ(core::fault_of(none.status()), fault::BMC_BAD_DATA);
  EXPECT_THAT(std::string(none.status().message()), HasSubstr("it shows [supply, flow]"));
}

TEST(valve_port, puts_an_isolation_valve_by_its_action_and_a_control_valve_by_its_set_point) {
  controller c;
  c.log_in();
  EXPECT_TRUE(c.write("supply", 0).ok());
  EXPECT_TRUE(c.write("supply", 100).ok());
  EXPECT_TRUE(c.write("flow", 37.5).ok());
  ASSERT_EQ(c.acts.size(), 3U);
  EXPECT_THAT(c.acts[0], HasSubstr(R"("ValveState":"Closed")"));
  EXPECT_THAT(c.acts[1], HasSubstr(R"("ValveState":"Open")"));
  EXPECT_EQ(c.acts[2], R"(/redfish/v1/Chassis/Rack_0/Controls/flow {"SetPoint":37.5})");
  EXPECT_EQ(core::fault_of(c.write("supply", 50)), fault::CONFIG_READ_ONLY) << "open or closed";
  c.tree[connectors + "/supply"] = "{}";
  EXPECT_EQ(core::fault_of(c.write("supply", 0)), fault::CONFIG_READ_ONLY) << "offers nothing";
  EXPECT_EQ(c.acts.size(), 3U);
}

TEST(valve_port, ends_with_the_driver_that_it_came_from) {
  controller c;
  c.log_in();
  const auto port = c.driver->valve("supply");
  c.driver.reset();
  c.loop->pass_time();
  absl::StatusOr<valve_facts> got = absl::InternalError("no answer");
  port->read([&got](absl::StatusOr<valve_facts> facts) { got = std::move(facts); });
  c.loop->pass_time();
  EXPECT_EQ(core::fault_of(got.status()), fault::BMC_UNREACHABLE);
}

}  // namespace
}  // namespace busbar::devices::redfish
