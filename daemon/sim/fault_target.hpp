// Whether a fault can act on what it is put on: a kind has its kinds of members, and of those its parts. One
// that fits nothing would be taken and do nothing.
#pragma once

#include <absl/status/status.h>

#include <string>
#include <vector>

#include "daemon/sim/faults.hpp"
#include "daemon/sim/site_data.hpp"

namespace busbar::sim {

// What the member has, by the words that faults name them with.
struct member_parts {
  std::vector<std::string> detectors;
  std::vector<std::string> components;  // of firmware
  std::vector<std::string> sensors;
  std::vector<std::string> outlets;
};

// Every part of such a member that the kind may name, in order; empty where it concerns the member as a
// whole.
std::vector<std::string> parts_that_fit(const fault_text& kind, const sku_data& sku, const member_parts& has);

// INVALID_ARGUMENT in words that show the forms which fit. The member exists.
absl::Status check_fault_target(const fault_text& kind, const fault_place& place, const sku_data& sku,
                                const member_parts& has);
// The same before the member is looked up: its kind.
absl::Status check_fault_member(const fault_text& kind, const fault_place& place);

}  // namespace busbar::sim
