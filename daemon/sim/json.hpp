// The only place where the simulator includes nlohmann-json.
#pragma once

#include <nlohmann/json.hpp>

namespace busbar::sim {

using json = nlohmann::json;

}  // namespace busbar::sim
