// Which leak detectors a member needs, and whether all of them are known to be dry. Unknown is a third
// answer: it blocks power-on, and is neither dry nor a leak.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "actors/devices/bmc.hpp"
#include "actors/node/identity_logic.hpp"

namespace busbar::node {

std::vector<std::string> needed_detectors(const journal::Sku& sku, journal::MemberKind kind);

// One row per needed detector, in the SKU's order; a needed one that the device did not show is UNKNOWN.
std::vector<journal::Detector> match_detectors(const std::vector<std::string>& needed,
                                               const std::vector<devices::detector_facts>& seen);

// Nothing when every row is DRY. A leak is named before an unknown.
std::optional<difference> not_known_dry(const std::vector<journal::Detector>& rows);

}  // namespace busbar::node
