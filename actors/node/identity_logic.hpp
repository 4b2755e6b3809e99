// Who a device is, compared with who the manifest says it is. Pure comparisons; both values are always named.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/core/errors.hpp"
#include "actors/devices/bmc.hpp"

namespace busbar::node {

struct difference {
  core::fault code;
  std::string message, expected, seen;
};

// Serials that vendors ship in place of one: "NA", "N/A", empty, runs of one character, 0123456789.
bool is_placeholder_serial(std::string_view serial);

// Identity is the BMC's MAC and the slot; the serial is a fact to compare when the manifest gives one.
std::optional<difference> compare_identity(const journal::Member& declared,
                                           const devices::identity_facts& seen);

// The same for what was read of a member before and its present row; nothing before it was read.
std::optional<difference> declared_difference(const journal::Node& node);

// The name of an account of another Busbar (busbar-<8 hex> that is not derived from rack_uid), if there is
// one.
std::optional<std::string> foreign_owner(const std::vector<devices::account_facts>& accounts,
                                         std::string_view rack_uid);

}  // namespace busbar::node
