// The hardware a device shows against the hardware its SKU names. Pure; the first difference is named with
// both values.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "actors/node/identity_logic.hpp"

namespace busbar::node {

// Nothing when the inventory equals the SKU. An incomplete inventory is never equal. Links up are not judged
// here: before the fabric is up they say nothing.
std::optional<difference> compare_inventory(const journal::Sku& sku, journal::MemberKind kind,
                                            const devices::inventory_facts& seen);

// A short stable text of kind, id, model and serial of every part, to notice a swap on retry.
// Every valve that the manifest puts behind the controller in this slot is shown by it; others may be.
std::optional<difference> compare_valves(const journal::Manifest& manifest, const std::string& slot,
                                         const devices::inventory_facts& seen);

std::string inventory_digest(const std::vector<journal::Part>& parts);

}  // namespace busbar::node
