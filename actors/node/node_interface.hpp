// One tray's or shelf's actor, as the rack, the agent gate and its own device calls see it.
#pragma once

#include <caf/fwd.hpp>
#include <caf/replies_to.hpp>
#include <caf/typed_actor.hpp>

#include <cstdint>
#include <memory>

#include "actors/core/messages.hpp"
#include "actors/node/node_logic.hpp"

namespace busbar::node {

using node_event_ptr = std::shared_ptr<const node_event>;

using node_actor = caf::typed_actor<
    // Something happened: from the rack, a device's answer, the agent gate. Handled in order of arrival.
    caf::reacts_to<node_event_ptr>,
    // ok == false while its commits are refused.
    caf::replies_to<core::status_atom>::with<core::actor_status>,
    // INTERNAL: the one timer, with its generation.
    caf::reacts_to<core::tick_atom, std::uint64_t>>;

inline node_event_ptr make_event(node_event event) {
  return std::make_shared<const node_event>(std::move(event));
}

}  // namespace busbar::node
