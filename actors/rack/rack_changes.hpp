// What a manifest may not take away from under the rack: a member that is in use. Pure.
#pragma once

#include <absl/status/status.h>

#include "actors/rack/rack_rules.hpp"

namespace busbar::rack {

// The row still means the same device: its BMC by MAC, else by its fixed address.
bool is_same_member(const journal::Member& before, const journal::Member& after);

// OK, or MEMBER_IN_USE that names every member which `next` drops or re-keys (BMC MAC, kind, fixed address,
// its slot given to another) although it is in production, drives power, or was taken over and is not read
// off. Unknown power of a member that was taken over counts as on; of one that was never logged in to,
// nothing was ever turned on here and its row may be corrected.
absl::Status refuse_member_changes(const journal::RackSpec& next, const member_map& members);

}  // namespace busbar::rack
