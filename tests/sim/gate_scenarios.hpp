// The gate on host power shuts between a tray's permit and its power-on: by which cause, at which step of the
// explorer, and what must come of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tests/sim/scenarios.hpp"

namespace busbar::test_support {

struct closing {
  const char* name;
  void (*shut)(rack_world&, const std::string& tray);
  void (*open)(rack_world&, const std::string& tray);
  bool goes_on;  // by itself or by an operator's retry; false: a latch, which only a person resets
};
const std::vector<closing>& closings();

struct sweep_point {
  std::string tray = "r01/c02";
  std::uint64_t offset = 0;  // steps after the tray began to wait for its permit
  std::uint64_t window = 0;  // out: how many there were until its power-on was sent
  bool struck = false;       // out
};

// A bring-up in which the gate shuts at that step and opens again after some seconds. The invariants say that
// nothing is turned on past it; the end is production, or a failure with a name that a retry mends.
std::optional<std::string> shut_before_power_on(rack_world& world, const closing& how, sweep_point& at);

// With a limit that holds the switch tray and three of four compute trays: the fourth is refused by name.
world_options power_for_three();
std::optional<std::string> one_tray_over_the_budget(rack_world& world);

}  // namespace busbar::test_support
