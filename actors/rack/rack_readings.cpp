#include "actors/rack/rack_readings.hpp"

#include <array>
#include <optional>

namespace busbar::rack {
namespace {

constexpr std::int64_t patience_ns = 4'000'000'000;  // the CDU is read each second

}  // namespace

void put_cooling(core::reading_board& board, const std::string& rack,
                 const absl::StatusOr<devices::cooling_facts>& facts, std::int64_t now_wall_ns) {
  const auto row = [&rack, now_wall_ns](const char* name, std::optional<double> value, const char* unit) {
    const auto quality = value ? core::reading_quality::good : core::reading_quality::unknown;
    return core::named_reading{rack + "/" + name, {value, unit, quality, "cdu", 0, now_wall_ns}};
  };
  if (facts.ok()) {
    const std::array batch = {row("flow", facts->flow_lpm, "L/min"), row("dp", facts->dp_kpa, "kPa"),
                              row("supply_temperature", facts->supply_c, "Cel"),
                              row("return_temperature", facts->return_c, "Cel")};
    return board.put(batch);
  }
  for (const char* name : {"/flow", "/dp", "/supply_temperature", "/return_temperature"}) {
    board.mark_stale(rack + name, now_wall_ns - patience_ns);
  }
}

plant::demand_inputs demand_inputs_of(const journal::Rack& rack, const core::reading_board* board) {
  plant::demand_inputs inputs;
  inputs.rack = rack.name();
  inputs.flow_min_lpm = rack.spec().manifest().cooling().flow_min_lpm();
  if (board == nullptr) return inputs;
  const auto read = [&rack, board](const std::string& name) -> std::optional<double> {
    const auto found = board->find(rack.name() + "/" + name);
    if (!found.has_value() || found->quality != core::reading_quality::good) return std::nullopt;
    return found->value;
  };
  inputs.power_w = read("power");
  inputs.flow_lpm = read("flow");
  inputs.supply_c = read("supply_temperature");
  inputs.return_c = read("return_temperature");
  for (const journal::ValveSpec& valve : rack.spec().manifest().valves()) {
    if (valve.kind() == "control") inputs.valve_percent = read("valves/" + valve.name() + "/position");
  }
  return inputs;
}

}  // namespace busbar::rack
