// How long to wait before the next try: doubles from `first` to `most`, and a random half of it is taken off
// so that the agents of a rack do not come back in one beat. Pure: the seed is given.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <random>

namespace busbar::agent_client {

class back_off {
 public:
  using duration = std::chrono::milliseconds;
  back_off(duration first, duration most, std::uint64_t seed)
      : first_(first), most_(most), next_(first), random_(seed) {}

  duration next() {
    const duration whole = next_;
    next_ = std::min(most_, next_ * 2);
    std::uniform_int_distribution<std::int64_t> spread(whole.count() / 2, whole.count());
    return duration(spread(random_));
  }
  void reset() { next_ = first_; }

 private:
  duration first_;
  duration most_;
  duration next_;
  std::mt19937_64 random_;
};

}  // namespace busbar::agent_client
