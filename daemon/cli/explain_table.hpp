// What `busbar explain` says of states: data, one row a step. Faults come from actors/core/faults.def.
#pragma once

#include <span>
#include <string_view>

namespace busbar::cli {

struct step_text {
  std::string_view subject;   // compute tray, switch tray, power shelf, rack, any tray
  std::string_view step;      // the word of states and files
  std::string_view seen;      // what must be seen before it counts as reached
  std::string_view deadline;  // key under deadlines in the baseline; empty: none of its own
  std::string_view leads_to;
  std::string_view faults;     // that end it, comma separated; NAME_* stands for a family
  std::string_view operators;  // what a person can do
};

std::span<const step_text> step_texts();

}  // namespace busbar::cli
