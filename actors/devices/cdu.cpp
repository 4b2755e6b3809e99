#include "actors/devices/cdu.hpp"

#include <algorithm>

namespace busbar::devices {
namespace {

using field = std::optional<double> connector_facts::*;

template <class Choose>
std::optional<double> extreme(const std::vector<connector_facts>& all, field of, const Choose& choose) {
  std::optional<double> found;
  for (const connector_facts& one : all) {
    if (!(one.*of).has_value()) continue;
    found = found.has_value() ? choose(*found, *(one.*of)) : *(one.*of);
  }
  return found;
}

// What is not wholly known has no sum.
std::optional<double> sum_of_flows(const std::vector<connector_facts>& all) {
  double sum = 0;
  for (const connector_facts& one : all) {
    if (!one.flow_lpm.has_value()) return std::nullopt;
    sum += *one.flow_lpm;
  }
  return all.empty() ? std::nullopt : std::optional(sum);
}

std::optional<double> mixed_return(const std::vector<connector_facts>& all) {
  double heat = 0, flow = 0;
  for (const connector_facts& one : all) {
    if (!one.flow_lpm.has_value() || !one.return_c.has_value()) return std::nullopt;
    heat += *one.flow_lpm * *one.return_c;
    flow += *one.flow_lpm;
  }
  return flow > 0 ? std::optional(heat / flow) : std::nullopt;
}

}  // namespace

void take_connectors(cdu_facts& facts) {
  const auto& all = facts.connectors;
  const auto larger = [](double a, double b) { return std::max(a, b); };
  const auto smaller = [](double a, double b) { return std::min(a, b); };
  if (!facts.flow_lpm) facts.flow_lpm = sum_of_flows(all);
  if (!facts.supply_c) facts.supply_c = extreme(all, &connector_facts::supply_c, larger);
  if (!facts.dp_kpa) facts.dp_kpa = extreme(all, &connector_facts::dp_kpa, smaller);
  if (!facts.return_c) facts.return_c = mixed_return(all);
}

std::string_view name_of(cdu_value what) {
  switch (what) {
    case cdu_value::supply_set_point:
      return "supply set-point";
    case cdu_value::dp_set_point:
      return "pressure set-point";
    case cdu_value::pump_duty:
      return "pump duty";
    case cdu_value::valve_duty:
      return "facility valve duty";
    case cdu_value::own_control:
      return "own control";
  }
  return "unknown";
}

}  // namespace busbar::devices
