// What `busbar bmc inspect URL` does: walks one Redfish service read-only, without a daemon, and says what is
// there. Nothing that the service did not show is shown as zero or as healthy.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/devices/bmc.hpp"
#include "actors/devices/redfish/http_transport.hpp"

namespace busbar::devices {

enum class inspect_health { unknown, good, bad };

struct inspected_system {
  std::string id;
  std::string model;
  std::string serial;
  std::string power;  // as the device says; empty: it says nothing
  inspect_health health = inspect_health::unknown;
};

struct inspected_part {
  std::string kind;  // cpu, gpu, fpga, asic, psu
  std::string id;
  std::string model;
  std::string serial;
  bool absent = false;  // empty socket or bay
  inspect_health health = inspect_health::unknown;
  std::optional<double> watts;  // supplies: rated output
};

// listed = read + no_value + no_body
struct inspected_readings {
  std::size_t listed = 0;
  std::size_t read = 0;
  std::size_t no_value = 0;
  std::size_t no_body = 0;
};

struct inspected_detector {
  std::string id;
  std::string verdict;  // dry, leak, unknown
  std::string detail;
  bool aggregate = false;  // sums up others: no vote of its own
};

struct inspected_firmware {
  std::string component;
  std::optional<std::string> version;
};

struct inspect_report {
  std::string address;
  bool reachable = false;
  std::string unreachable_why;
  std::string condition;  // "password change required", "forbidden"; empty: none
  std::string vendor;
  std::string product;
  std::string redfish_version;
  std::string uuid;
  std::string certificate_sha256;

  std::vector<inspected_system> systems;   // as the service shows them; they are one machine
  bool systems_offered = false;            // the service has systems to show
  std::string power;                       // On, Off, mixed; empty: unknown
  std::vector<inspected_part> processors;  // each once
  std::size_t processors_announced = 0;
  bool processors_complete = true;
  std::string gpu_source;  // where GPUs were seen: processors, PCIe devices, an OEM list
  std::vector<inspected_part> asics;
  std::vector<inspected_part> supplies;
  std::optional<double> memory_gib;
  inspected_readings sensors;
  inspected_readings temperatures;  // rows of the old Thermal resource
  std::vector<inspected_detector> detectors;
  std::vector<inspected_firmware> firmware;
  std::size_t blades = 0;
  std::size_t blades_on = 0;
  std::size_t pdus = 0;
  std::size_t outlets = 0;
  std::size_t outlets_on = 0;
  std::size_t outlets_unknown = 0;
  std::size_t cdus = 0;
  std::size_t shelves = 0;

  std::vector<std::string> bad;       // parts that say Warning or Critical, alarms, leaks
  std::vector<std::string> unknown;   // what keeps the whole from being called good
  std::vector<std::string> oddities;  // bodies that are no JSON, lists that are short, links to elsewhere
  std::size_t requests = 0;
  inspect_health health = inspect_health::unknown;

  std::size_t count(std::string_view kind) const;  // present processors of a kind
};

struct inspect_options {
  std::string start = "/redfish/v1";
  std::optional<credentials> login;
  std::string pin;
  std::size_t request_limit = 8'000;
};

// Walks and answers once, on the loop's I/O thread.
void inspect(std::string address, std::shared_ptr<redfish::http_transport> transport,
             std::shared_ptr<redfish::scheduler> loop, inspect_options options,
             std::function<void(inspect_report)> reply);

std::string render_text(const inspect_report& report);
std::string render_json(const inspect_report& report);
// 0 good, 1 bad, 3 unknown, 7 unreachable.
int exit_code(const inspect_report& report);

}  // namespace busbar::devices
