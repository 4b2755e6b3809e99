// Calls beside the phases, of a member that is where it should be: is what is shown as on still on, is it
// watched by the interlock, which NVLinks are up. The rack says when.
#pragma once

#include <optional>

#include "actors/node/node_machine.hpp"

namespace busbar::node {

// What is known of it decides its health; a failure has decided already.
void judge_health(machine& m);

void want_look(machine& m, const look_at_power& wanted);
// Sends what waits, once a session is open. going_down: nothing is looked at that is being turned off.
void ask_beside(machine& m, bool going_down);
// The failure to be told when the member was to be on and is read off.
std::optional<outcome> take_look(machine& m, const call_done& done);
// The device could not be reached for a look: its power is unknown, which is no failure of its own. False
// where the session was opened for other work as well.
bool give_look_up(machine& m);
void take_sight(machine& m, const interlock_sight& sight);
void take_nvlink(machine& m, const call_done& done);

void take_up_again(machine& m);

}  // namespace busbar::node
