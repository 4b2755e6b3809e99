#include "daemon/sim/physics/load_pattern.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "daemon/sim/physics/noise.hpp"

namespace busbar::sim::physics {

namespace {
constexpr double idle_share = 0.10;

double drawn(std::uint64_t seed, double slot) {
  return uniform(seed ^
                 (static_cast<std::uint64_t>(static_cast<std::int64_t>(slot)) * 0x9e3779b97f4a7c15ULL));
}

// Smooth noise in 0..1: a seeded value at each multiple of the period, joined by half cosines.
double wander(double at_s, double period_s, std::uint64_t seed) {
  const double slot = std::floor(at_s / period_s);
  const double within = at_s / period_s - slot;
  const double blend = 0.5 - 0.5 * std::cos(std::numbers::pi * within);
  return drawn(seed, slot) * (1.0 - blend) + drawn(seed, slot + 1.0) * blend;
}

double training(double at_s, std::uint64_t seed) {
  if (std::fmod(at_s + 600.0 * drawn(seed, 1), 600.0) < 12.0) return 0.35;  // checkpoint
  const double step_s = 0.25 + 0.75 * drawn(seed, 2);
  const double depth = 0.3 + 0.3 * drawn(seed, 3);
  const double phase = at_s / step_s - std::floor(at_s / step_s);
  return phase < 0.2 ? 0.97 * (1.0 - depth) : 0.97;
}

double agentic(double at_s, std::uint64_t seed) {
  constexpr double slot_s = 60.0;
  const double slot = std::floor(at_s / slot_s);
  const double begins = 20.0 * drawn(seed, 3 * slot);
  const double lasts = 5.0 + 35.0 * drawn(seed, 3 * slot + 1);
  const double within = at_s - slot * slot_s;
  if (within < begins || within >= begins + lasts) return 0.15;
  return 0.6 + 0.4 * drawn(seed, 3 * slot + 2);
}

double day(double at_s, std::uint64_t seed) {
  constexpr double day_s = 86'400.0;
  const double wave = -std::cos(2.0 * std::numbers::pi * at_s / day_s);
  return std::clamp(0.60 + 0.30 * wave + 0.10 * (wander(at_s, 900.0, seed) - 0.5), 0.25, 0.95);
}
}  // namespace

std::string_view name_of(load_pattern pattern) {
  switch (pattern) {
    case load_pattern::idle:
      return "idle";
    case load_pattern::full:
      return "full";
    case load_pattern::training:
      return "training";
    case load_pattern::inference:
      return "inference";
    case load_pattern::agentic:
      return "agentic";
    case load_pattern::idle_full_idle:
      return "idle_full_idle";
    case load_pattern::day:
      return "day";
  }
  return "?";
}

const std::vector<load_pattern>& load_patterns() {
  static const std::vector<load_pattern> all = {
      load_pattern::idle,    load_pattern::full,           load_pattern::training, load_pattern::inference,
      load_pattern::agentic, load_pattern::idle_full_idle, load_pattern::day};
  return all;
}

std::optional<load_pattern> load_pattern_named(std::string_view name) {
  for (const load_pattern each : load_patterns()) {
    if (name_of(each) == name) return each;
  }
  return std::nullopt;
}

double load_share(load_pattern pattern, double at_s, std::uint64_t seed) {
  switch (pattern) {
    case load_pattern::idle:
      return idle_share;
    case load_pattern::full:
      return 1.0;
    case load_pattern::training:
      return training(at_s, seed);
    case load_pattern::inference:
      return 0.35 + 0.5 * wander(at_s, 45.0, seed);
    case load_pattern::agentic:
      return agentic(at_s, seed);
    case load_pattern::idle_full_idle: {
      const double within = std::fmod(at_s, 240.0);
      return within >= 60.0 && within < 180.0 ? 1.0 : idle_share;
    }
    case load_pattern::day:
      return day(at_s, seed);
  }
  return idle_share;
}

}  // namespace busbar::sim::physics
