// What happens to a rack, as functions of a seed. Each gives nothing when every invariant held and the end
// was as it has to be.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tests/sim/rack_world.hpp"

namespace busbar::test_support {

using rack_story = std::function<std::optional<std::string>(rack_world&)>;

// Makes the world, applies the manifest, tells the story, checks what must hold at rest, and ends the daemon.
std::optional<std::string> in_a_rack(simulation& sim, const rack_story& story,
                                     const world_options& options = {});

// Bring-up and the end it must have: SUCCEEDED and every gate passed; likewise the way down.
std::optional<std::string> bring_up(rack_world& world);
std::optional<std::string> shut_down(rack_world& world);

// Bring-up that must end FAILED with this fault on this member ("r01": on the rack itself).
std::optional<std::string> bring_up_fails(rack_world& world, const std::string& member,
                                          const std::string& fault);

// One to three crashes at seeded steps of a bring-up that must succeed all the same.
std::optional<std::string> bring_up_through_crashes(rack_world& world);

// A fault that may strike a rack, as data: what it is and whether a rack can still reach production with it.
struct rack_trouble {
  const char* name;
  void (*strike)(rack_world&, const std::string& tray);
  bool survivable;  // production (of all, or of what is left) may still be reached; false: it must not be
};
const std::vector<rack_trouble>& troubles();

// The seed decides: troubles, crashes, both or neither; then down again, or not.
std::optional<std::string> any_day(rack_world& world);

}  // namespace busbar::test_support
