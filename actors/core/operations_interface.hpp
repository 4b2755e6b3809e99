// OPERATIONS and what it asks of the owner of targets (the rack actor). One command becomes at most one Operation; it is
// durable before the owner hears of it, answered once a request id, and it always ends: by the owner, by a cancel that the owner
// carried out, or by its deadline.
#pragma once

#include <caf/fwd.hpp>
#include <caf/replies_to.hpp>
#include <caf/typed_actor.hpp>

#include <chrono>
#include <memory>
#include <string>

#include "actors/core/command_answer.hpp"
#include "actors/core/messages.hpp"
#include "actors/core/operations_report.hpp"

namespace busbar::core {

// How long the owner may take to accept or refuse a command. Accepting is a decision, not the work.
constexpr auto submit_timeout = std::chrono::seconds(10);

using operation_ptr = std::shared_ptr<const journal::Operation>;
using component_update_ptr = std::shared_ptr<const component_update>;
using operation_end_ptr = std::shared_ptr<const operation_end>;

using owner_actor = caf::typed_actor<
    // Begin this command as that operation; the id is empty for validate_only. The answer accepts (operation_id in it is
    // ignored); an error refuses, and nothing must have been begun.
    caf::replies_to<submit_atom, command_ptr, std::string>::with<command_result_ptr>,
    // This operation was RUNNING when the last owner or the daemon ended: carry it on, or end it.
    caf::reacts_to<resume_atom, operation_ptr>,
    // Stop this operation at the next safe point and end it as CANCELLED. An id it does not know: ignored.
    caf::reacts_to<cancel_atom, std::string>>;

using operations_actor = caf::typed_actor<
    // A mutation from the edge, sent with the free caf::anon_send.
    caf::reacts_to<command_atom, command_ptr, answer_ptr>,
    // The owner from now on (an owner_actor), first and after each restart of it: every RUNNING operation is resumed with it.
    caf::reacts_to<bind_atom, caf::strong_actor_ptr>,
    // From the owner.
    caf::reacts_to<component_update_ptr>,
    caf::reacts_to<operation_end_ptr>,
    // ok == false while the journal refuses the end of an operation.
    caf::replies_to<status_atom>::with<actor_status>,
    // No new commands, then quit. What is RUNNING stays so in the journal and is resumed at the next start.
    caf::reacts_to<stop_atom>,
    // INTERNAL.
    caf::reacts_to<tick_atom>>;

}  // namespace busbar::core
