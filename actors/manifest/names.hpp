// The two spellings of a name: AIP on the wire (racks/r01/nodes/c07), short for people and in the journal
// (r01/c07). Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace busbar::manifest {

// r01 -> racks/r01; r01/c07, r01/s01 -> .../nodes/...; r01/p01 -> .../shelves/p01; r01/m01 -> .../controllers/m01; r01/u01 ->
// .../pdus/u01; r01/supply -> .../valves/supply; r01/endpoints/A and r01/operations/N keep their collection. A name that is AIP already comes back as it is; nothing for a text
// that is no name.
std::optional<std::string> long_name(std::string_view name);
// The reverse; a text that is no AIP name comes back as it is.
std::string short_name(std::string_view name);

// cdu01, plant1: what stands under the site. long_name gives cdus/cdu01 and plants/plant1.
bool is_cdu_name(std::string_view name);
bool is_plant_name(std::string_view name);

// The journal's operation id ("operations/12") of an instance's daemon, on the wire and back.
std::string operation_name(std::string_view rack, std::string_view operation_id);
std::string operation_id(std::string_view name);

}  // namespace busbar::manifest
