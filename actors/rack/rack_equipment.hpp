// What a rack has besides its members: valves and rack PDUs. What a spec makes of them, what it may not take
// away, and what their commands have to know of the rest of the rack. Pure.
#pragma once

#include <absl/status/status.h>

#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "actors/core/snapshot_hub.hpp"
#include "actors/pdu/pdu_keeping.hpp"
#include "actors/rack/rack_rules.hpp"
#include "actors/valve/valve_keeping.hpp"

namespace busbar::rack {

// ---- news, to the rack's shell
struct driver_bound {  // a member's driver was made: valves and caps share its session and budget
  std::string member;
  std::shared_ptr<devices::bmc> driver;
};
struct session_wanted {  // a member's device cannot be read: its owner opens a session
  std::string member;
};
struct valve_changed {
  std::shared_ptr<const journal::Valve> valve;
};
using equipment_news = std::variant<driver_bound, session_wanted, valve_changed>;
using equipment_ptr = std::shared_ptr<const equipment_news>;

// Puts and erases of what `spec` declares; what is declared as before keeps its state and is not written. The
// state's own copies decide: a valve whose command is open may not be changed (refuse_equipment_changes).
void apply_equipment(const journal::RackSpec& spec, const core::snapshot& state,
                     const std::function<std::string()>& new_uuid, core::journal_batch& batch);

// OK, or MEMBER_IN_USE that names each valve or PDU that `next` changes or drops while a command of it is
// open.
absl::Status refuse_equipment_changes(const journal::RackSpec& next, const core::snapshot& state);

// Trays of the rack whose hosts may draw power: not read off, told to turn on, or in `promised`.
std::vector<std::string> hosts_not_off(const std::string& rack, const core::snapshot& state);
// What would lose power that it needs if this outlet went off: nothing where another outlet that feeds the
// same is read on, or where the shelves that stay on can carry what is on.
std::vector<std::string> what_needs(const std::string& rack, const core::snapshot& state,
                                    const std::string& pdu, const std::string& outlet);
// heard may be null.
valve::surroundings surroundings_of(const std::string& rack, const core::snapshot& state,
                                    const interlock_view* heard);

// True for verbs that a valve, a PDU or the caps own.
bool is_equipment_verb(std::string_view verb);
// Whether this command takes liquid from the rack's hosts if it is carried out.
bool may_shut(const core::command& what, const journal::Valve& valve);

}  // namespace busbar::rack
