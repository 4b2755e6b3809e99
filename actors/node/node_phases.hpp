// The phases by room: each list is one arrow's work, in order. Defined in *_phases.cpp, joined into arrows by
// node_table.cpp.
#pragma once

#include <span>

#include "actors/node/node_table.hpp"

namespace busbar::node {

std::span<const phase> discover_phases();
std::span<const phase> identify_phases();
std::span<const phase> credential_phases();
std::span<const phase> stage_compute_phases();
std::span<const phase> stage_switch_phases();
std::span<const phase> stage_shelf_phases();
std::span<const phase> inspect_phases();
std::span<const phase> firmware_phases();
std::span<const phase> configure_phases();
std::span<const phase> validate_phases();
std::span<const phase> pass_phases();

outcome enter_recheck_inventory(machine& m);
outcome take_recheck_inventory(machine& m, const node_event& event);

}  // namespace busbar::node
