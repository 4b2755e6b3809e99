// Time as logic sees it: handed in with every event, never read. Deadlines are monotonic; wall time is for people.
#pragma once

#include <chrono>
#include <cstdint>

namespace busbar::core {

using duration = std::chrono::nanoseconds;

struct instant {
  std::int64_t monotonic_ns = 0;
  std::int64_t wall_ns = 0;
};

constexpr std::int64_t never_ns = INT64_MAX;

constexpr std::int64_t after(const instant& now, duration wait) { return now.monotonic_ns + wait.count(); }

}  // namespace busbar::core
