// The caps of one rack, as the rack sees them.
#pragma once

#include <caf/fwd.hpp>
#include <caf/replies_to.hpp>
#include <caf/typed_actor.hpp>

#include <cstdint>
#include <memory>
#include <string>

#include "actors/core/messages.hpp"
#include "actors/core/operations_interface.hpp"
#include "actors/devices/bmc.hpp"
#include "actors/shelf/cap_keeping.hpp"

namespace busbar::shelf {

// A tray's driver, as its node bound it last; null: there is none any more.
struct bound_driver {
  std::string member;
  std::shared_ptr<devices::bmc> driver;
};
using bound_driver_ptr = std::shared_ptr<const bound_driver>;

// Owner of the command power_cap, on the rack and on its trays. The rack hands it on.
using cap_actor = core::owner_actor::extend<caf::reacts_to<bound_driver_ptr>,
                                            // ok == false while its commits are refused.
                                            caf::replies_to<core::status_atom>::with<core::actor_status>,
                                            // INTERNAL: the one timer, with its generation.
                                            caf::reacts_to<core::tick_atom, std::uint64_t>>;

}  // namespace busbar::shelf
