// One thread that runs posted work in order and timers when due. Shared by many agents (their state lives on
// it, so it needs no locks) and by the agent gate for what must not run on a gRPC thread. Deadlines are
// monotonic.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

namespace busbar::agent_client {

class event_loop {
 public:
  using clock = std::chrono::steady_clock;
  using task = std::function<void()>;

  event_loop();
  ~event_loop();
  event_loop(const event_loop&) = delete;
  event_loop& operator=(const event_loop&) = delete;

  // After stop() work is dropped and false comes back. Thread-safe.
  bool post(task work);
  // A timer cannot be cancelled: whoever sets one carries a generation and ignores a stale one.
  bool post_at(clock::time_point due, task work);
  bool post_after(clock::duration delay, task work) { return post_at(clock::now() + delay, std::move(work)); }

  // Runs what was posted before, drops timers, joins the thread. Not from the loop itself.
  void stop();

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<task> ready_;
  std::multimap<clock::time_point, task> timers_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace busbar::agent_client
