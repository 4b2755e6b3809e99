// The data files of daemon/sim/data, compiled in by name (without .json). Empty: there is no such file.
#pragma once

#include <string_view>

namespace busbar::sim {

std::string_view embedded_data(std::string_view name);

}  // namespace busbar::sim
