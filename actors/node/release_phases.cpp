// A BMC handed back: the manifest's factory password set and proved by a login, then our accounts deleted,
// the one that could still mend things last. What our record says of an account is taken back before the
// account is: after a crash, or when the tray is taken over again halfway, nothing is believed that may be
// gone. The vault keeps every password, so that no crash between asking and knowing locks anybody out.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "actors/node/login_phases.hpp"
#include "actors/node/node_phases.hpp"
#include "actors/node/power_phases.hpp"

namespace busbar::node {
namespace {

using core::fault;

constexpr core::duration poll_interval = std::chrono::milliseconds(500);

// From here on the tray is not ours to turn on: if it is taken up again, who it is comes first.
void let_go(machine& m) {
  journal::Node& changed = m.change();
  changed.set_step(std::min(changed.step(), journal::DISCOVERED));
  changed.mutable_power()->set_wanted(journal::POWER_OFF);
  changed.clear_suite();
}

outcome enter_rel_power(machine& m) {
  if (!m.is_controller()) return enter_read_power(m);
  let_go(m);  // it has no host
  return outcome::next();
}

outcome take_rel_power(machine& m, const node_event& event) {
  const call_done* const done = m.result_of(event);
  if (done == nullptr) return outcome::wait();
  outcome result = take_off(m, *done, outcome::next(), outcome::again(poll_interval));
  const journal::PowerState seen = m.node().power().observed();
  if (done->status.ok() && (seen == journal::POWER_ON || seen == journal::POWERING_ON)) {
    return outcome::fail(fault::POWER_OFF_NOT_CONFIRMED,
                         "a BMC is handed back only while its host is read off: shut the rack down first",
                         "off", seen == journal::POWER_ON ? "on" : "going on");
  }
  if (result.kind == outcome_kind::next) let_go(m);
  return result;
}

// The password may be the factory's already: never changed, or set back right before a crash.
outcome enter_rel_try_factory(machine& m) {
  const bool surely_ours =
      m.node().access().factory_password_changed() && !m.intent_is_open("set_password", "factory_back");
  return surely_ours ? outcome::next() : refuse_when_locked_out(m, call_op::login_factory);
}

outcome take_rel_try_factory(machine& m, const node_event& event) {
  const call_done* const done = m.result_of(event);
  if (done == nullptr) return outcome::wait();
  if (const auto problem = take_login(m, *done)) {
    if (core::fault_of(done->status) != fault::CREDENTIAL_FACTORY_REFUSED) return *problem;
    m.run().session_open = false;
    return outcome::next();
  }
  note_factory_login(m);
  return outcome::jump(phase_id::rel_delete_interlock);
}

outcome enter_rel_login(machine& m) {
  if (m.run().session_open) return outcome::next();
  return refuse_when_locked_out(m, best_login(m));
}

outcome take_rel_login(machine& m, const node_event& event) {
  const call_done* const done = m.result_of(event);
  if (done == nullptr) return outcome::wait();
  if (const auto problem = take_login(m, *done)) return *problem;
  m.run().own_session = best_login(m) == call_op::login_own;
  return outcome::next();
}

outcome enter_rel_restore(machine& m) {
  m.open_intent("set_password", "factory_back");
  return m.ask(call_op::restore_factory_password);
}

outcome take_rel_restore(machine& m, const node_event& event) {
  const call_done* const done = m.result_of(event);
  if (done == nullptr) return outcome::wait();
  if (done->status.ok()) return outcome::next();
  if (!is_transient(done->status)) return m.on_error(done->status);
  m.run().last_error = done->status;
  return outcome::jump(phase_id::rel_try_factory);  // unsure whether it took: a login tells
}

outcome enter_rel_prove(machine& m) {
  return refuse_when_locked_out(m, call_op::login_factory);
}

outcome take_rel_prove(machine& m, const node_event& event) {
  const call_done* const done = m.result_of(event);
  if (done == nullptr) return outcome::wait();
  if (const auto problem = take_login(m, *done)) return *problem;
  note_factory_login(m);
  return outcome::next();
}

outcome enter_rel_delete_interlock(machine& m) {
  m.open_intent("delete_account", "interlock");
  m.change().mutable_access()->set_interlock_account_created(false);
  m.close_intent("create_account", "interlock");
  return m.ask(call_op::delete_interlock_account);
}

outcome enter_rel_delete_own(machine& m) {
  m.open_intent("delete_account", "own");
  m.change().mutable_access()->set_account_created(false);
  m.close_intent("create_account", "own");
  return m.ask(call_op::delete_own_account);
}

outcome take_rel_delete(machine& m, const node_event& event) {
  const call_done* const done = m.result_of(event);
  if (done == nullptr) return outcome::wait();
  return done->status.ok() ? outcome::next() : m.on_error(done->status);
}

outcome take_rel_read_back(machine& m, const node_event& event) {
  const call_done* const done = m.result_of(event);
  if (done == nullptr) return outcome::wait();
  if (!done->status.ok()) return m.on_error(done->status);
  for (const auto& account : *facts_of<std::vector<devices::account_facts>>(*done)) {
    if (account.name != own_account(m.rack_uid()) && account.name != interlock_account(m.rack_uid()))
      continue;
    return outcome::fail(fault::BMC_BAD_DATA, "the BMC still lists an account that it said was deleted",
                         "no account of ours", account.name);
  }
  m.close_intent("delete_account", "interlock");
  m.close_intent("delete_account", "own");
  m.tell("accounts_deleted", "our account and the interlock's are no longer listed");
  return outcome::next();
}

// What is kept: the vault's passwords, the counted logins, and what the interlock's record needs to stay as
// it is, since a record without this tray is not ours to hand over.
outcome enter_rel_finish(machine& m) {
  journal::Node& changed = m.change();
  const bool in_record = changed.access().interlock_armed();
  if (in_record) (*changed.mutable_facts())["interlock_pin"] = changed.identity().pin_sha256();
  changed.mutable_identity()->clear_pin_sha256();
  changed.mutable_access()->clear_account();
  changed.mutable_access()->clear_session_uri();
  changed.mutable_access()->set_interlock_armed(in_record);
  changed.mutable_facts()->erase("old_session_uri");
  changed.clear_detectors();
  changed.set_inventory_digest("");
  changed.set_step(journal::DECLARED);
  changed.set_step_entered_wall_ns(m.now().wall_ns);
  changed.set_health(journal::HEALTH_UNKNOWN);
  changed.set_hold(journal::RELEASED);
  changed.set_waits_for(
      "an operator: the BMC is handed back; busbar node retry, or a bring-up, takes it over again");
  m.run().session_open = false;
  m.run().own_session = false;
  m.tell("bmc_released", released_words(changed), "warning");
  return outcome::done();
}

constexpr std::array release{
    phase{phase_id::bind_driver, "", fault::BMC_UNREACHABLE, enter_remember_session, nullptr},
    phase{phase_id::login_best, "the BMC's answer to the login", fault::BMC_UNREACHABLE, enter_login_best,
          take_login_best},
    phase{phase_id::login_fallback, "the BMC's answer to the factory login",
          fault::CREDENTIAL_FACTORY_REFUSED, enter_login_fallback, take_login_fallback},
    phase{phase_id::drop_old_session, "the end of its session from before the restart", fault::BMC_SLOW,
          enter_drop_old_session, take_drop_old_session},
    phase{phase_id::rel_power, "the host to be read off", fault::POWER_OFF_NOT_CONFIRMED, enter_rel_power,
          take_rel_power},
    phase{phase_id::rel_try_factory, "the BMC's answer to the factory login", fault::BMC_SLOW,
          enter_rel_try_factory, take_rel_try_factory},
    phase{phase_id::rel_login, "a login that may change passwords", fault::BMC_SLOW, enter_rel_login,
          take_rel_login},
    phase{phase_id::rel_restore, "the factory password to be set back", fault::BMC_SLOW, enter_rel_restore,
          take_rel_restore},
    phase{phase_id::drop_own_session, "its own session's end", fault::BMC_SLOW, enter_drop_session,
          take_drop_session},
    phase{phase_id::rel_prove, "proof of the factory password", fault::CREDENTIAL_FACTORY_REFUSED,
          enter_rel_prove, take_rel_prove},
    phase{phase_id::rel_delete_interlock, "the end of the interlock's account", fault::BMC_SLOW,
          enter_rel_delete_interlock, take_rel_delete},
    phase{phase_id::rel_delete_own, "the end of its own account", fault::BMC_SLOW, enter_rel_delete_own,
          take_rel_delete},
    phase{phase_id::rel_read_back, "the account list", fault::BMC_SLOW, enter_list_accounts,
          take_rel_read_back},
    phase{phase_id::drop_factory_session, "the factory session's end", fault::BMC_SLOW, enter_drop_session,
          take_drop_session},
    phase{phase_id::rel_finish, "", fault::STORE_READ_ONLY, enter_rel_finish, nullptr},
};

}  // namespace

std::string released_words(const journal::Node& node) {
  std::string words =
      fmt::format("the BMC of {} is handed back with the manifest's factory login", node.name());
  if (node.access().interlock_armed()) {
    words +=
        "; the interlock's record still names it, so its gate stays shut and the interlock goes on trying "
        "its "
        "account: only a person can take it out of the record (operator.sock, Widen)";
  }
  return words;
}

std::span<const phase> release_phases() {
  return release;
}

}  // namespace busbar::node
