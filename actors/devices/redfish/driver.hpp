// The procedures of the Redfish driver: coroutines on the I/O thread, one file a subject. They follow the
// links of the service root and remember where things stand; what they remember is dropped when a link turns
// out dead.
#pragma once

#include <absl/status/statusor.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/devices/bmc.hpp"
#include "actors/devices/valve_port.hpp"
#include "actors/devices/redfish/decode.hpp"
#include "actors/devices/redfish/device.hpp"
#include "actors/devices/redfish/walk.hpp"

namespace busbar::devices::redfish {

// Where power of this member is read and commanded.
struct power_place {
  std::string uri;     // System, or the shelf's Chassis
  std::string target;  // of the reset action; empty: none offered
  std::vector<std::string> offered;
  std::string settings;  // where boot-once is written; the resource itself without a Settings object
  std::string bios;
  std::vector<std::string> managers;
};

struct detector_place {
  std::string uri;
  std::string name;    // short
  std::string sensor;  // of the raw value; empty: none offered
};

struct driver {
  device_ptr device;
  MemberKind kind = MemberKind::MEMBER_KIND_UNSPECIFIED;
  std::optional<json_document> root;
  std::optional<power_place> power;
  std::optional<std::vector<detector_place>> detectors;
  bool detectors_sure = false;  // false: found while a part of the tree was silent; looked for again
  std::map<std::string, std::string> connectors;  // of valves: name -> URI

  void forget_places() {
    root.reset();
    power.reset();
    detectors.reset();
    connectors.clear();
  }
};
using driver_ptr = std::shared_ptr<driver>;

// Links of the service root, read once.
task<absl::Status> read_root(driver_ptr d);
task<absl::StatusOr<std::string>> root_link(driver_ptr d, std::string key);
// Bodies of the collection behind a link of the root; unreadable members come with their status.
struct root_members {
  listing list;
  std::vector<fetched> bodies;
};
task<root_members> members_of_root(driver_ptr d, std::string key, priority urgency);

task<absl::StatusOr<probe_facts>> probe(driver_ptr d);
task<absl::Status> delete_session(driver_ptr d, std::string uri);
task<absl::StatusOr<identity_facts>> identify(driver_ptr d);
task<absl::StatusOr<std::vector<account_facts>>> list_accounts(driver_ptr d);
task<absl::Status> create_account(driver_ptr d, credentials account, std::string role);
task<absl::Status> set_password(driver_ptr d, credentials account);
task<absl::Status> delete_account(driver_ptr d, std::string user);

task<absl::StatusOr<power_place>> find_power(driver_ptr d, priority urgency);
task<absl::StatusOr<power_facts>> read_power(driver_ptr d);
task<absl::Status> reset(driver_ptr d, reset_type type);
task<absl::Status> reset_if(driver_ptr d, reset_type type, act_check allowed);
task<absl::Status> set_boot_once(driver_ptr d, boot_facts wanted);
task<absl::StatusOr<boot_facts>> read_boot_once(driver_ptr d);
task<absl::Status> reset_manager(driver_ptr d);

task<absl::StatusOr<std::vector<detector_facts>>> read_detectors(driver_ptr d);

task<absl::StatusOr<inventory_facts>> read_inventory(driver_ptr d);
task<absl::StatusOr<std::vector<component_facts>>> read_firmware(driver_ptr d);
task<absl::StatusOr<std::string>> push_firmware(driver_ptr d, std::string component, std::string image_path);
task<absl::StatusOr<std::string>> find_update(driver_ptr d, std::string component);
task<absl::StatusOr<std::string>> find_unnamed_update(driver_ptr d);
task<absl::StatusOr<task_facts>> read_task(driver_ptr d, std::string uri);

using attribute_map = std::map<std::string, attribute_facts>;
using value_map = std::map<std::string, std::string>;
task<absl::StatusOr<attribute_map>> read_bios(driver_ptr d, std::vector<std::string> names);
task<absl::Status> write_bios(driver_ptr d, value_map values);
task<absl::StatusOr<attribute_map>> read_device(driver_ptr d, std::vector<std::string> names);
task<absl::Status> write_device(driver_ptr d, value_map values);

task<absl::StatusOr<nvlink_facts>> read_nvlink(driver_ptr d);

task<absl::StatusOr<cooling_facts>> read_cooling(driver_ptr d, credentials login, std::string rack,
                                                 cooling_place place);

task<absl::StatusOr<valve_facts>> read_valve(driver_ptr d, std::string connector);
task<absl::Status> write_valve(driver_ptr d, std::string connector, double wanted);

// GPUs of all systems: Processor bodies, each once.
struct processors_read {
  std::vector<fetched> bodies;
  bool complete = true;
  std::string incomplete_why;
  absl::Status failed;  // of the device itself
};
task<processors_read> read_processors(driver_ptr d, priority urgency);

}  // namespace busbar::devices::redfish
