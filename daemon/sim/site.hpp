// A simulated site: racks, CDU, physics, faults. Transport-free and deterministic: no clock, no threads, no
// I/O. Time is what the callers say; the same seed and the same calls give the same site. Not thread-safe:
// one owner.
//
//   auto made = site::make({.racks = 1, .sku = "vr-4x1", .profile = "instant", .seed = 7});
//   http_reply reply = (*made)->handle("127.18.1.51", request, now);
//   if (auto due = (*made)->next_due()) (*made)->advance(*due);
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/sim/environment.hpp"
#include "daemon/sim/faults.hpp"
#include "daemon/sim/http_message.hpp"
#include "daemon/sim/rack_pdu.hpp"
#include "daemon/sim/site_data.hpp"

namespace busbar::sim {

struct site_options {
  int racks = 1;
  std::string sku = "vr-nvl72";   // vr-nvl72 | vr-4x1
  std::string profile = "quick";  // quick | instant | real
  std::uint64_t seed = 1;
  bool rack_controllers = false;   // a controller with isolation valves for each rack, r01/m01
  std::string network = "127.18";  // the first two octets; another one lets several simulators run on a host
  std::string plant;               // where a plant daemon serves the racks; empty: none is declared
  instant start{0};                // what `now` is at construction
  std::chrono::system_clock::time_point wall_start{};  // wall time at `start`, for DateTime properties
};

// One request that reached a device. Never holds a secret.
struct journal_record {
  std::uint64_t number = 0;
  instant received{0};  // CLOCK_MONOTONIC at the wire
  instant answered{0};  // when the device was done with it
  std::string device;   // r01/c07
  std::string address;
  std::string peer;
  std::string method;
  std::string path;
  std::string user;
  int status = 0;
  std::string act;       // account_create, password_change, update_push, manager_reset, reset, ...
  std::string argument;  // account, component, reset type
};
std::string to_json(const journal_record& record);

struct performance {
  std::optional<double> value;
  std::string text;  // hashes and curves
  std::string unit;
};

struct fault_row {
  fault what;
  bool in_force = false;
};

struct announced_bmc {  // one line of the lease file
  std::string member;
  device_kind kind{};
  std::string address;
  std::string mac;
};

struct site_hooks {
  // A compute tray's OS runs. boot_uri: of a UefiHttp boot (it carries the agent's token), empty for a local
  // boot.
  std::function<void(const std::string& member, const std::string& boot_uri)> on_host_boot;
  std::function<void(const std::string& member)> on_host_off;
  std::function<void(const journal_record&)> on_request;
  std::function<void(const std::string& address)> on_certificate_changed;  // begins or ends
  std::function<void()> on_leases_changed;
  // A server-sent event of a device, as the JSON text of an Event.
  std::function<void(const std::string& address, const std::string& event)> on_event;
};

class site {
 public:
  static absl::StatusOr<std::unique_ptr<site>> make(const site_options& options);
  virtual ~site() = default;

  virtual void set_hooks(site_hooks hooks) = 0;

  // One whole request at one moment. Status 0: the BMC does not answer (no standby power, restarting).
  virtual http_reply handle(const std::string& address, const http_request& request, instant now) = 0;
  virtual bool reachable(const std::string& address, instant now) = 0;
  // The device's MetricReports of this moment, each as JSON text; none where it does not answer.
  virtual std::vector<std::string> metric_reports(const std::string& address, instant now) = 0;
  // How long the device takes for its next request: log-normal, median 15 ms, p99 150 ms. Draws from the
  // device's stream.
  virtual instant service_time(const std::string& address, instant now) = 0;

  virtual std::optional<instant> next_due() const = 0;
  virtual void advance(instant now) = 0;  // runs all that is due, in order; time never goes back

  virtual absl::StatusOr<std::uint64_t> add_fault(const fault_request& request, instant now) = 0;
  virtual std::size_t clear_faults(std::string_view kind, std::string_view target, instant now) = 0;
  virtual std::vector<fault_row> faults(instant now) const = 0;
  virtual bool fault_active(fault_kind kind, const std::string& member, instant now) const = 0;

  virtual std::optional<double> fault_severity(fault_kind kind, const std::string& member,
                                               instant now) const = 0;

  // The CDU in the words of its register map (actors/devices/modbus/maps/lab_cdu.json). No value: it has no
  // such point, or its sensor is dead.
  virtual std::optional<double> register_value(std::string_view point, instant now) = 0;
  virtual absl::Status set_register(std::string_view point, double value, const std::string& peer,
                                    instant now) = 0;
  // A PDU's SNMP objects, in order; none: no PDU there, or it is dark.
  virtual std::map<oid_path, mib_value> snmp_objects(const std::string& address, instant now) = 0;
  virtual absl::Status set_snmp_object(const std::string& address, const oid_path& object, std::int64_t value,
                                       const std::string& peer, const std::string& user, instant now) = 0;

  // JSON text of what really is, at a path: "", r01, r01/c07, r01/c07/power, cdu01. NOT_FOUND: there is no
  // such thing.
  virtual absl::StatusOr<std::string> truth(std::string_view path, instant now) = 0;

  // For the agents' face.
  virtual performance measure(const std::string& member, int gpu, std::string_view probe,
                              std::string_view metric, instant now) = 0;
  virtual void set_load(const std::string& member, double fraction, instant now) = 0;  // 0 idle .. 1 burning
  // A load pattern (physics/load_pattern.hpp) on a rack's or one tray's hosts, from now on; "none" ends it.
  // Hosts that do not run draw nothing; what an agent runs meanwhile counts for nothing. How many trays.
  virtual absl::StatusOr<std::size_t> set_pattern(std::string_view pattern, std::string_view target,
                                                  instant now) = 0;
  virtual std::string dmi_serial(const std::string& member, instant now) const = 0;
  virtual std::vector<std::string> gpu_serials(const std::string& member, instant now) const = 0;

  virtual std::vector<announced_bmc> announced(instant now) const = 0;
  virtual std::vector<device_identity> devices() const = 0;
  virtual void set_certificate(const std::string& address, const std::string& sha256) = 0;
  virtual const site_options& options() const = 0;
  virtual const sku_data& sku() const = 0;
  virtual const profile& timings() const = 0;
  virtual const std::string& factory_password() const = 0;
  virtual const std::string& reader_password() const = 0;  // user "reader" of the CDU

  virtual double rated_lpm() const = 0;               // of a rack, whole
  virtual const std::string& pdu_secret() const = 0;  // the PDUs' community, and both passwords of user "pdu"

  // What outlives the simulator: accounts, firmware, settings, power states.
  virtual std::string save() const = 0;
  virtual absl::Status restore(const std::string& saved, instant now) = 0;
};

}  // namespace busbar::sim
