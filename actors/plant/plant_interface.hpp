// The plant's actor: owner of the commands on its CDUs, the only one that writes to them.
#pragma once

#include <caf/fwd.hpp>
#include <caf/replies_to.hpp>
#include <caf/typed_actor.hpp>

#include <cstdint>
#include <memory>
#include <string>

#include "actors/core/messages.hpp"
#include "actors/core/operations_interface.hpp"
#include "actors/plant/plant_logic.hpp"
#include "actors/plant/plant_port.hpp"

namespace busbar::plant {

struct plant_event {
  std::string cdu;
  cdu_event what;
};
using plant_event_ptr = std::shared_ptr<const plant_event>;

using plant_actor = core::owner_actor::extend<
    // From the CDUs' drivers.
    caf::reacts_to<plant_event_ptr>,
    // From a rack, over the wire: what it needs; answered at once by what is known.
    caf::reacts_to<core::observe_atom, demand_ptr, demand_answer_ptr>,
    // ok == false while its commits are refused.
    caf::replies_to<core::status_atom>::with<core::actor_status>,
    // Ordered stop. The CDUs stay at their set-points.
    caf::reacts_to<core::stop_atom>,
    // INTERNAL: the one timer, with its generation; read the CDUs.
    caf::reacts_to<core::tick_atom, std::uint64_t>, caf::reacts_to<core::poll_atom>>;

}  // namespace busbar::plant
