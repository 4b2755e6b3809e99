// From an address to an account of our own: discovered, identified, credentialed, and the reconnect after a
// restart.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "actors/core/mutant.hpp"
#include "actors/node/identity_logic.hpp"
#include "actors/node/login_phases.hpp"
#include "actors/node/node_phases.hpp"

namespace busbar::node {
namespace {

using core::fault;

outcome enter_wait_endpoint(machine& m) {
  return m.node().identity().address().empty() ? outcome::wait() : outcome::next();
}
outcome take_wait_endpoint(machine& m, const node_event&) {
  return enter_wait_endpoint(m);
}

// The BMC answers 403 to everything until its password is changed: announced MAC and pin suffice to change
// it.
outcome enter_change_demanded(machine& m) {
  m.make_secret(breakglass_secret(m.node()));
  m.open_intent("set_password", "factory");
  return m.ask(call_op::set_factory_password);
}

outcome take_change_demanded(machine& m, const node_event& event) {
  const call_done* const done = m.result_of(event);
  if (done == nullptr) return outcome::wait();
  if (!done->status.ok()) {
    if (is_transient(done->status)) {
      m.run().session_open = false;
      return outcome::jump(phase_id::login_best);  // unsure whether it took: the login tells
    }
    return outcome::fail(fault::CREDENTIAL_CHANGE_REQUIRED, std::string(done->status.message()));
  }
  m.change().mutable_access()->set_factory_password_changed(true);
  m.run().session_open = false;
  m.tell("password_changed", "factory password changed on the BMC's demand; the new one is in the vault");
  return outcome::jump(phase_id::login_best);
}

outcome take_check_owner(machine& m, const node_event& event) {
  const call_done* const done = m.result_of(event);
  if (done == nullptr) return outcome::wait();
  if (!done->status.ok()) return m.on_error(done->status);
  const auto& accounts = *facts_of<std::vector<devices::account_facts>>(*done);
  const auto other = foreign_owner(accounts, m.rack_uid());
  if (other.has_value() && !BUSBAR_MUTANT(second_owner_admitted)) {
    return outcome::fail(fault::OWNED_ELSEWHERE, "the BMC holds an account of another Busbar",
                         own_account(m.rack_uid()), *other);
  }
  return outcome::next();
}

// ---- credentialed
// --------------------------------------------------------------------------------------------------------------

outcome enter_make_secrets(machine& m) {
  m.make_secret(own_secret(m.node()));
  m.make_secret(interlock_secret(m.node()));
  m.make_secret(breakglass_secret(m.node()));
  m.change().mutable_access()->set_account(own_account(m.rack_uid()));
  return outcome::next();
}

outcome enter_create_own(machine& m) {
  if (m.node().access().account_created()) return outcome::next();
  m.open_intent("create_account", "own");
  return m.ask(call_op::create_own_account);
}

outcome take_create_own(machine& m, const node_event& event) {
  const call_done* const done = m.result_of(event);
  if (done == nullptr) return outcome::wait();
  if (!done->status.ok()) return m.on_error(done->status);
  return outcome::next();
}

outcome enter_create_interlock(machine& m) {
  if (m.node().access().interlock_account_created()) return outcome::next();
  m.open_intent("create_account", "interlock");
  return m.ask(call_op::create_interlock_account);
}

outcome take_create_interlock(machine& m, const node_event& event) {
  const call_done* const done = m.result_of(event);
  if (done == nullptr) return outcome::wait();
  if (!done->status.ok()) return m.on_error(done->status);
  m.change().mutable_access()->set_interlock_account_created(true);
  m.close_intent("create_account", "interlock");
  if (m.intent_is_open("delete_account", "interlock")) m.close_intent("delete_account", "interlock");
  m.tell("account_created", fmt::format("interlock's account {} created", interlock_account(m.rack_uid())));
  return outcome::next();
}

// After a crash between asking and knowing, the new password is tried before the change is asked again.
outcome enter_verify_breakglass_first(machine& m) {
  const bool may_have_happened =
      m.intent_is_open("set_password", "factory") || m.node().access().factory_password_changed();
  if (!may_have_happened || BUSBAR_MUTANT(password_change_repeated)) return outcome::next();
  return refuse_when_locked_out(m, call_op::login_breakglass);
}

outcome take_verify_breakglass_first(machine& m, const node_event& event) {
  const call_done* const done = m.result_of(event);
  if (done == nullptr) return outcome::wait();
  if (!take_login(m, *done).has_value()) return outcome::jump(phase_id::drop_breakglass_session);
  // Locked says nothing of the password.
  if (is_transient(done->status) || core::fault_of(done->status) == fault::CREDENTIAL_LOCKED_OUT)
    return m.on_error(done->status);
  return outcome::next();  // refused: the change did not take
}

outcome enter_set_factory_password(machine& m) {
  m.open_intent("set_password", "factory");
  return m.ask(call_op::set_factory_password);
}

outcome take_set_factory_password(machine& m, const node_event& event) {
  const call_done* const done = m.result_of(event);
  if (done == nullptr) return outcome::wait();
  if (!done->status.ok()) {
    if (is_transient(done->status)) return outcome::jump(phase_id::verify_breakglass_first);
    return m.on_error(done->status);
  }
  return outcome::next();
}

outcome enter_verify_breakglass(machine& m) {
  return refuse_when_locked_out(m, call_op::login_breakglass);
}

outcome take_verify_breakglass(machine& m, const node_event& event) {
  const call_done* const done = m.result_of(event);
  if (done == nullptr) return outcome::wait();
  if (const auto problem = take_login(m, *done)) return *problem;
  return outcome::next();
}

// A session that is not our own account's (factory, break-glass after a demanded change) ends before ours
// begins.
outcome enter_drop_foreign_session(machine& m) {
  return m.run().own_session ? outcome::next() : enter_drop_session(m);
}

// The break-glass login proved the change; its session is given back at once.
outcome enter_drop_proved_session(machine& m) {
  if (!m.node().access().factory_password_changed() || m.intent_is_open("set_password", "factory")) {
    m.change().mutable_access()->set_factory_password_changed(true);
    m.close_intent("set_password", "factory");
    m.tell("password_changed",
           "factory password changed and proved by a login; kept in the vault as break-glass");
  }
  if (m.intent_is_open("set_password", "factory_back")) m.close_intent("set_password", "factory_back");
  return enter_drop_session(m);
}

constexpr std::array discover{
    phase{phase_id::wait_endpoint, "an announcement of its BMC's MAC or address", fault::BMC_UNREACHABLE,
          enter_wait_endpoint, take_wait_endpoint},
    phase{phase_id::bind_driver, "", fault::BMC_UNREACHABLE, enter_bind, nullptr},
    phase{phase_id::probe_root, "the BMC's service root", fault::BMC_UNREACHABLE, enter_probe, take_probe},
};

constexpr std::array identify{
    phase{phase_id::bind_driver, "", fault::BMC_UNREACHABLE, enter_remember_session, nullptr},
    phase{phase_id::login_best, "the BMC's answer to the login", fault::BMC_UNREACHABLE, enter_login_best,
          take_login_best},
    phase{phase_id::login_fallback, "the BMC's answer to the factory login",
          fault::CREDENTIAL_FACTORY_REFUSED, enter_login_fallback, take_login_fallback},
    phase{phase_id::change_demanded, "the password change that the BMC demands",
          fault::CREDENTIAL_CHANGE_REQUIRED, enter_change_demanded, take_change_demanded},
    phase{phase_id::drop_old_session, "the end of its session from before the restart", fault::BMC_SLOW,
          enter_drop_old_session, take_drop_old_session},
    phase{phase_id::identify, "serial, slot and model", fault::BMC_SLOW, enter_identify, take_identify},
    phase{phase_id::check_owner, "the account list", fault::BMC_SLOW, enter_list_accounts, take_check_owner},
};

constexpr std::array credential{
    phase{phase_id::bind_driver, "", fault::BMC_UNREACHABLE, enter_remember_session, nullptr},
    phase{phase_id::login_best, "the BMC's answer to the login", fault::BMC_UNREACHABLE, enter_login_best,
          take_login_best},
    phase{phase_id::login_fallback, "the BMC's answer to the factory login",
          fault::CREDENTIAL_FACTORY_REFUSED, enter_login_fallback, take_login_fallback},
    phase{phase_id::drop_old_session, "the end of its session from before the restart", fault::BMC_SLOW,
          enter_drop_old_session, take_drop_old_session},
    phase{phase_id::make_secrets, "", fault::STORE_READ_ONLY, enter_make_secrets, nullptr},
    phase{phase_id::create_own, "its own account", fault::BMC_SLOW, enter_create_own, take_create_own},
    phase{phase_id::drop_factory_session, "the factory session's end", fault::BMC_SLOW,
          enter_drop_foreign_session, take_drop_session},
    phase{phase_id::login_own, "a login with its own account", fault::CREDENTIAL_FACTORY_REFUSED,
          enter_login_own, take_login_own},
    phase{phase_id::create_interlock, "the interlock's account", fault::BMC_SLOW, enter_create_interlock,
          take_create_interlock},
    phase{phase_id::arm, "the interlock to take its arming record", fault::POWER_INTERLOCK_NOT_ARMED,
          enter_arm, take_arm},
    phase{phase_id::verify_breakglass_first, "proof of the new factory password", fault::BMC_SLOW,
          enter_verify_breakglass_first, take_verify_breakglass_first},
    phase{phase_id::login_own_again, "a login with its own account", fault::BMC_SLOW, enter_login_own,
          take_login_own},
    phase{phase_id::set_factory_password, "the factory password's change", fault::BMC_SLOW,
          enter_set_factory_password, take_set_factory_password},
    phase{phase_id::drop_own_session, "its own session's end", fault::BMC_SLOW, enter_drop_session,
          take_drop_session},
    phase{phase_id::verify_breakglass, "proof of the new factory password", fault::BMC_SLOW,
          enter_verify_breakglass, take_verify_breakglass},
    phase{phase_id::drop_breakglass_session, "the break-glass session's end", fault::BMC_SLOW,
          enter_drop_proved_session, take_drop_session},
    phase{phase_id::pass, "a login with its own account", fault::BMC_SLOW, enter_login_own, take_login_own},
};

// What a retry makes sure of before it goes on: the same certificate, the same tray, the same parts.
constexpr std::array recheck{
    phase{phase_id::recheck_pin, "the BMC's certificate once more", fault::BMC_UNREACHABLE, enter_probe,
          take_probe},
    phase{phase_id::recheck_identity, "serial and slot once more", fault::BMC_SLOW, enter_identify,
          take_identify},
    phase{phase_id::recheck_inventory, "its parts once more", fault::BMC_SLOW, enter_recheck_inventory,
          take_recheck_inventory},
    phase{phase_id::arm, "the interlock to take its new certificate", fault::POWER_INTERLOCK_NOT_ARMED,
          enter_rearm, take_arm},
};

constexpr std::array reconnect{
    phase{phase_id::bind_driver, "", fault::BMC_UNREACHABLE, enter_remember_session, nullptr},
    phase{phase_id::login_own, "a login with its own account", fault::BMC_UNREACHABLE, enter_login_own,
          take_login_own},
    phase{phase_id::cert_bind, "", fault::BMC_UNREACHABLE, enter_cert_bind, nullptr},
    phase{phase_id::cert_login, "a login under its new certificate", fault::BMC_UNREACHABLE, enter_cert_login,
          take_cert_login},
    phase{phase_id::cert_identify, "MAC and serial under its new certificate", fault::BMC_SLOW,
          enter_identify, take_cert_identify},
    phase{phase_id::drop_old_session, "the end of its session from before the restart", fault::BMC_SLOW,
          enter_drop_old_session, take_drop_old_session},
    phase{phase_id::arm, "the interlock to take its new certificate", fault::POWER_INTERLOCK_NOT_ARMED,
          enter_rearm, take_arm},
};

}  // namespace

std::span<const phase> discover_phases() {
  return discover;
}
std::span<const phase> identify_phases() {
  return identify;
}
std::span<const phase> credential_phases() {
  return credential;
}
std::span<const phase> reconnect_phases() {
  return reconnect;
}
std::span<const phase> recheck_phases() {
  return recheck;
}

}  // namespace busbar::node
