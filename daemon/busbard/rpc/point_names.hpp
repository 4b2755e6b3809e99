// Names of readings at the edge. Inside: r01/c07/gpu0/power. Outside: racks/r01/nodes/c07/gpu0/power.
#pragma once

#include <string>
#include <string_view>

namespace busbar::rpc {

std::string public_point(std::string_view name);
// Either spelling, whole or the beginning of one: racks/r01/nodes/c0 -> r01/c0.
std::string short_point(std::string_view name);

}  // namespace busbar::rpc
