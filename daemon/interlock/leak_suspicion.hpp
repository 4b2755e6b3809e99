// A leak that no detector sees: the loop's pressure and the reservoir's level fall together. Pure.
//
// Least-squares slopes over the last 30 s. Both must fall: pressure by more than 1 % of its mean in 30 s and
// level by more than 0.1 percentage points; a pump that slows moves the pressure alone, a loop that cools the
// level alone. It raises an alarm and trips nothing: both sensors sit in one cabinet.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

namespace busbar::interlock {

class leak_suspicion {
 public:
  // A value that is missing is unknown and leaves what was seen before as it stands.
  void add(std::int64_t now_ns, std::optional<double> pressure_kpa, std::optional<double> level_percent);
  bool suspected() const { return suspected_; }

 private:
  struct sample {
    std::int64_t at_ns = 0;
    double value = 0;
  };
  using series = std::deque<sample>;
  static void keep(series& of, std::int64_t now_ns, std::optional<double> value);
  // Change over the window by the fitted line; nothing while the window is not covered.
  static std::optional<double> fall(const series& of);

  series pressure_;
  series level_;
  bool suspected_ = false;
};

}  // namespace busbar::interlock
