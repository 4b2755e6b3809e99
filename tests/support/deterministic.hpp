// Actors on CAF's test scheduler and a virtual clock: nothing runs until the test says so, and time passes only by its word.
// `deterministic_system` is the machine, `deterministic_fixture` the GoogleTest fixture over it, explorer.hpp runs seeds on it.
// Detached actors start a real thread even here: spawn through a factory and give tests the attached variant.
#pragma once

#include <gtest/gtest.h>

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/detail/test_actor_clock.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/expected.hpp>
#include <caf/scheduler/test_coordinator.hpp>
#include <caf/sec.hpp>
#include <caf/weak_intrusive_ptr.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "tests/support/virtual_scheduler.hpp"

namespace busbar::test_support {

class deterministic_system {
 public:
  using time_point = virtual_scheduler::time_point;
  using duration = virtual_scheduler::duration;

  deterministic_system();
  // Stops what is left; an actor that survives even that is a test failure, never a hang.
  ~deterministic_system();
  deterministic_system(const deterministic_system&) = delete;
  deterministic_system& operator=(const deterministic_system&) = delete;

  caf::actor_system& actors() { return system_; }
  caf::scheduler::test_coordinator& coordinator() { return *coordinator_; }
  // For CAF-free doubles; on the same clock.
  virtual_scheduler& devices() { return devices_; }

  time_point now() const { return devices_.now(); }
  // Nanoseconds since 1970 of a wall clock that starts on 2026-01-01 and moves with the virtual one.
  std::int64_t wall_ns() const;

  // Runs jobs and due device callbacks until there are none. Time stands still.
  void settle();
  // Lets d pass, from due time to due time, settling at each: a periodic actor ticks as often as it would.
  void advance(duration d);
  // Advances until done() holds; false when limit passed, or nothing is left that could make it hold.
  bool advance_until(const std::function<bool()>& done, duration limit);

  // The next time at which a timer or a device callback is due, if any; what is due and was not run yet does not count.
  std::optional<time_point> next_due() const;
  // Moves time to t (never back) and turns the timers due by then into jobs; runs nothing.
  void move_to(time_point t);
  // Runs the index-th job of the queue: one message of one actor. Precondition: index < coordinator().jobs.size().
  void run_job(std::size_t index);
  // "name#id" of the index-th job's actor, for traces.
  std::string job_name(std::size_t index) const;
  // What the actor will handle next, as CAF prints it; empty if it cannot be seen.
  std::string job_message(std::size_t index) const;

  // Sends a request, settles and gives the answer. T = void for an answer without content. No answer at this instant is a test
  // failure and sec::request_timeout.
  template <class T, class Handle, class... Ts>
  caf::expected<T> ask(const Handle& target, Ts&&... message) {
    return ask_within<T>(duration::zero(), target, std::forward<Ts>(message)...);
  }
  // The same, letting at most `limit` pass.
  template <class T, class Handle, class... Ts>
  caf::expected<T> ask_within(duration limit, const Handle& target, Ts&&... message);

  // An object that lives until all actors are gone: fakes, worlds and stores that actors point to. A local of a scenario would
  // die before the actors that still use it.
  template <class T, class... Ts>
  T& make(Ts&&... arguments) {
    auto owned = std::make_shared<T>(std::forward<Ts>(arguments)...);
    kept_.push_back(owned);
    return *owned;
  }

  // Sends exit to every actor that ever ran, settles, kills what stays; then drops all timers and device callbacks.
  // How many actors are still running after that: zero, or something is wrong.
  std::size_t stop_all();

 private:
  struct configuration : caf::actor_system_config {
    configuration();
  };
  caf::detail::test_actor_clock& timers() const { return coordinator_->clock(); }
  void see(caf::resumable* job);
  void exit_those_left(caf::exit_reason reason);

  virtual_scheduler devices_;
  std::vector<std::shared_ptr<void>> kept_;
  configuration config_;
  caf::actor_system system_;  // destroyed before what its actors point to
  caf::scheduler::test_coordinator* coordinator_;
  bool tracking_ = false;                              // CAF's own utility actors are left alone
  std::map<caf::actor_id, caf::weak_actor_ptr> seen_;  // every actor that ever ran, in order of creation
};

// Derive from it; TearDown() stops all actors and expects that none is left. Release foreign handles before or in TearDown().
class deterministic_fixture : public ::testing::Test, protected deterministic_system {
 protected:
  void TearDown() override { EXPECT_EQ(stop_all(), 0U) << "actors still running after exit and kill"; }
};

template <class T, class Handle, class... Ts>
caf::expected<T> deterministic_system::ask_within(duration limit, const Handle& target, Ts&&... message) {
  auto answer = std::make_shared<std::optional<caf::expected<T>>>();
  auto words = std::make_tuple(std::forward<Ts>(message)...);
  const caf::actor asker = system_.spawn([answer, target, words](caf::event_based_actor* self) {
    const auto failed = [answer](caf::error& error) { answer->emplace(std::move(error)); };
    std::apply(
        [self, answer, target, failed](const auto&... word) {
          auto pending = self->request(target, std::chrono::minutes(60 * 24 * 365), word...);
          if constexpr (std::is_void_v<T>) {
            pending.then([answer]() { answer->emplace(caf::unit); }, failed);
          } else {
            pending.then([answer](const T& value) { answer->emplace(value); }, failed);
          }
        },
        words);
  });
  settle();
  if (limit > duration::zero()) advance_until([answer]() { return answer->has_value(); }, limit);
  if (answer->has_value()) return **answer;
  ADD_FAILURE() << "no answer to a request";
  return caf::make_error(caf::sec::request_timeout);
}

}  // namespace busbar::test_support
