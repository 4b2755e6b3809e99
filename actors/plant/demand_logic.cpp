#include "actors/plant/demand_logic.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "actors/plant/rack_flow_logic.hpp"

namespace busbar::plant {
namespace {

constexpr double least_flow_margin = 1.15;  // the least flow is a limit, not an aim
constexpr double kw_per_lpm_k = 0.0669;     // PG25 between 30 and 45 C

}  // namespace

demand demand_for(const demand_inputs& inputs) {
  demand wanted;
  wanted.rack = inputs.rack;
  wanted.valve_percent = inputs.valve_percent;
  std::optional<double> kw;
  if (inputs.power_w) {
    kw = *inputs.power_w / 1000;
  } else if (inputs.flow_lpm && inputs.supply_c && inputs.return_c) {
    kw = std::max(0.0, kw_per_lpm_k * *inputs.flow_lpm * (*inputs.return_c - *inputs.supply_c));
  }
  wanted.heat_kw = kw;
  if (!kw || !inputs.supply_c) return wanted;
  wanted.flow_lpm =
      std::max(flow_map{}.lpm_per_kw(*inputs.supply_c) * *kw, least_flow_margin * inputs.flow_min_lpm);
  constexpr double open_percent = 95, short_share = 0.95;
  wanted.short_of_flow = inputs.valve_percent && *inputs.valve_percent >= open_percent && inputs.flow_lpm &&
                         *inputs.flow_lpm < short_share * *wanted.flow_lpm;
  return wanted;
}

void take_answer(link_state& state, const absl::StatusOr<plant_view>& answer, core::instant now) {
  if (!answer.ok()) {
    state.last_error = std::string(answer.status().message());
    return;
  }
  state.view = *answer;
  state.heard_ns = now.monotonic_ns;
  state.last_error.clear();
}

std::string why_lost(const link_state& state, core::instant now) {
  if (!state.declared) return {};
  const std::int64_t heard = state.view ? state.heard_ns : state.since_ns;
  if (heard == core::never_ns || now.monotonic_ns - heard <= plant_silent_ns) return {};
  const std::string who = state.view ? state.view->plant : "the plant";
  const std::string held =
      state.view && state.view->supply_set_point_c
          ? fmt::format("; {} was last at {:g} C", state.view->cdu, *state.view->supply_set_point_c)
          : std::string();
  return fmt::format("{} does not answer{}; the CDU goes on by its own controller ({})", who, held,
                     state.last_error.empty() ? "no answer" : state.last_error);
}

std::string why_short(const link_state& state, core::instant now) {
  if (!state.declared || !state.view || !why_lost(state, now).empty()) return {};
  return state.view->cooling_short ? state.view->short_why : std::string();
}

}  // namespace busbar::plant
