// From an address to an account of our own: discovered, identified, credentialed, and the reconnect after a
// restart.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "actors/core/mutant.hpp"
#include "actors/node/identity_logic.hpp"
#include "actors/node/node_phases.hpp"

namespace busbar::node {
namespace {

using core::fault;

// All principals together stay below the lowest lock-out count met in the field (5).
constexpr std::uint32_t most_login_failures = 3;

outcome enter_wait_endpoint(machine& m) {
  return m.node().identity().address().empty() ? outcome::wait() : outcome::next();
}
outcome take_wait_endpoint(machine& m, const node_event&) {
  return enter_wait_endpoint(m);
}

outcome enter_bind(machine& m) {
  m.run().session_open = false;  // a new driver has none
  m.run().own_session = false;
  call wanted;
  wanted.op = call_op::bind;
  wanted.text = m.node().identity().address();
  wanted.names = {m.node().identity().pin_sha256()};
  m.act(wanted);
  return outcome::next();
}

outcome enter_probe(machine& m) {
  return m.ask(call_op::probe);
}

outcome take_probe(machine& m, const node_event& event) {
  const call_done* const done = m.result_of(event);
  if (done == nullptr) return outcome::wait();
  if (!done->status.ok()) return m.on_error(done->status);
  const auto& facts = *facts_of<devices::probe_facts>(*done);
  const std::string& pinned = m.node().identity().pin_sha256();
  if (!pinned.empty() && pinned != facts.certificate_sha256 && !BUSBAR_MUTANT(changed_certificate_accepted)) {
    return outcome::fail(fault::CERTIFICATE_CHANGED, "the BMC shows another certificate than the pinned one",
                         pinned, facts.certificate_sha256);
  }
  journal::Identity& identity = *m.change().mutable_identity();
  identity.set_pin_sha256(facts.certificate_sha256);
  identity.set_bmc_uuid(facts.uuid);
  identity.set_bmc_mac(m.node().spec().bmc_mac());
  return outcome::next();
}

// ---- login: the credential that is most likely to be right, then at most one other
// -------------------------------------------

call_op best_login(machine& m) {
  const journal::Access& access = m.node().access();
  if (access.account_created() || m.intent_is_open("create_account", "own")) return call_op::login_own;
  if (access.factory_password_changed() || m.intent_is_open("set_password", "factory"))
    return call_op::login_breakglass;
  return call_op::login_factory;
}

// The other one to try when the best was refused although it may never have been set; none when it is known
// to be set.
std::optional<call_op> other_login(machine& m) {
  const journal::Access& access = m.node().access();
  const call_op best = best_login(m);
  if (best == call_op::login_factory || access.account_created()) return std::nullopt;
  if (best == call_op::login_own && access.factory_password_changed()) return call_op::login_breakglass;
  if (best == call_op::login_breakglass && access.factory_password_changed()) return std::nullopt;
  return call_op::login_factory;
}

outcome refuse_when_locked_out(machine& m, call_op op) {
  if (m.node().access().login_failures() >= most_login_failures && !BUSBAR_MUTANT(login_storm)) {
    return outcome::fail(fault::CREDENTIAL_LOCKED_OUT,
                         fmt::format("{} logins were refused; the next could lock the BMC",
                                     m.node().access().login_failures()));
  }
  return m.ask(op);
}

outcome enter_login_best(machine& m) {
  if (m.run().session_open) return outcome::jump(phase_id::drop_old_session);
  return refuse_when_locked_out(m, best_login(m));
}

// Success keeps the session's URI; a refusal is counted.
std::optional<outcome> take_login(machine& m, const call_done& done) {
  if (done.status.ok()) {
    const auto& session = *facts_of<devices::session_facts>(done);
    journal::Access& access = *m.change().mutable_access();
    access.set_login_failures(0);
    access.set_session_uri(session.uri);
    m.run().session_open = true;
    m.run().own_session = false;
    return std::nullopt;
  }
  m.run().own_session = false;
  const auto named = core::fault_of(done.status);
  if (named == fault::CREDENTIAL_FACTORY_REFUSED || named == fault::CREDENTIAL_LOCKED_OUT) {
    journal::Access& access = *m.change().mutable_access();
    access.set_login_failures(access.login_failures() + 1);
  }
  return m.on_error(done.status);
}

outcome after_login(machine& m, const call_done& done) {
  const bool demanded = facts_of<devices::session_facts>(done)->password_change_required;
  if (demanded && m.node().step() < journal::IDENTIFIED) return outcome::jump(phase_id::change_demanded);
  return outcome::jump(phase_id::drop_old_session);
}

outcome take_login_best(machine& m, const node_event& event) {
  const call_done* const done = m.result_of(event);
  if (done == nullptr) return outcome::wait();
  if (const auto problem = take_login(m, *done)) {
    if (other_login(m).has_value() && problem->kind == outcome_kind::fail)
      return outcome::jump(phase_id::login_fallback);
    // A tray that was taken out of the manifest and put back still has our account, and the vault its
    // password.
    if (problem->kind == outcome_kind::fail && problem->fault == fault::CREDENTIAL_FACTORY_REFUSED &&
        !m.node().access().account_created()) {
      m.run().fallback_own = true;
      m.run().last_error = done->status;
      return outcome::jump(phase_id::login_fallback);
    }
    return *problem;
  }
  return after_login(m, *done);
}

outcome enter_login_fallback(machine& m) {
  if (m.run().fallback_own) return refuse_when_locked_out(m, call_op::login_own);
  return refuse_when_locked_out(m, other_login(m).value_or(call_op::login_factory));
}

outcome take_login_fallback(machine& m, const node_event& event) {
  const call_done* const done = m.result_of(event);
  if (done == nullptr) return outcome::wait();
  const bool found_own = std::exchange(m.run().fallback_own, false);
  if (found_own && absl::IsNotFound(done->status)) {  // the vault knows no account of ours here
    return outcome::fail(fault::CREDENTIAL_FACTORY_REFUSED, std::string(m.run().last_error.message()));
  }
  if (const auto problem = take_login(m, *done)) return *problem;
  if (found_own) {
    journal::Access& access = *m.change().mutable_access();
    access.set_account(own_account(m.rack_uid()));
    access.set_account_created(true);
    m.run().own_session = true;
    m.tell("account_found", "the factory login is refused, our own account of an earlier time is let in");
  }
  return after_login(m, *done);
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

outcome enter_identify(machine& m) {
  return m.ask(call_op::identify);
}

outcome take_identify(machine& m, const node_event& event) {
  const call_done* const done = m.result_of(event);
  if (done == nullptr) return outcome::wait();
  if (!done->status.ok()) return m.on_error(done->status);
  const auto& facts = *facts_of<devices::identity_facts>(*done);
  journal::Identity& identity = *m.change().mutable_identity();
  identity.set_serial(facts.serial.value_or(""));
  identity.set_slot(facts.slot.value_or(""));
  identity.set_model(facts.model.value_or(""));
  const auto difference = compare_identity(m.node().spec(), facts);
  if (difference.has_value() && !BUSBAR_MUTANT(wrong_serial_accepted)) {
    return outcome::fail(difference->code, difference->message, difference->expected, difference->seen);
  }
  return outcome::next();
}

outcome enter_list_accounts(machine& m) {
  return m.ask(call_op::list_accounts);
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

outcome enter_login_own(machine& m) {
  if (m.run().own_session) return outcome::next();
  return refuse_when_locked_out(m, call_op::login_own);
}

outcome take_login_own(machine& m, const node_event& event) {
  const call_done* const done = m.result_of(event);
  if (done == nullptr) return outcome::wait();
  if (const auto problem = take_login(m, *done)) return *problem;
  m.run().own_session = true;
  if (!m.node().access().account_created()) {
    m.change().mutable_access()->set_account_created(true);
    m.close_intent("create_account", "own");
    m.tell("account_created",
           fmt::format("account {} created and logged in with", m.node().access().account()));
  }
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
  m.tell("account_created", fmt::format("interlock's account {} created", interlock_account(m.rack_uid())));
  return outcome::next();
}

outcome enter_arm(machine& m) {
  m.act(arm_interlock{});
  return outcome::wait();
}

outcome take_arm(machine& m, const node_event& event) {
  const auto* answer = std::get_if<armed>(&event);
  if (answer == nullptr) return outcome::wait();
  if (!answer->status.ok()) return m.on_error(answer->status);
  m.change().mutable_access()->set_interlock_armed(true);
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
  if (is_transient(done->status)) return m.on_error(done->status);
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

outcome enter_drop_session(machine& m) {
  const std::string uri = m.node().access().session_uri();
  if (uri.empty()) return outcome::next();
  call wanted;
  wanted.op = call_op::delete_session;
  wanted.text = uri;
  return m.ask(wanted);
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
  return enter_drop_session(m);
}

outcome take_drop_session(machine& m, const node_event& event) {
  const call_done* const done = m.result_of(event);
  if (done == nullptr) return outcome::wait();
  if (!done->status.ok() && is_transient(done->status)) return m.on_error(done->status);
  m.change().mutable_access()->clear_session_uri();
  m.run().own_session = false;
  return outcome::next();
}

// ---- after a restart of ours: one session again, the old one given back first
// -----------------------------------------------------

outcome enter_drop_old_session(machine& m) {
  const std::string& old =
      m.node().facts().contains("old_session_uri") ? m.node().facts().at("old_session_uri") : std::string();
  if (old.empty()) return outcome::next();
  call wanted;
  wanted.op = call_op::delete_session;
  wanted.text = old;
  return m.ask(wanted);
}

outcome take_drop_old_session(machine& m, const node_event& event) {
  const call_done* const done = m.result_of(event);
  if (done == nullptr) return outcome::wait();
  if (!done->status.ok() && is_transient(done->status)) return m.on_error(done->status);
  m.change().mutable_facts()->erase("old_session_uri");
  return outcome::next();
}

outcome enter_remember_session(machine& m) {
  if (m.run().session_open) return outcome::next();  // the driver that holds the session stays
  const std::string uri = m.node().access().session_uri();
  if (!uri.empty()) {
    (*m.change().mutable_facts())["old_session_uri"] = uri;
    m.change().mutable_access()->clear_session_uri();
  }
  return enter_bind(m);
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
};

constexpr std::array reconnect{
    phase{phase_id::bind_driver, "", fault::BMC_UNREACHABLE, enter_remember_session, nullptr},
    phase{phase_id::login_own, "a login with its own account", fault::BMC_UNREACHABLE, enter_login_own,
          take_login_own},
    phase{phase_id::drop_old_session, "the end of its session from before the restart", fault::BMC_SLOW,
          enter_drop_old_session, take_drop_old_session},
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
