// The journal actor's contract.
#pragma once

#include <caf/fwd.hpp>
#include <caf/replies_to.hpp>
#include <caf/typed_actor.hpp>

#include <chrono>
#include <string>

#include "actors/core/messages.hpp"

namespace busbar::core {

// How long a writer waits for its commit before it must take the outcome as unknown.
constexpr auto commit_timeout = std::chrono::seconds(10);

using journal_actor = caf::typed_actor<
    // Writes the batch under one revision; answers after the sync, in the order of arrival. Errors: STORE_READ_ONLY (nothing
    // was written, try again later), REQUEST_ID_REUSED, INVALID_ARGUMENT (a batch that cannot be encoded; nothing was written).
    caf::replies_to<commit_atom, batch_ptr>::with<commit_ptr>,
    // The operation a request id was answered with, "" if the id is new. REQUEST_ID_REUSED: known with another body digest.
    caf::replies_to<lookup_atom, std::string, std::string>::with<std::string>,
    // ok == false while the store refuses writes.
    caf::replies_to<status_atom>::with<actor_status>,
    // INTERNAL: sent to itself.
    caf::reacts_to<gather_atom>,
    caf::reacts_to<probe_atom>,
    caf::reacts_to<trim_atom>>;

}  // namespace busbar::core
