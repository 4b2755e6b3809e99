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

}  // namespace busbar::rack
