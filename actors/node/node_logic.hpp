// One tray or shelf, from declared to production: the decisions, without I/O, threads or a clock.
//
// step() takes the state, one event and the time, changes the state and says what to do: what to commit,
// which secrets to make, which effects to run once the commit is durable, and when to wake again. The shell
// (node_actor) commits first, acts second, and feeds each result back as an event. After a crash the durable
// part (journal::Node) is loaded, the volatile part starts empty, and the current arrow begins again by
// reading the device: open intents say what may already have happened.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "actors/core/clock.hpp"
#include "actors/core/errors.hpp"
#include "actors/devices/bmc.hpp"
#include "actors/node/permit_lease.hpp"
#include "actors/validation/agent_port.hpp"
#include "busbar/journal/event.pb.h"
#include "busbar/journal/spec.pb.h"
#include "busbar/journal/state.pb.h"

namespace busbar::node {

enum class call_op {
  bind,  // no request: the driver for this address and pin (text = address, names[0] = pin; values = wrong
         // logins so far, by user)
  probe,
  login_factory,
  login_own,
  login_breakglass,
  delete_session,  // text = session URI
  identify,
  list_accounts,
  create_own_account,
  create_interlock_account,
  set_factory_password,      // to the vaulted break-glass password
  restore_factory_password,  // back to the manifest's
  delete_interlock_account,
  delete_own_account,
  read_power,
  reset,          // reset
  set_boot_once,  // makes the one-time token and sets the URI with it
  read_boot_once,
  read_detectors,
  read_inventory,
  read_firmware,
  check_image,    // text = image, names[0] = sha256
  push_firmware,  // text = image, names[0] = component
  find_update,    // text = component
  find_unnamed_update,
  read_task,      // text = task URI
  reset_manager,
  read_bios,   // names
  write_bios,  // values
  read_device,
  write_device,
  read_nvlink,
};
std::string_view name_of(call_op op);

struct call {
  std::uint64_t id = 0;
  call_op op = call_op::probe;
  devices::reset_type reset = devices::reset_type::on;
  std::string text;
  std::vector<std::string> names;
  std::map<std::string, std::string> values;
  // A reset that brings energy leaves only while this holds, and not after this moment.
  std::shared_ptr<const permit_lease> lease;
  std::int64_t not_after_ns = core::never_ns;
};

using call_facts =
    std::variant<std::monostate, devices::probe_facts, devices::session_facts, devices::identity_facts,
                 std::vector<devices::account_facts>, devices::power_facts, devices::boot_facts,
                 std::vector<devices::detector_facts>, devices::inventory_facts,
                 std::vector<devices::component_facts>, std::string, devices::task_facts,
                 std::map<std::string, devices::attribute_facts>, devices::nvlink_facts>;

// What the rack allows: one at a time a node, given back when the act is done.
enum class permit_kind { power_on, restart, blind_window };

struct want_permit {
  permit_kind kind;
};
struct release_permit {};
struct arm_interlock {};  // with the vaulted interlock account and the SKU's needed detectors
struct run_test {
  std::string run_id;
  journal::SuiteTest test;
};
struct cancel_run {
  std::string run_id;
};
struct judge_suite {
  std::string run_id;
};  // the shell judges the collected measurements, stores the evidence
struct report_nvlink {
  devices::nvlink_facts facts;
};
struct report_power {  // what a look at the power came to; known = false: the device did not say
  bool known = false;
  journal::PowerState seen = journal::POWER_UNKNOWN;
};
using effect = std::variant<call, want_permit, release_permit, arm_interlock, run_test, cancel_run,
                            judge_suite, report_nvlink, report_power>;

struct wake {};
struct call_done {
  std::uint64_t id = 0;
  absl::Status status;
  call_facts facts;
};
struct endpoint_seen {
  std::string address;  // host:port
  std::string source;
};
struct endpoint_conflict {  // discovery found something wrong about this member's identity
  core::fault fault;
  std::string message, expected, seen;
};
struct rack_view {  // what the rack tells its members
  journal::NodeStep goal = journal::DECLARED;
  std::string operation_id;
  bool bringing_up = false;  // the operation is a bring-up: what was handed back is taken up again
};
struct permit_answer {
  permit_kind kind;
  bool granted = false;
  std::string why;
  std::optional<core::fault> fault;
  std::shared_ptr<const permit_lease> lease = nullptr;  // with a grant; a blind window has none
};
struct armed {
  absl::Status status;
};
struct agent_news {
  validation::agent_event event;
};
struct suite_judged {
  journal::SuiteResult result;
};
struct retry {  // clears the failure; from: an earlier step, or unspecified for the failed one
  journal::NodeStep from = journal::NODE_STEP_UNSPECIFIED;
  std::string operation_id;
};
struct trust_pin {
  std::string pin;
  std::string reason;
};
struct release_bmc {  // hands the BMC back: factory password restored, our accounts deleted
  std::string operation_id;
  std::string reason;
};
struct unlock_logins {
  std::string reason;
};
struct session_opened {  // by the driver itself, after a 401
  std::string uri;
};
struct leak_latch {  // as the interlock's numbered records say
  bool latched = false;
  std::string detail;
  std::string detector;
};
struct trip_held {  // the interlock holds it down by an open trip: what was going on ends
  std::uint64_t number = 0;
  std::string text;
  bool cuts_shelves = false;  // a trip of the rack: BMCs lose their power, and with it what they were doing
};
struct interlock_read_off {  // a step of a trip: the interlock has read it off
  std::string text;
};
struct read_nvlink_now {};
struct look_at_power {  // read anew whether what is shown as on is on
  std::string tripped;  // what the interlock did to it: one reading of off is enough then
};
struct interlock_sight {  // whether its detectors are watched: the interlock heard, their verdicts known
  std::string lost;       // why not; empty = they are
};
using node_event = std::variant<wake, call_done, endpoint_seen, endpoint_conflict, rack_view, permit_answer,
                                armed, agent_news, suite_judged, retry, trust_pin, release_bmc,
                                unlock_logins, session_opened, leak_latch, trip_held, interlock_read_off,
                                read_nvlink_now, look_at_power, interlock_sight>;

// Where the current arrow stands. Never journaled.
struct run_state {
  bool started = false;       // the current arrow's first phase was entered
  bool going_down = false;    // the power-down phases run instead of an arrow
  bool reconnecting = false;  // the phases that open a session after a restart run first
  bool recheck = false;  // a retry: who the device is and what it holds is looked at before the arrow goes on
  bool session_open = false;
  bool own_session = false;  // the open session is our own account's
  std::size_t phase = 0;
  bool waiting = false;  // the phase was entered and waits for an event
  std::uint64_t next_call = 1;
  std::uint64_t open_call = 0;  // 0 = none
  std::string call_user;        // whose password a login within it would use
  std::uint64_t nvlink_call = 0;
  std::uint64_t look_call = 0;  // of a look at the power, beside the phases
  bool look_waits = false;      // asked for; not sent yet
  std::string look_tripped;
  unsigned off_reads = 0, failed_looks = 0;  // in a row
  bool nvlink_waits = false;  // asked for while no session was open: that comes first
  std::int64_t again_at_ns = core::never_ns;
  std::int64_t deadline_ns = core::never_ns;  // of the arrow
  std::int64_t phase_deadline_ns = core::never_ns;
  unsigned attempts = 0;  // of the current phase
  absl::Status last_error;
  bool permit_held = false;
  std::shared_ptr<const permit_lease> lease;
  std::int64_t permit_at_ns = 0;                 // when it was given: it says nothing about later
  std::int64_t detectors_at_ns = INT64_MIN / 2;  // when they were last read dry
  // scratch of the phases
  devices::power_facts power;
  std::vector<devices::account_facts> accounts;
  std::map<std::string, devices::attribute_facts> bios, device;
  std::map<std::string, std::string> bios_changes;
  std::string component;  // firmware row at work
  std::string new_pin;    // shown within a blind window of ours, not accepted yet
  bool fallback_own =
      false;  // the factory login was refused: our own account of an earlier life is tried once
  std::string boot_uri;
  std::string boot_id_before;
  std::optional<validation::agent_event>
      agent_refused;  // of this boot; it may come before its power is read back
  bool agent_before = false;  // was there when a restart was about to be asked, and was not lost since
  bool went_down = false;     // the host was seen to leave its old boot after the restart was asked
  bool restart_cycle = false;  // PowerCycle, after what was asked before had no effect
  std::int64_t went_down_by_ns = core::never_ns;  // until when a restart must have shown an effect
  unsigned verify_reads = 0;
  bool bmc_seen_down = false;
  bool restart_composed = false;  // off and on instead of ForceRestart
  bool on_unsure = false;         // the composed On was asked and its answer was lost
  unsigned pushes = 0;            // of one image, each with its answer lost
  int after_restart = 0;          // phase id to go to after the shared restart
  std::size_t test = 0;           // index in the suite
  bool test_running = false;
};

struct node_state {
  journal::Node node;
  run_state run;
  std::shared_ptr<const journal::RackSpec> spec;
  std::string rack_uid;  // UUID text; its first 8 hex digits name accounts
};

struct step_result {
  bool durable = false;  // node changed: commit before the effects
  std::vector<journal::Event> events;
  std::vector<std::string> secrets_to_make;  // vault names, sealed within the same batch if not there yet
  std::vector<journal::Intent> intents_opened;
  std::vector<std::string> intents_closed;
  std::vector<effect> effects;
  std::int64_t wake_at_ns = core::never_ns;
};

step_result step(node_state& state, const node_event& event, core::instant now);

// Vault names of a member's secrets.
std::string own_secret(const journal::Node& node);
std::string interlock_secret(const journal::Node& node);
std::string breakglass_secret(const journal::Node& node);
std::string own_account(std::string_view rack_uid);        // busbar-<8 hex>
std::string interlock_account(std::string_view rack_uid);  // busbar-<8 hex>-il

// What became of a BMC that was handed back, and what is left for a person to do.
std::string released_words(const journal::Node& node);

// Energised: has passed the step that turns it on.
bool is_energised_step(journal::NodeStep step);

// Turned on and off by us. A rack controller is not: it is fed from the grid side and has no host.
bool is_switched(const journal::Node& node);

// A trip of the interlock stopped it. Until it is read off its power is unknown, and the interlock's to take.
bool is_tripped(const journal::Node& node);

// It was on by our word and was read off, or was tripped, and nothing else is wrong with it: a bring-up turns
// it on again.
bool lost_its_power(const journal::Node& node);

constexpr std::string_view trip_fact = "trip";  // among a node's facts: number of the trip it was last told of

}  // namespace busbar::node
