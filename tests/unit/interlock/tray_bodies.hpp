// A compute tray as the interlock sees one: bodies by path, a login, detectors with their voltages.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "daemon/interlock/device_walk.hpp"
#include "tests/unit/interlock/records.hpp"

namespace busbar::interlock::test {

inline const std::string detectors_path =
    "/redfish/v1/Chassis/Chassis_0/ThermalSubsystem/LeakDetection/LeakDetectors";

inline const std::string system_path = "/redfish/v1/Systems/System_0";
inline const std::string reset_path = system_path + "/Actions/ComputerSystem.Reset";

// A compute tray as bodies by path; answers one request at a time and remembers what was asked.
class tray {
 public:
  tray() {
    bodies["/redfish/v1/"] =
        R"({"Links":{"Sessions":{"@odata.id":"/redfish/v1/SessionService/Sessions"}},"Chassis":{"@odata.id":"/redfish/v1/Chassis"},
            "Systems":{"@odata.id":"/redfish/v1/Systems"}})";
    bodies["/redfish/v1/Systems"] =
        R"({"Members":[{"@odata.id":"/redfish/v1/Systems/HGX_Baseboard_0"},{"@odata.id":"/redfish/v1/Systems/System_0"}]})";
    bodies["/redfish/v1/Systems/HGX_Baseboard_0"] = R"({"Id":"HGX_Baseboard_0","PowerState":"On"})";
    turn("On");
    bodies["/redfish/v1/Chassis"] =
        R"({"Members":[{"@odata.id":"/redfish/v1/Chassis/BMC_0"},{"@odata.id":"/redfish/v1/Chassis/Chassis_0"}]})";
    bodies["/redfish/v1/Chassis/BMC_0"] = R"({"Id":"BMC_0"})";
    bodies["/redfish/v1/Chassis/Chassis_0"] =
        R"({"ThermalSubsystem":{"@odata.id":"/redfish/v1/Chassis/Chassis_0/ThermalSubsystem"},
            "Sensors":{"@odata.id":"/redfish/v1/Chassis/Chassis_0/Sensors"}})";
    bodies["/redfish/v1/Chassis/Chassis_0/ThermalSubsystem"] =
        R"({"LeakDetection":{"@odata.id":"/redfish/v1/Chassis/Chassis_0/ThermalSubsystem/LeakDetection"}})";
    bodies["/redfish/v1/Chassis/Chassis_0/ThermalSubsystem/LeakDetection"] =
        R"({"LeakDetectors":{"@odata.id":")" + detectors_path + R"("}})";
    std::string members;
    std::string sensors;
    for (const std::string& name : four_detectors) {
      members += (members.empty() ? "" : ",") + (R"({"@odata.id":")" + path(name) + R"("})");
      sensors += (sensors.empty() ? "" : ",") + (R"({"@odata.id":")" + raw_path(name) + R"("})");
      say(name, "OK", "Enabled", "OK");
      volts(name, 1.74);
    }
    bodies[detectors_path] = R"({"Members":[)" + members + "]}";
    bodies["/redfish/v1/Chassis/Chassis_0/Sensors"] = R"({"Members":[)" + sensors + "]}";
  }

  static std::string id(const std::string& name) { return "Chassis_0_LeakDetector_" + name; }
  static std::string path(const std::string& name) { return detectors_path + "/" + id(name); }
  static std::string raw_path(const std::string& name) {
    return "/redfish/v1/Chassis/Chassis_0/Sensors/" + id(name);
  }

  void say(const std::string& name, const std::string& state, const std::string& enabled,
           const std::string& health) {
    bodies[path(name)] = R"({"Id":")" + id(name) + R"(","DetectorState":")" + state +
                         R"(","Status":{"State":")" + enabled + R"(","Health":")" + health + R"("}})";
  }

  void turn(const std::string& state) {
    bodies[system_path] = R"({"Id":"System_0","PowerState":")" + state +
                          R"(","Actions":{"#ComputerSystem.Reset":{"target":")" + reset_path +
                          R"(","ResetType@Redfish.AllowableValues":["On","ForceOff","GracefulShutdown"]}}})";
  }

  void volts(const std::string& name, double value) {
    bodies[raw_path(name)] =
        R"({"Id":")" + id(name) + R"(","Reading":)" + std::to_string(value) +
        R"(,"Status":{"State":"Enabled"},"Thresholds":{"LowerCritical":{"Reading":1.617}}})";
  }

  http_response serve(const http_request& request) {
    asked.push_back(request);
    http_response response;
    if (request.method == "POST" && request.path == reset_path) {
      response.status = ended ? 401 : 204;
      if (!ended && !ignores_off && request.body == R"({"ResetType":"ForceOff"})") turn("Off");
      return response;
    }
    if (request.method == "POST") {
      response.status = login_status;
      response.token = "token-1";
      response.location =
          "https://127.0.0.1/redfish/v1/SessionService/Sessions/" + std::to_string(++sessions);
      return response;
    }
    const auto found = bodies.find(request.path);
    response.status = request.method == "DELETE" ? 204 : found == bodies.end() ? 404 : 200;
    if (ended && !request.token.empty()) response.status = 401;
    if (found != bodies.end()) response.body = found->second;
    return response;
  }

  std::map<std::string, std::string> bodies;
  std::vector<http_request> asked;
  int login_status = 201;
  int sessions = 6;
  bool ended = false;
  bool ignores_off = false;
};

}  // namespace busbar::interlock::test
