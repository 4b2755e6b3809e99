// An ordered queue of callbacks on a virtual clock, for code that knows no CAF: in-process device transports, fakes, timers.
// Inside a simulation the same clock drives the actors' timers too, so device answers and actor timers interleave.
// Owner: the test, on one thread. Nothing here sleeps or reads a real clock.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <utility>

namespace busbar::test_support {

class virtual_scheduler {
 public:
  using clock = std::chrono::steady_clock;
  using time_point = clock::time_point;
  using duration = clock::duration;
  using callback = std::function<void()>;

  // The clock starts at one day, so that a forgotten zero does not pass for "now".
  static constexpr time_point start_of_time{std::chrono::hours(24)};

  time_point now() const { return now_; }

  // Calls back once, delay from now; a negative delay counts as zero. The id is good for cancel() until then.
  std::uint64_t after(duration delay, callback action);
  // False: it ran already, was cancelled, or never existed.
  bool cancel(std::uint64_t id);
  void clear() { queue_.clear(); }

  // The earliest of all, which may lie in the past while it was not run.
  std::optional<time_point> next_due() const;
  // The earliest that is not due yet.
  std::optional<time_point> next_later() const;
  // How many callbacks are due by now.
  std::size_t due_count() const;
  // Runs the index-th of the due callbacks (0: the earliest); false if there are fewer. A simulation picks by seed, so a
  // transport that needs an order between two answers schedules the second from the first.
  bool run_due_at(std::size_t index);
  // Runs all that is due, in order of time and of insertion, with what those callbacks make due; at most limit of them.
  std::size_t run_due(std::size_t limit = 1'000'000);

  // Moves the clock and runs nothing; time never goes back.
  void set_now(time_point now);
  // Moves from due time to due time up to now + d, running what is due at each.
  void advance(duration d);

 private:
  using key = std::pair<time_point, std::uint64_t>;

  time_point now_ = start_of_time;
  std::uint64_t next_id_ = 1;
  std::map<key, callback> queue_;
};

}  // namespace busbar::test_support
