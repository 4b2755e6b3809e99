// One rack PDU's actor, as the rack and its own device calls see it.
#pragma once

#include <caf/fwd.hpp>
#include <caf/replies_to.hpp>
#include <caf/typed_actor.hpp>

#include <cstdint>
#include <memory>

#include "actors/core/messages.hpp"
#include "actors/core/operations_interface.hpp"
#include "actors/pdu/pdu_keeping.hpp"

namespace busbar::pdu {

using keeping_event_ptr = std::shared_ptr<const keeping_event>;

// Owner of the commands on it: outlet_switch. The rack hands them on.
using pdu_actor = core::owner_actor::extend<
    // Its device's answers.
    caf::reacts_to<keeping_event_ptr>,
    // ok == false while its commits are refused.
    caf::replies_to<core::status_atom>::with<core::actor_status>,
    // INTERNAL: the one timer, with its generation.
    caf::reacts_to<core::tick_atom, std::uint64_t>>;

inline keeping_event_ptr make_event(keeping_event what) {
  return std::make_shared<const keeping_event>(std::move(what));
}

}  // namespace busbar::pdu
