// A value as the loops see it. A loop never reads `value` itself: usable() is the only way to a number, and
// it gives none for a value that is bad, stale, unknown, not finite or from the future.
#pragma once

#include <chrono>
#include <cmath>
#include <limits>
#include <optional>

namespace busbar::plant {

using instant = std::chrono::nanoseconds;  // of the monotonic clock, handed in by the caller

enum class quality { unknown, good, bad, stale };

struct measurement {
  double value = std::numeric_limits<double>::quiet_NaN();
  quality state = quality::unknown;
  instant at{};
};

inline measurement good(double value, instant at) {
  return {value, quality::good, at};
}

inline std::optional<double> usable(const measurement& reading, instant now, instant max_age) {
  if (reading.state != quality::good || !std::isfinite(reading.value)) return std::nullopt;
  if (reading.at > now || now - reading.at > max_age) return std::nullopt;
  return reading.value;
}

inline double seconds(instant span) {
  return std::chrono::duration<double>(span).count();
}
inline instant from_seconds(double s) {
  return std::chrono::duration_cast<instant>(std::chrono::duration<double>(s));
}

}  // namespace busbar::plant
