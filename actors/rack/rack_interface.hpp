// The rack's actor: owner of all commands on its targets, parent of its members.
#pragma once

#include <caf/fwd.hpp>
#include <caf/replies_to.hpp>
#include <caf/typed_actor.hpp>

#include <cstdint>
#include <memory>
#include <string>

#include "actors/core/messages.hpp"
#include "actors/core/operations_interface.hpp"
#include "actors/rack/rack_equipment.hpp"
#include "actors/rack/rack_logic.hpp"

namespace busbar::discovery {
struct sightings;
}

namespace busbar::rack {

using rack_event_ptr = std::shared_ptr<const rack_event>;
using agent_event_ptr = std::shared_ptr<const validation::agent_event>;
using sightings_ptr = std::shared_ptr<const discovery::sightings>;

using arming_answer_ptr = std::shared_ptr<const absl::Status>;

using rack_actor = core::owner_actor::extend<
    // From its members, the CDU reader, the interlock and the agent gate.
    caf::reacts_to<rack_event_ptr>,
    // From the agent gate: for the rack's own run, or handed on to the member.
    caf::reacts_to<agent_event_ptr>,
    // From members, valves and PDUs: drivers, sessions, positions.
    caf::reacts_to<equipment_ptr>,
    // From DISCOVERY: what answers where.
    caf::reacts_to<sightings_ptr>,
    // From a member: arm the interlock for it (its account exists); the answer reaches it as an event.
    caf::reacts_to<core::arm_atom, std::string>,
    // INTERNAL: what the interlock answered to the record under way.
    caf::reacts_to<core::arm_atom, arming_answer_ptr>,
    caf::replies_to<core::status_atom>::with<core::actor_status>,
    // Ordered stop: members end, then the rack.
    caf::reacts_to<core::stop_atom>,
    // INTERNAL: the one timer, with its generation; the CDU poll.
    caf::reacts_to<core::tick_atom, std::uint64_t>, caf::reacts_to<core::poll_atom>>;

inline rack_event_ptr make_event(rack_event event) {
  return std::make_shared<const rack_event>(std::move(event));
}

inline equipment_ptr make_news(equipment_news news) {
  return std::make_shared<const equipment_news>(std::move(news));
}

}  // namespace busbar::rack
