// The one thread that owns a simulated site (or a replayed tree): everything that touches the model runs
// here, in order.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "daemon/sim/http_message.hpp"

namespace busbar::sim {

instant monotonic_now();

class model_loop {
 public:
  using task = std::function<void()>;

  model_loop() = default;
  ~model_loop();
  model_loop(const model_loop&) = delete;
  model_loop& operator=(const model_loop&) = delete;

  // What the model wants to be woken for; both are called on the loop's thread. Set before start.
  void drive(std::function<std::optional<instant>()> next_due, std::function<void(instant)> advance);
  void start();
  void stop();  // joins; tasks that have not begun are dropped, with all that they hold

  void post(task what) { at(instant{0}, std::move(what)); }
  void at(instant when, task what);  // thread-safe
  // Runs it on the loop's thread and waits for its value; not from the loop's own thread.
  template <class Function>
  auto call(Function what) -> decltype(what()) {
    std::packaged_task<decltype(what())()> packaged(std::move(what));
    auto result = packaged.get_future();
    post([&packaged] { packaged(); });
    return result.get();
  }

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::multimap<instant, task> tasks_;
  bool stopping_ = false;
  std::function<std::optional<instant>()> next_due_;
  std::function<void(instant)> advance_;
  std::thread thread_;
};

}  // namespace busbar::sim
