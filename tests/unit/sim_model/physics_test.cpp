#include <gtest/gtest.h>

#include <cmath>

#include "daemon/sim/physics/noise.hpp"

namespace busbar::sim::physics {
namespace {

TEST(physics, noise_is_the_same_for_the_same_seed_and_has_unit_deviation) {
  double sum = 0;
  double squares = 0;
  for (std::uint64_t key = 0; key < 20000; ++key) {
    const double drawn = gaussian(key);
    sum += drawn;
    squares += drawn * drawn;
  }
  EXPECT_NEAR(sum / 20000, 0, 0.03);
  EXPECT_NEAR(squares / 20000, 1, 0.05);
  EXPECT_EQ(gaussian(42), gaussian(42));
  EXPECT_NE(hash_of("a", 1), hash_of("a", 2));
}

}  // namespace
}  // namespace busbar::sim::physics
