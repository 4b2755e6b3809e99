// Pieces of power phases that the shared restart uses too.
#pragma once

#include <optional>

#include "actors/node/node_machine.hpp"

namespace busbar::node {

outcome enter_read_power(machine& m);
outcome enter_detectors(machine& m);
outcome take_detectors(machine& m, const node_event& event);
outcome ask_permit(machine& m, permit_kind kind);
outcome take_permit(machine& m, const node_event& event);
void give_permit_back(machine& m);
// Right before a host is turned on: detectors read dry a moment ago, then a permit given a moment ago, no
// latch. What to do first where that is not so; nothing when the act may go out now.
std::optional<outcome> first_look_again(machine& m, phase_id detectors, phase_id permit);
outcome ask_reset(machine& m, devices::reset_type type);
outcome act_was_withheld(machine& m, const absl::Status& why, devices::reset_type type);
outcome enter_boot_once(machine& m);
outcome take_boot_once(machine& m, const node_event& event);
outcome enter_read_boot_once(machine& m);
outcome take_read_boot_once(machine& m, const node_event& event);
outcome take_wait_on(machine& m, const node_event& event);
outcome enter_wait_agent(machine& m);
outcome take_wait_agent(machine& m, const node_event& event);
// Judges a power reading while the host should go off.
outcome take_off(machine& m, const call_done& done, outcome when_off, outcome when_not);

}  // namespace busbar::node
