// What a phase may do: look at the node, ask the device, open and close intents, tell what happened, fail
// with a name.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "actors/node/node_logic.hpp"

namespace busbar::node {

enum class phase_id : int {
  none,
  // discovered
  wait_endpoint,
  bind_driver,
  probe_root,
  // login and reconnect
  login_best,
  login_fallback,
  drop_old_session,
  // retry
  recheck_pin,
  recheck_identity,
  recheck_inventory,
  // another certificate in a blind window of ours
  cert_bind,
  cert_login,
  cert_identify,
  // identified
  change_demanded,
  identify,
  check_owner,
  // credentialed
  make_secrets,
  list_accounts,
  create_own,
  login_own,
  create_interlock,
  arm,
  verify_breakglass_first,
  set_factory_password,
  verify_breakglass,
  drop_breakglass_session,
  drop_factory_session,
  drop_own_session,
  login_own_again,
  // power
  read_power,
  wait_present_agent,
  boot_once,
  read_boot_once,
  permit_on,
  detectors,
  power_on,
  wait_on,
  wait_agent,
  // inspected
  read_inventory,
  // firmware
  recover_restart,
  recover_manager,
  read_firmware,
  pick_row,
  check_image,
  recover_push,
  recover_unnamed,
  wait_unnamed,
  push,
  poll_task,
  activate,
  permit_blind,
  manager_reset,
  wait_bmc,
  login_after_reset,
  verify_rows,
  // restart, shared by firmware and configuration
  rs_read_bios,
  rs_write_bios,
  rs_boot_once,
  rs_read_boot_once,
  rs_permit,
  rs_detectors,
  rs_reset,
  rs_off,
  rs_wait_off,
  rs_on,
  rs_cycle,
  rs_wait_on,
  rs_wait_agent,
  // configured
  cfg_bios,
  cfg_device,
  cfg_write_device,
  cfg_decide,
  cfg_verify_bios,
  cfg_verify_device,
  // validated
  start_suite,
  run_tests,
  judge,
  pass,
  // power down
  down_read,
  down_graceful,
  down_wait,
  down_force,
  down_wait_force,
  // handed back
  rel_power,
  rel_try_factory,
  rel_login,
  rel_restore,
  rel_prove,
  rel_delete_interlock,
  rel_delete_own,
  rel_read_back,
  rel_finish,
};

enum class outcome_kind { next, wait, again, jump, fail, arrow_done };

struct outcome {
  outcome_kind kind = outcome_kind::wait;
  core::duration delay{};
  phase_id target = phase_id::none;
  core::fault fault = core::fault::DEADLINE;
  std::string message, expected, seen;

  static outcome next() {
    return {outcome_kind::next, {}, phase_id::none, core::fault::DEADLINE, {}, {}, {}};
  }
  static outcome wait() { return {}; }
  static outcome again(core::duration delay) {
    return {outcome_kind::again, delay, phase_id::none, core::fault::DEADLINE, {}, {}, {}};
  }
  static outcome jump(phase_id to) { return {outcome_kind::jump, {}, to, core::fault::DEADLINE, {}, {}, {}}; }
  static outcome done() {
    return {outcome_kind::arrow_done, {}, phase_id::none, core::fault::DEADLINE, {}, {}, {}};
  }
  static outcome fail(core::fault fault, std::string message, std::string expected = {},
                      std::string seen = {}) {
    return {outcome_kind::fail, {}, phase_id::none, fault, std::move(message), std::move(expected),
            std::move(seen)};
  }
};

class machine {
 public:
  machine(node_state& state, core::instant now, step_result& out) : state_(state), now_(now), out_(out) {}

  const journal::Node& node() const { return state_.node; }
  journal::Node& change() {
    out_.durable = true;
    return state_.node;
  }
  run_state& run() { return state_.run; }
  const journal::RackSpec& spec() const { return *state_.spec; }
  const std::string& rack_uid() const { return state_.rack_uid; }
  core::instant now() const { return now_; }
  bool is_compute() const { return node().spec().kind() == journal::COMPUTE_TRAY; }
  bool is_shelf() const { return node().spec().kind() == journal::POWER_SHELF; }
  bool is_controller() const { return node().spec().kind() == journal::RACK_CONTROLLER; }
  std::string_view kind_key() const;  // compute_tray | switch_tray | power_shelf | rack_controller

  // Asks the device; the phase then waits for call_done of this very call.
  outcome ask(call_op op);
  outcome ask(call wanted);
  void act(effect wanted) { out_.effects.push_back(std::move(wanted)); }
  void make_secret(std::string name) {
    out_.secrets_to_make.push_back(std::move(name));
    out_.durable = true;
  }

  // An intent is durable before the act (the shell commits before effects). Opening an open one changes
  // nothing.
  void open_intent(std::string_view verb, std::string_view argument = {});
  void close_intent(std::string_view verb, std::string_view argument = {});
  bool intent_is_open(std::string_view verb, std::string_view argument = {}) const;

  journal::Event& tell(std::string_view type, std::string message, std::string_view severity = "info");

  // The result of the phase's own call; empty if the event is something else.
  const call_done* result_of(const node_event& event) const;
  // What to do about a failed call: transient errors are tried again with back-off until the arrow's
  // deadline.
  outcome on_error(const absl::Status& status);
  std::int64_t deadline_of(std::string_view key, std::int64_t default_s) const;  // ns

 private:
  node_state& state_;
  core::instant now_;
  step_result& out_;
};

template <class T>
const T* facts_of(const call_done& done) {
  return std::get_if<T>(&done.facts);
}

bool is_transient(const absl::Status& status);

}  // namespace busbar::node
