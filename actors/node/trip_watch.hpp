// What the interlock does to a member by a trip: what was going on ends, and its power is what the interlock
// or a look reads.
#pragma once

#include <optional>

#include "actors/node/node_machine.hpp"

namespace busbar::node {

void show_wet(machine& m, const leak_latch& latch);
// The failure to be told; nothing where nothing of it could be on by our word, or it was told before.
std::optional<outcome> take_trip(machine& m, const trip_held& trip);
// The interlock has read it off; its BMC may be without power by now.
void take_read_off(machine& m, const interlock_read_off& read);

}  // namespace busbar::node
