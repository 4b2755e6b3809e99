#include "actors/plant/plant_points.hpp"

#include <fmt/format.h>

#include <array>
#include <string_view>
#include <utility>

namespace busbar::plant {
namespace {

core::named_reading point(std::string name, const std::optional<double>& value, std::string_view unit,
                          const std::string& source, std::int64_t wall_ns) {
  core::reading what;
  what.value = value;
  what.unit = std::string(unit);
  what.quality = value.has_value() ? core::reading_quality::good : core::reading_quality::unknown;
  what.source = source;
  what.received_wall_ns = wall_ns;
  return {std::move(name), std::move(what)};
}

struct row {
  std::string_view name;
  std::optional<double> devices::cdu_facts::*field;
  std::string_view unit;
};
constexpr std::array rows{
    row{"supply", &devices::cdu_facts::supply_c, "Cel"},
    row{"return", &devices::cdu_facts::return_c, "Cel"},
    row{"flow", &devices::cdu_facts::flow_lpm, "L/min"},
    row{"dp", &devices::cdu_facts::dp_kpa, "kPa"},
    row{"system_pressure", &devices::cdu_facts::system_kpa, "kPa"},
    row{"level", &devices::cdu_facts::level_percent, "%"},
    row{"facility_supply", &devices::cdu_facts::facility_supply_c, "Cel"},
    row{"facility_return", &devices::cdu_facts::facility_return_c, "Cel"},
    row{"facility_flow", &devices::cdu_facts::facility_flow_lpm, "L/min"},
    row{"facility_valve", &devices::cdu_facts::facility_valve_percent, "%"},
    row{"air", &devices::cdu_facts::air_c, "Cel"},
    row{"humidity", &devices::cdu_facts::humidity_percent, "%"},
};

}  // namespace

std::vector<core::named_reading> points_of(const std::string& cdu, const devices::cdu_facts& facts,
                                           std::int64_t wall_ns) {
  std::vector<core::named_reading> points;
  const auto add = [&points, &cdu, &facts, wall_ns](
                       const std::string& name, const std::optional<double>& value, std::string_view unit) {
    points.push_back(point(cdu + "/" + name, value, unit, facts.source, wall_ns));
  };
  for (const row& one : rows) add(std::string(one.name), facts.*one.field, one.unit);
  add("supply_set_point", facts.supply_set_point.value, "Cel");
  add("dp_set_point", facts.dp_set_point.value, "kPa");
  for (const devices::pump_facts& pump : facts.pumps)
    add(fmt::format("pump{}/speed", pump.id), pump.speed_percent, "%");
  for (const devices::connector_facts& one : facts.connectors) {
    add(one.id + "/flow", one.flow_lpm, "L/min");
    add(one.id + "/dp", one.dp_kpa, "kPa");
    add(one.id + "/supply", one.supply_c, "Cel");
    add(one.id + "/return", one.return_c, "Cel");
    add(one.id + "/heat", one.heat_kw, "kW");
  }
  return points;
}

std::vector<core::named_reading> demand_points(const cdu_state& state, core::instant now) {
  std::vector<core::named_reading> points;
  for (const journal::FedRack& rack : state.cdu.spec().racks()) {
    const auto found = state.run.needs.find(rack.rack());
    const bool live = found != state.run.needs.end() && found->second.until_ns > now.monotonic_ns;
    points.push_back(point(fmt::format("{}/{}/asked", state.cdu.name(), rack.rack()),
                           counted_flow_lpm(state, rack, now), "L/min",
                           live ? "its daemon" : "its rated flow: it is not heard", now.wall_ns));
  }
  return points;
}

}  // namespace busbar::plant
