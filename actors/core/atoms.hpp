// Every atom of Busbar, in one place. An atom tags a message; it is never data. At most 10 lower-case letters, each text once
// (CAF 0.17 squeezes the text into 64 bits). To add one: a line here.
#pragma once

#include <caf/atom.hpp>
#include <caf/type_id.hpp>

// Journal
CAF_ADD_ATOM(busbar, busbar::core, commit_atom, "commit")      // write this batch, answer after the sync
CAF_ADD_ATOM(busbar, busbar::core, gather_atom, "gather")      // INTERNAL: all that the mailbox held has been gathered
CAF_ADD_ATOM(busbar, busbar::core, probe_atom, "probe")        // INTERNAL: see whether a store that refused can be written again
CAF_ADD_ATOM(busbar, busbar::core, trim_atom, "trim")          // INTERNAL: one bounded piece of retention
CAF_ADD_ATOM(busbar, busbar::core, lookup_atom, "lookup")      // what was this request id answered with
CAF_ADD_ATOM(busbar, busbar::core, status_atom, "status")      // every actor: am I well

// Common to all rooms
CAF_ADD_ATOM(busbar, busbar::core, observe_atom, "observe")    // a device or agent said something
CAF_ADD_ATOM(busbar, busbar::core, command_atom, "command")    // a mutation from the edge
CAF_ADD_ATOM(busbar, busbar::core, cancel_atom, "cancel")      // stop this operation at the next safe point
CAF_ADD_ATOM(busbar, busbar::core, tick_atom, "tick")          // INTERNAL: the one timer of an actor, with its generation
CAF_ADD_ATOM(busbar, busbar::core, stop_atom, "stop")          // ordered stop

// Operations
CAF_ADD_ATOM(busbar, busbar::core, submit_atom, "submit")      // owner: begin this command as that operation
CAF_ADD_ATOM(busbar, busbar::core, resume_atom, "resume")      // owner: this operation was running when the daemon ended
CAF_ADD_ATOM(busbar, busbar::core, bind_atom, "bind")          // operations: this is the owner now

// Rack and members
CAF_ADD_ATOM(busbar, busbar::core, arm_atom, "arm")            // member to rack: arm the interlock for me
CAF_ADD_ATOM(busbar, busbar::core, poll_atom, "poll")          // INTERNAL: read the CDU
CAF_ADD_ATOM(busbar, busbar::core, scan_atom, "scan")          // INTERNAL: look for announcements
