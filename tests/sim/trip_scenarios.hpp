// Stories of a rack that its interlock trips.
#pragma once

#include "tests/sim/scenarios.hpp"

namespace busbar::test_support {

// Nothing, when the rack is dark, shown so by name, and its story was told once.
std::optional<std::string> is_down(rack_world& world);
// A bring-up is refused under the open trip; a person resets it; a bring-up goes to production.
std::optional<std::string> up_again(rack_world& world);
// Flow is lost in production.
std::optional<std::string> tripped_in_production(rack_world& world);

}  // namespace busbar::test_support
