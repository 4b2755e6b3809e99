// Seeded exploration: one generator decides which runnable thing runs next (a message of an actor, a device's answer), when
// time goes on to the next due timer, and when a fault of the scenario strikes. The same seed gives the same trace.
//
//   const auto report = for_seeds(200, [](simulation& sim) -> std::optional<std::string> {
//     const auto rack = sim.actors().spawn(...);
//     sim.add_invariant("no host without flow", [&world]() { return world.host_without_flow(); });
//     sim.add_fault("disk full", [&world]() { world.fill_disk(); });
//     return sim.run([&world]() { return world.in_production(); }).failure();
//   });
//   EXPECT_TRUE(report.passed()) << report.describe();
//
// Environment: BUSBAR_SEED=17 runs that seed alone, BUSBAR_SEEDS=5000 that many, BUSBAR_TRACE=1 adds messages to the trace.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/deterministic.hpp"

namespace busbar::test_support {

// Gives what is broken, or nothing while it holds.
using invariant_check = std::function<std::optional<std::string>()>;

struct exploration_limits {
  std::size_t steps = 1'000'000;                            // of one run(); more is a failure
  std::chrono::nanoseconds time = std::chrono::hours(24);   // virtual, of one run(); more is a failure
  // While something is runnable, time may still go on by at most this: a busy host is late, but not by a request's timeout.
  std::chrono::nanoseconds lateness = std::chrono::milliseconds(20);
  unsigned fault_per_mille = 5;                             // chance of a fault at a step, while any is left
};

struct exploration_outcome {
  bool done = false;                      // done() came true
  std::optional<std::string> violation;   // "invariant: what is broken"
  std::string stuck;                      // why it ended otherwise: nothing runnable, too many steps, too much time
  std::size_t steps = 0;

  // Nothing, if it was done with every invariant holding.
  std::optional<std::string> failure() const;
};

class simulation : public deterministic_system {
 public:
  explicit simulation(std::uint64_t seed);

  std::uint64_t seed() const { return seed_; }
  exploration_limits limits;

  // For the scenario's own choices (which tray leaks, how long a flash takes): 0 <= result < bound. Precondition: bound > 0.
  std::uint64_t choose(std::uint64_t bound);

  // May strike at any step at which possible() holds (empty: always), at most at_most times.
  void add_fault(std::string name, std::function<void()> inject, unsigned at_most = 1,
                 std::function<bool()> possible = {});
  // Called after every step.
  void add_invariant(std::string name, invariant_check check);
  // The scenario's own words in the trace.
  void note(std::string text) { record('!', std::move(text)); }

  // Steps until done() holds, an invariant breaks, nothing can happen any more, or a limit is reached.
  exploration_outcome run(const std::function<bool()>& done);

  // One line a step from the beginning; the digest is of the lines.
  std::vector<std::string> trace() const;
  std::uint64_t trace_digest() const;
  // The last lines, with the seed.
  std::string describe(std::size_t lines = 60) const;

 private:
  struct fault {
    std::string name;
    std::function<void()> inject;
    std::function<bool()> possible;
    unsigned left;
  };
  struct invariant {
    std::string name;
    invariant_check check;
  };
  struct entry {
    char kind;  // j job, d device callback, t time, f fault, ! note
    std::int64_t at_us;
    std::string text;
  };

  bool step();
  bool strike();
  bool time_goes_on(std::size_t runnable);
  std::optional<std::string> broken() const;
  void record(char kind, std::string text);
  static std::string line(const entry& entry);

  std::uint64_t seed_;
  std::mt19937_64 generator_;
  bool with_messages_;
  std::vector<fault> faults_;
  std::vector<invariant> invariants_;
  std::vector<entry> trace_;
};

// Nothing: the scenario holds on this seed. Text: what went wrong.
using scenario = std::function<std::optional<std::string>(simulation&)>;

struct exploration_report {
  struct failed_seed {
    std::uint64_t seed;
    std::string what;
    std::string trace;
  };
  std::size_t seeds = 0;
  std::optional<failed_seed> failure;  // the first; exploration ends with it

  bool passed() const { return seeds > 0 && !failure.has_value(); }
  std::string describe() const;
};

// Runs the scenario on seeds first, first + 1, ... in a fresh simulation each, until one fails.
exploration_report for_seeds(std::uint64_t count, const scenario& run_one, std::uint64_t first = 1);

}  // namespace busbar::test_support
