// Seeded randomness without state shared between points: the same seed, point and tick give the same number
// in every run.
#pragma once

#include <cstdint>
#include <string_view>

namespace busbar::sim::physics {

std::uint64_t mix(std::uint64_t value);
std::uint64_t hash_of(std::string_view text, std::uint64_t seed);

// Uniform in (0, 1), never 0.
double uniform(std::uint64_t key);
// Standard normal.
double gaussian(std::uint64_t key);

// A stream of numbers, for what is drawn in order (service times).
class stream {
 public:
  explicit stream(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() { return mix(state_++); }
  double gaussian() { return physics::gaussian(next()); }

 private:
  std::uint64_t state_;
};

}  // namespace busbar::sim::physics
