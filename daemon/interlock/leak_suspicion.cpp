#include "daemon/interlock/leak_suspicion.hpp"

#include <cmath>
#include <numeric>

namespace busbar::interlock {
namespace {

constexpr std::int64_t window_ns = 30'000'000'000;
constexpr std::int64_t covered_ns = 25'000'000'000;  // of the window, before a slope counts
constexpr std::size_t samples_max = 512;
constexpr double pressure_fall = 0.01;  // of the mean, in a window
constexpr double level_fall = 0.1;      // percentage points, in a window
constexpr double calm = 0.3;            // share of a fall below which the suspicion ends

}  // namespace

void leak_suspicion::keep(series& of, std::int64_t now_ns, std::optional<double> value) {
  if (value.has_value() && std::isfinite(*value)) of.push_back({now_ns, *value});
  while (!of.empty() && (of.front().at_ns < now_ns - window_ns || of.size() > samples_max)) of.pop_front();
}

std::optional<double> leak_suspicion::fall(const series& of) {
  if (of.size() < 5 || of.back().at_ns - of.front().at_ns < covered_ns) return std::nullopt;
  const double count = static_cast<double>(of.size());
  double mean_t = 0;
  double mean_v = 0;
  for (const sample& each : of) {
    mean_t += static_cast<double>(each.at_ns - of.front().at_ns) / count;
    mean_v += each.value / count;
  }
  double above = 0;
  double below = 0;
  for (const sample& each : of) {
    const double t = static_cast<double>(each.at_ns - of.front().at_ns) - mean_t;
    above += t * (each.value - mean_v);
    below += t * t;
  }
  return below > 0 ? std::optional(-above / below * static_cast<double>(window_ns)) : std::nullopt;
}

void leak_suspicion::add(std::int64_t now_ns, std::optional<double> pressure_kpa,
                         std::optional<double> level_percent) {
  keep(pressure_, now_ns, pressure_kpa);
  keep(level_, now_ns, level_percent);
  const auto pressure = fall(pressure_);
  const auto level = fall(level_);
  if (!pressure || !level) return;
  const double mean = std::accumulate(pressure_.begin(), pressure_.end(), 0.0,
                                      [](double sum, const sample& each) { return sum + each.value; }) /
                      static_cast<double>(pressure_.size());
  const double pressure_share = *pressure / (pressure_fall * std::max(1.0, mean));
  const double level_share = *level / level_fall;
  if (pressure_share > 1 && level_share > 1) suspected_ = true;
  if (pressure_share < calm && level_share < calm) suspected_ = false;
}

}  // namespace busbar::interlock
