// From what a device calls a metric to what Busbar calls the point, with its unit. One table for all kinds of
// devices; what it does not know keeps a name made of its URI. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace busbar::devices::redfish {

enum class value_form { number, link };  // link: LinkUp is 1, a word for a link that is not up is 0

struct point_name {
  std::string name;  // "gpu0/power"; without the member
  std::string unit;  // UCUM; empty: not known
  value_form form = value_form::number;
};

// property: "/redfish/v1/Chassis/HGX_GPU_0/Sensors/HGX_GPU_0_Power_0#/Reading". Empty for what names nothing.
std::optional<point_name> name_point(std::string_view property);

// 1 for a link that is up, 0 for one that is said not to be; nullopt for any other word.
std::optional<double> link_value(std::string_view word);

}  // namespace busbar::devices::redfish
