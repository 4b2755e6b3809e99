// What the rack knows of its plant. Nothing of a bring-up depends on it: flow is proven by what the CDU is
// read to give.
#include <algorithm>

#include "actors/rack/rack_engine.hpp"

namespace busbar::rack {

namespace {

constexpr std::string_view plant_lost = "PLANT_LOST";
constexpr std::string_view cooling_short = "COOLING_SHORT";

}  // namespace

// A row while it is so, and none while it is not: the words are told once, since they carry values.
void engine::show_while(std::string_view type, const std::string& why) {
  if (!why.empty() && !is_shown(type)) set_condition(type, false, why);
  if (!why.empty() || !is_shown(type)) return;
  auto& rows = *change().mutable_conditions();
  for (int i = rows.size() - 1; i >= 0; --i) {
    if (rows[i].type() == type) rows.DeleteSubrange(i, 1);
  }
  tell("condition_cleared", std::string(type));
}

void engine::watch_plant() {
  plant::link_state& link = run().plant;
  const bool declared = !rack().spec().manifest().cooling().plant().empty();
  if (declared != link.declared) {
    link = plant::link_state{};
    link.declared = declared;
    link.since_ns = declared ? now_.monotonic_ns : core::never_ns;
  }
  show_while(plant_lost, plant::why_lost(link, now_));
  // While the plant is lost nothing is known of it: what it said last stays shown.
  if (!is_shown(plant_lost)) show_while(cooling_short, plant::why_short(link, now_));
}

}  // namespace busbar::rack
