#include "daemon/sim/physics/noise.hpp"

#include <cmath>
#include <numbers>

namespace busbar::sim::physics {

std::uint64_t mix(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15ULL;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31);
}

std::uint64_t hash_of(std::string_view text, std::uint64_t seed) {
  std::uint64_t hash = mix(seed);
  for (const char letter : text) {
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3ULL;
  }
  return mix(hash);
}

double uniform(std::uint64_t key) {
  return (static_cast<double>(mix(key) >> 11) + 0.5) * 0x1.0p-53;
}

double gaussian(std::uint64_t key) {
  const double radius = std::sqrt(-2.0 * std::log(uniform(key)));
  return radius * std::cos(2.0 * std::numbers::pi * uniform(key ^ 0x5851f42d4c957f2dULL));
}

}  // namespace busbar::sim::physics
