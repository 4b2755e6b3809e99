// Names at the edge. Public names are AIP names (racks/r01/nodes/c07); the state and the actors use the short form (r01/c07).
#pragma once

#include <string>
#include <string_view>

namespace busbar::rpc {

// Any spelling that is accepted from outside, as the short form: racks/r01 -> r01, racks/r01/nodes/c07 -> r01/c07,
// racks/r01/shelves/p01 -> r01/p01, racks/r01/endpoints/A -> r01/endpoints/A, racks/r01/operations/12 -> operations/12.
// What is no name at all comes back as it is: it will not be found.
std::string short_name(std::string_view name);

// The short form of the parent of a list: "" and "racks/-" are everything (empty), "racks/r01" is "r01".
std::string short_parent(std::string_view parent);

// True when object is scope itself or stands under it; an empty scope holds everything. Short forms.
bool is_within(std::string_view object, std::string_view scope);

// The public form of what the state calls object; instance names the rack that an operation belongs to.
std::string public_name(std::string_view object, std::string_view instance);

}  // namespace busbar::rpc
