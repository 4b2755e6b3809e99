#include <fmt/format.h>

#include <algorithm>

#include "actors/core/reading_board.hpp"
#include "actors/core/snapshot_hub.hpp"
#include "actors/shelf/cap_keeping.hpp"

namespace busbar::shelf {
namespace {

std::optional<core::reading> good(const core::reading_board& board, const std::string& point) {
  auto found = board.find(point);
  if (!found || found->quality != core::reading_quality::good || !found->value) return std::nullopt;
  return found;
}

tray_sight look_at(const core::reading_board& board, const std::string& tray, int gpus) {
  tray_sight seen;
  seen.name = tray;
  double highest_w = 0;
  double sum_w = 0;
  bool all_limits = gpus > 0;
  bool all_powers = gpus > 0;
  seen.limit_wall_ns = INT64_MAX;
  for (int gpu = 0; gpu < gpus; ++gpu) {
    const auto limit = good(board, fmt::format("{}/gpu{}/power_limit", tray, gpu));
    const auto power = good(board, fmt::format("{}/gpu{}/power", tray, gpu));
    all_limits = all_limits && limit.has_value();
    all_powers = all_powers && power.has_value();
    if (limit) highest_w = std::max(highest_w, *limit->value);
    if (limit) seen.limit_wall_ns = std::min(seen.limit_wall_ns, limit->received_wall_ns);
    if (power) sum_w += *power->value;
  }
  if (all_limits) seen.limit_w = highest_w;
  if (!all_limits) seen.limit_wall_ns = 0;
  if (all_powers) seen.gpus_w = sum_w;
  return seen;
}

}  // namespace

// A tray of unknown power counts as on: what it may draw has to be held.
cap_sight sight_of(const cap_setting& setting, const core::snapshot& state,
                   const core::reading_board& board) {
  cap_sight seen;
  const std::string prefix = setting.rack + "/";
  for (auto row = state.nodes->lower_bound(prefix);
       row != state.nodes->end() && row->first.starts_with(prefix); ++row) {
    const journal::Node& node = *row->second.object;
    if (node.retired()) continue;
    const journal::PowerState power = node.power().observed();
    if (node.spec().kind() == journal::COMPUTE_TRAY) {
      const bool on = power == journal::POWER_ON || power == journal::POWERING_ON ||
                      power == journal::POWERING_OFF || node.power().wanted() == journal::POWER_ON;
      if (on) seen.trays.push_back(look_at(board, row->first, setting.gpus_per_tray));
    } else if (node.spec().kind() == journal::POWER_SHELF) {
      const auto output = good(board, row->first + "/output_power");
      seen.shelves.push_back({row->first, power == journal::POWER_ON, output ? output->value : std::nullopt});
    }
  }
  return seen;
}

}  // namespace busbar::shelf
