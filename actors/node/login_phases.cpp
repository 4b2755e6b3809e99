#include "actors/node/login_phases.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "actors/core/mutant.hpp"
#include "actors/node/identity_logic.hpp"

namespace busbar::node {

using core::fault;

namespace {

// All users together stay below the lowest lock-out count met in the field (5).
constexpr std::uint32_t most_login_failures = 3;

void sum_wrong_logins(journal::Access& access) {
  std::uint32_t all = 0;
  for (const auto& [user, count] : access.wrong_logins()) all += count;
  access.set_login_failures(all);
}

// The user that a call's own login would be of.
std::string user_of(const machine& m, call_op op, bool own_session) {
  if (op == call_op::login_own) return own_account(m.rack_uid());
  if (op == call_op::login_factory || op == call_op::login_breakglass) return factory_user(m);
  return own_session ? own_account(m.rack_uid()) : factory_user(m);
}

}  // namespace

void bind_driver(machine& m, const std::string& pin) {
  m.run().session_open = false;  // a new driver has none
  m.run().own_session = false;
  call wanted;
  wanted.op = call_op::bind;
  wanted.text = m.node().identity().address();
  wanted.names = {pin};
  for (const auto& [user, count] : m.node().access().wrong_logins())
    wanted.values[user] = std::to_string(count);
  m.act(wanted);
}

outcome enter_bind(machine& m) {
  bind_driver(m, m.node().identity().pin_sha256());
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

std::string factory_user(const machine& m) {
  const auto& logins = m.spec().manifest().factory_logins();
  const auto row = logins.find(std::string(m.kind_key()));
  return row == logins.end() ? std::string("factory") : row->second.user();
}

void count_refused_login(machine& m, const call_done& done) {
  const auto named = core::fault_of(done.status);
  if (named != fault::CREDENTIAL_FACTORY_REFUSED && named != fault::CREDENTIAL_LOCKED_OUT) return;
  // At the most, the refusal is our own driver's: nothing was sent.
  if (named == fault::CREDENTIAL_LOCKED_OUT && m.node().access().login_failures() >= most_login_failures)
    return;
  journal::Access& access = *m.change().mutable_access();
  const std::string user = m.run().call_user.empty() ? factory_user(m) : m.run().call_user;
  (*access.mutable_wrong_logins())[user] += 1;
  sum_wrong_logins(access);
}

namespace {

// ---- login: the credential that is most likely to be right, then at most one other
// -------------------------------------------

}  // namespace

call_op best_login(machine& m) {
  const journal::Access& access = m.node().access();
  if (access.account_created() || m.intent_is_open("create_account", "own")) return call_op::login_own;
  if (access.factory_password_changed() || m.intent_is_open("set_password", "factory"))
    return call_op::login_breakglass;
  return call_op::login_factory;
}

namespace {

// The other one to try when the best was refused although it may never have been set; none when it is known
// to be set.
std::optional<call_op> other_login(machine& m) {
  const journal::Access& access = m.node().access();
  const call_op best = best_login(m);
  if (best == call_op::login_factory || access.account_created()) return std::nullopt;
  if (best == call_op::login_own && access.factory_password_changed()) return call_op::login_breakglass;
  const bool maybe_restored = m.intent_is_open("set_password", "factory_back");
  if (best == call_op::login_breakglass && access.factory_password_changed() && !maybe_restored)
    return std::nullopt;
  return call_op::login_factory;
}

}  // namespace

outcome refuse_when_locked_out(machine& m, call_op op) {
  const std::uint32_t refused = m.node().access().login_failures();
  if (refused >= most_login_failures && !BUSBAR_MUTANT(login_storm)) {
    return outcome::fail(fault::CREDENTIAL_LOCKED_OUT,
                         fmt::format("{} logins were refused; the next could lock the BMC", refused),
                         fmt::format("fewer than {} refused logins", most_login_failures),
                         std::to_string(refused));
  }
  outcome asked = m.ask(op);
  m.run().call_user = user_of(m, op, m.run().own_session);
  return asked;
}

outcome enter_login_best(machine& m) {
  if (m.run().session_open) return outcome::jump(phase_id::drop_old_session);
  return refuse_when_locked_out(m, best_login(m));
}

std::optional<outcome> take_login(machine& m, const call_done& done) {
  if (done.status.ok()) {
    const auto& session = *facts_of<devices::session_facts>(done);
    journal::Access& access = *m.change().mutable_access();
    access.mutable_wrong_logins()->erase(m.run().call_user);
    sum_wrong_logins(access);
    access.set_session_uri(session.uri);
    m.run().session_open = true;
    m.run().own_session = false;
    return std::nullopt;
  }
  m.run().own_session = false;
  return m.on_error(done.status);
}

void note_factory_login(machine& m) {
  const bool unsure =
      m.intent_is_open("set_password", "factory_back") || m.intent_is_open("set_password", "factory");
  if (!unsure && !m.node().access().factory_password_changed()) return;
  m.change().mutable_access()->set_factory_password_changed(false);
  m.close_intent("set_password", "factory_back");
  m.close_intent("set_password", "factory");
  m.tell("password_restored", "the manifest's factory password is let in again");
}

namespace {

outcome after_login(machine& m, const call_done& done) {
  const bool demanded = facts_of<devices::session_facts>(done)->password_change_required;
  if (demanded && m.node().step() < journal::IDENTIFIED && m.node().hold() == journal::HOLD_NONE)
    return outcome::jump(phase_id::change_demanded);
  return outcome::jump(phase_id::drop_old_session);
}

}  // namespace

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
  const bool was_factory = !m.run().fallback_own && other_login(m) == call_op::login_factory;
  const bool found_own = std::exchange(m.run().fallback_own, false);
  if (found_own && absl::IsNotFound(done->status)) {  // the vault knows no account of ours here
    return outcome::fail(fault::CREDENTIAL_FACTORY_REFUSED, std::string(m.run().last_error.message()));
  }
  if (const auto problem = take_login(m, *done)) return *problem;
  if (was_factory) note_factory_login(m);
  if (found_own) {
    journal::Access& access = *m.change().mutable_access();
    access.set_account(own_account(m.rack_uid()));
    access.set_account_created(true);
    m.run().own_session = true;
    m.tell("account_found", "the factory login is refused, our own account of an earlier time is let in");
  }
  return after_login(m, *done);
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

outcome enter_login_own(machine& m) {
  if (m.run().own_session) return outcome::next();
  return refuse_when_locked_out(m, call_op::login_own);
}

outcome take_login_own(machine& m, const node_event& event) {
  const call_done* const done = m.result_of(event);
  if (done == nullptr) return outcome::wait();
  if (m.run().reconnecting) {
    if (const auto accepted = certificate_in_own_window(m, done->status)) return *accepted;
  }
  if (const auto problem = take_login(m, *done)) return *problem;
  m.run().own_session = true;
  if (!m.node().access().account_created()) {
    m.change().mutable_access()->set_account_created(true);
    m.close_intent("create_account", "own");
    if (m.intent_is_open("delete_account", "own")) m.close_intent("delete_account", "own");
    m.tell("account_created",
           fmt::format("account {} created and logged in with", m.node().access().account()));
  }
  return m.run().reconnecting ? outcome::jump(phase_id::drop_old_session) : outcome::next();
}

outcome enter_arm(machine& m) {
  m.act(arm_interlock{});
  return outcome::wait();
}

outcome enter_rearm(machine& m) {
  const journal::Access& access = m.node().access();
  return access.interlock_account_created() && !access.interlock_armed() ? enter_arm(m) : outcome::next();
}

outcome take_arm(machine& m, const node_event& event) {
  const auto* answer = std::get_if<armed>(&event);
  if (answer == nullptr) return outcome::wait();
  if (!answer->status.ok()) {
    // The interlock's own word, not the BMC's.
    if (is_transient(answer->status) || core::fault_of(answer->status).has_value())
      return m.on_error(answer->status);
    return outcome::fail(fault::POWER_INTERLOCK_NOT_ARMED, std::string(answer->status.message()));
  }
  m.change().mutable_access()->set_interlock_armed(true);
  m.change().mutable_facts()->erase("interlock_pin");  // of a record from before it was handed back
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

// ---- another certificate within a blind window of ours
// ------------------------------------------------------------------------

std::optional<outcome> certificate_in_own_window(machine& m, const absl::Status& status) {
  if (core::fault_of(status) != fault::CERTIFICATE_CHANGED) return std::nullopt;
  const journal::Node& node = m.node();
  const bool ours = node.blind_window() && node.blind_until_wall_ns() > m.now().wall_ns &&
                    m.intent_is_open("reset_manager");
  const std::string pin = core::seen_of(status);
  if (!ours || pin.empty() || node.facts().contains("blind_pin")) return std::nullopt;  // once a window
  m.run().new_pin = pin;
  return outcome::jump(phase_id::cert_bind);
}

outcome enter_cert_bind(machine& m) {
  bind_driver(m, m.run().new_pin);
  return outcome::next();
}

outcome enter_cert_login(machine& m) {
  return refuse_when_locked_out(m, call_op::login_own);
}

outcome take_cert_login(machine& m, const node_event& event) {
  const call_done* const done = m.result_of(event);
  if (done == nullptr) return outcome::wait();
  if (const auto problem = take_login(m, *done)) return *problem;
  m.run().own_session = true;
  return outcome::next();
}

namespace {

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

// What of the device is not what it was; empty when MAC and serial are.
std::string changed_part(const machine& m, const devices::identity_facts& seen) {
  const std::string mac = lower(seen.mac.value_or(""));
  if (mac.empty() || mac != lower(m.node().spec().bmc_mac()))
    return fmt::format("its MAC is {}, the manifest's {}", mac.empty() ? "unknown" : mac,
                       m.node().spec().bmc_mac());
  const std::string serial = seen.serial.value_or("");
  if (serial != m.node().identity().serial())
    return fmt::format("its serial is {}, before it was {}", serial.empty() ? "unknown" : serial,
                       m.node().identity().serial());
  return {};
}

}  // namespace

outcome take_cert_identify(machine& m, const node_event& event) {
  const call_done* const done = m.result_of(event);
  if (done == nullptr) return outcome::wait();
  if (!done->status.ok()) return m.on_error(done->status);
  const std::string before = m.node().identity().pin_sha256();
  const std::string shown = m.run().new_pin;
  if (const std::string other = changed_part(m, *facts_of<devices::identity_facts>(*done)); !other.empty()) {
    m.run().session_open = false;  // the driver at work is pinned to what is not trusted
    m.run().own_session = false;
    return outcome::fail(fault::CERTIFICATE_CHANGED,
                         "the BMC shows another certificate after its restart, and " + other, before, shown);
  }
  m.change().mutable_identity()->set_pin_sha256(shown);
  (*m.change().mutable_facts())["blind_pin"] = shown;
  m.change().mutable_access()->set_interlock_armed(false);  // its record still has the old pin
  journal::Event& told =
      m.tell("certificate_accepted",
             "another certificate after a restart of ours; MAC and serial are the same", "warning");
  (*told.mutable_details())["expected"] = before;
  (*told.mutable_details())["seen"] = shown;
  return outcome::next();
}

std::string own_secret(const journal::Node& node) {
  return node.name() + "/own";
}
std::string interlock_secret(const journal::Node& node) {
  return node.name() + "/interlock";
}
std::string breakglass_secret(const journal::Node& node) {
  return node.name() + "/breakglass";
}
std::string own_account(std::string_view rack_uid) {
  return fmt::format("busbar-{}", rack_uid.substr(0, 8));
}
std::string interlock_account(std::string_view rack_uid) {
  return fmt::format("busbar-{}-il", rack_uid.substr(0, 8));
}

}  // namespace busbar::node
