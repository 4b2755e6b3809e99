// Who logs in, with what, and how often at most: shared by taking a BMC over, coming back to it after a
// restart, and handing it back.
#pragma once

#include <optional>
#include <string>

#include "actors/node/node_machine.hpp"

namespace busbar::node {

// Makes the driver anew, for the pinned certificate, with the wrong logins counted so far.
outcome enter_bind(machine& m);
void bind_driver(machine& m, const std::string& pin);
outcome enter_probe(machine& m);
outcome take_probe(machine& m, const node_event& event);

// The manifest's user for this kind of member.
std::string factory_user(const machine& m);
// Counts what the BMC refused, also a login that the driver tried by itself within another call.
void count_refused_login(machine& m, const call_done& done);
outcome refuse_when_locked_out(machine& m, call_op op);
// Success keeps the session's URI and forgets that user's refusals; else what to do about it.
std::optional<outcome> take_login(machine& m, const call_done& done);
// The factory login was let in: its password is the manifest's.
void note_factory_login(machine& m);

call_op best_login(machine& m);
outcome enter_login_best(machine& m);
outcome take_login_best(machine& m, const node_event& event);
outcome enter_login_fallback(machine& m);
outcome take_login_fallback(machine& m, const node_event& event);
outcome enter_login_own(machine& m);
outcome take_login_own(machine& m, const node_event& event);

outcome enter_identify(machine& m);
outcome take_identify(machine& m, const node_event& event);
outcome enter_list_accounts(machine& m);

outcome enter_drop_session(machine& m);
outcome take_drop_session(machine& m, const node_event& event);
outcome enter_drop_old_session(machine& m);
outcome take_drop_old_session(machine& m, const node_event& event);
outcome enter_remember_session(machine& m);

// The interlock learns the tray's pin and account; nothing to do where its record has them.
outcome enter_arm(machine& m);
outcome enter_rearm(machine& m);
outcome take_arm(machine& m, const node_event& event);

// Another certificate than the pinned one is accepted once within a blind window that was opened by us, if
// MAC and serial are the same: what to do about a call that met it, else nothing.
std::optional<outcome> certificate_in_own_window(machine& m, const absl::Status& status);
outcome enter_cert_bind(machine& m);
outcome enter_cert_login(machine& m);
outcome take_cert_login(machine& m, const node_event& event);
outcome take_cert_identify(machine& m, const node_event& event);

}  // namespace busbar::node
