// What a rack asks of one managed device (compute tray, switch tray, power shelf) and of the CDU. Plain
// classes: no CAF.
//
// One device, one owner, one budget: an implementation keeps at most two requests in flight to its device,
// safety reads before commands before telemetry, one session, and its own back-off. Every call answers
// exactly once, on the implementation's I/O thread (or inline from a test transport), with a value or a
// status that carries a fault (core::fault_of). Nothing unknown becomes a value: what a device did not say is
// an empty optional.
#pragma once

#include <absl/status/statusor.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/core/clock.hpp"
#include "actors/core/reading_board.hpp"
#include "busbar/journal/spec.pb.h"
#include "busbar/journal/state.pb.h"

namespace busbar::devices {

using journal::MemberKind;

struct credentials {
  std::string user;
  std::string password;
};

struct probe_facts {
  std::string certificate_sha256;  // hex, lower case
  std::string uuid;
  std::string vendor;
  std::string product;
};

struct session_facts {
  std::string uri;                        // never the token
  bool password_change_required = false;  // the device answers 403 to everything but its own account
};

struct identity_facts {
  std::optional<std::string> serial;
  std::optional<std::string> slot;
  std::optional<std::string> model;
  std::optional<std::string> mac;  // of the BMC's own interface
};

struct account_facts {
  std::string uri;
  std::string name;
  std::string role;
  std::optional<bool> enabled;
  std::optional<bool> locked;
};

struct power_facts {
  journal::PowerState state = journal::POWER_UNKNOWN;
  std::vector<std::string> offered;  // reset types; empty = the device named none
  std::string boot_progress;
};

struct boot_facts {
  std::string enabled;  // Once, Disabled, Continuous
  std::string target;   // UefiHttp
  std::string uri;
};

struct detector_facts {
  std::string name;  // Id of the detector, as the SKU names it
  journal::Detector::Verdict verdict = journal::Detector::UNKNOWN;
  std::string detail;                   // what led to the verdict
  std::optional<std::string> reaction;  // CriticalReactionType, when the detector has one
};

struct inventory_facts {
  std::vector<journal::Part> parts;
  bool complete = true;  // false: the device announced parts that it did not show
  std::string incomplete_why;
};

struct component_facts {
  std::string component;
  std::optional<std::string> version;
};

enum class task_state { running, completed, failed, gone };

struct task_facts {
  task_state state = task_state::running;
  std::optional<int> percent;
  std::string message;
};

struct attribute_facts {
  std::optional<std::string> value;    // canonical text; empty = the device has no such attribute
  std::optional<std::string> pending;  // what it becomes at the next host restart, if that differs
  bool read_only = false;
};

struct nvlink_facts {
  std::map<std::string, std::uint32_t> links_up;  // by GPU or switch ASIC id
  std::map<std::string, std::uint32_t> links_announced;
  std::optional<bool> fabric_primary;  // switch trays only
  std::optional<std::string> clique_id;
  std::optional<std::string> partition;
  bool complete = true;
};

struct cooling_facts {
  std::optional<double> flow_lpm;  // through this rack
  std::optional<double> dp_kpa;
  std::optional<double> supply_c;
  std::optional<double> return_c;
  std::vector<detector_facts> detectors;  // this rack's group: rope, pan
  std::string cdu_health;
  std::string certificate_sha256;  // that it was read under; empty: the driver cannot tell
};

// Where a CDU keeps what is this rack's. Empty: by the rack's name.
struct cooling_place {
  std::string connector;
  std::vector<std::string> detectors;  // full names; one that the CDU does not show is unknown
};

struct telemetry_plan {
  std::string member;             // "r01/c07": names of its points begin so
  std::vector<std::string> fast;  // Ids of reports that are read each second where the device streams none; others: 10 s
  std::shared_ptr<core::reading_board> board;
  std::function<core::instant()> clock;  // asked on the I/O thread
};

enum class reset_type { on, force_off, graceful_shutdown, force_restart, power_cycle };
std::string_view redfish_name(reset_type type);  // On, ForceOff, GracefulShutdown, ForceRestart, PowerCycle

template <class T>
using answer = std::function<void(absl::StatusOr<T>)>;
using done = std::function<void(absl::Status)>;

// Asked on the I/O thread right before an act leaves for the device, however long it waited there.
using act_check = std::function<bool()>;
// The answer to an act whose check said no: nothing was sent.
absl::Status act_withheld();
bool is_withheld(const absl::Status& status);

class valve_port;

class bmc {
 public:
  virtual ~bmc() = default;

  // Unauthenticated. Learns the certificate when none is pinned, else refuses another one with
  // CERTIFICATE_CHANGED.
  virtual void probe(answer<probe_facts> reply) = 0;
  virtual void pin(std::string certificate_sha256) = 0;

  // Opens the one session of this driver; later calls use it. 401 gives CREDENTIAL_FACTORY_REFUSED, or
  // CREDENTIAL_LOCKED_OUT where the device says that the account is locked.
  virtual void login(credentials login, answer<session_facts> reply) = 0;
  // 401 or 404 at deletion is no error.
  virtual void delete_session(std::string uri, done reply) = 0;

  // Wrong logins are counted by the driver, all users together, and no more than three are sent; this clears
  // the count (an operator's unlock).
  virtual void forget_wrong_logins() {}
  // What was sent before this driver was made, by user: it counts on from there.
  virtual void count_wrong_logins([[maybe_unused]] std::map<std::string, int> so_far) {}
  // Told on the I/O thread of each session that the driver had to open by itself (after a 401), so that its
  // URI can be kept.
  virtual void on_session([[maybe_unused]] std::function<void(session_facts)> listener) {}

  virtual void identify(answer<identity_facts> reply) = 0;
  virtual void list_accounts(answer<std::vector<account_facts>> reply) = 0;
  // Reads the account list before the POST: an account that is there already is success without a POST.
  virtual void create_account(credentials account, std::string role, done reply) = 0;
  virtual void set_password(credentials account, done reply) = 0;
  // Reads the account list before the DELETE: an account that is not there is success without one.
  virtual void delete_account(std::string user, done reply) = 0;

  virtual void read_power(answer<power_facts> reply) = 0;
  // Asks only; success is what read_power shows later. 400 because the state is already so is success.
  virtual void reset(reset_type type, done reply) = 0;
  // The same, if `allowed` still says so when the request leaves; else it is withheld.
  virtual void reset_if(reset_type type, act_check allowed, done reply) {
    if (!allowed()) return reply(act_withheld());
    reset(type, std::move(reply));
  }
  virtual void set_boot_once(boot_facts wanted, done reply) = 0;
  virtual void read_boot_once(answer<boot_facts> reply) = 0;

  virtual void read_detectors(answer<std::vector<detector_facts>> reply) = 0;
  virtual void read_inventory(answer<inventory_facts> reply) = 0;
  virtual void read_firmware(answer<std::vector<component_facts>> reply) = 0;
  // Pushes one image for one component; answers the task's URI (empty: the device gave none).
  virtual void push_firmware(std::string component, std::string image_path, answer<std::string> reply) = 0;
  virtual void read_task(std::string uri, answer<task_facts> reply) = 0;
  // After a restart of ours between the POST and its answer: the task of an update of this component that the
  // device knows (running or done), by the task list's Payload or messages; empty when there is none, so that
  // no push is repeated.
  virtual void find_update(std::string component, answer<std::string> reply) = 0;
  // The newest task that may be an update and names no component at all, running or ended; empty when there
  // is none. Such a task may be one that was pushed and never heard of.
  virtual void find_unnamed_update(answer<std::string> reply) = 0;
  virtual void reset_manager(done reply) = 0;

  // BIOS attributes by name; device attributes by the baseline's dotted names (leak_reaction.critical,
  // gpu_power_limit_w, session_timeout_s).
  virtual void read_bios(std::vector<std::string> names,
                         answer<std::map<std::string, attribute_facts>> reply) = 0;
  virtual void write_bios(std::map<std::string, std::string> values, done reply) = 0;
  virtual void read_device(std::vector<std::string> names,
                           answer<std::map<std::string, attribute_facts>> reply) = 0;
  virtual void write_device(std::map<std::string, std::string> values, done reply) = 0;

  virtual void read_nvlink(answer<nvlink_facts> reply) = 0;

  // Puts the device's readings on the board from now on, through the session and the budget of this driver, behind
  // everything else that is asked of it. Again: with the new plan. Ends with stop_telemetry() or the driver; what it
  // had put turns stale then. Nothing is put while there is no session.
  virtual void start_telemetry([[maybe_unused]] telemetry_plan plan) {}
  virtual void stop_telemetry() {}

  // A valve behind this controller, by the last segment of its connector, through this driver's own session
  // and budget. Null: not a controller. It answers UNAVAILABLE once the driver is let go of.
  virtual std::shared_ptr<valve_port> valve([[maybe_unused]] std::string connector) { return nullptr; }
};

// A CDU read by one rack: never commands.
class cooling_source {
 public:
  virtual ~cooling_source() = default;
  virtual void read(std::string rack, answer<cooling_facts> reply) = 0;
  virtual void set_place([[maybe_unused]] cooling_place place) {}
  // Another certificate is refused with CERTIFICATE_CHANGED from now on. Without a pin the first one seen is it.
  virtual void pin([[maybe_unused]] std::string certificate_sha256) {}
};

// Makes drivers. The pin may be empty (learn at the first probe). Addresses are host:port.
class driver_factory {
 public:
  virtual ~driver_factory() = default;
  virtual std::shared_ptr<bmc> make_bmc(std::string address, MemberKind kind) = 0;
  virtual std::shared_ptr<cooling_source> make_cooling_source(std::string address, credentials login) = 0;
};

}  // namespace busbar::devices
