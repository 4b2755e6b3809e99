// A rack's side of the wire to its plant: what it asks for, and what it may say of the answers. Pure.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <optional>
#include <string>

#include "actors/core/clock.hpp"
#include "actors/plant/plant_port.hpp"

namespace busbar::plant {

struct demand_inputs {
  std::string rack;
  double flow_min_lpm = 0;                             // the manifest's: below it no host is powered on
  std::optional<double> power_w;                       // of the whole rack
  std::optional<double> flow_lpm, supply_c, return_c;  // at its connector
  std::optional<double> valve_percent;
};

// Litres a kW by the inlet's temperature, times measured power; where power is not measured, times the heat
// that the coolant carries away. Never less than the manifest's least flow with a margin. Neither known: no
// flow is said, and the plant takes the rated one.
demand demand_for(const demand_inputs& inputs);

// How the rack stands with its plant.
struct link_state {
  bool declared = false;
  std::optional<plant_view> view;  // the last answer
  std::int64_t heard_ns = 0;
  std::int64_t since_ns = core::never_ns;  // of this declaration: what was not heard by then is not heard
  std::string last_error;
};

constexpr std::int64_t plant_silent_ns = 5'000'000'000;  // five demands unanswered

void take_answer(link_state& state, const absl::StatusOr<plant_view>& answer, core::instant now);
// Why the plant counts as lost; empty: it does not, or there is none.
std::string why_lost(const link_state& state, core::instant now);
// Why cooling is short, as the plant last said it; empty: it is not, or it is not known.
std::string why_short(const link_state& state, core::instant now);

}  // namespace busbar::plant
