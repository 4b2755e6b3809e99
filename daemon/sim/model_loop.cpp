#include "daemon/sim/model_loop.hpp"

#include <ctime>

namespace busbar::sim {

instant monotonic_now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::chrono::seconds(now.tv_sec) + instant(now.tv_nsec);
}

model_loop::~model_loop() {
  stop();
}

void model_loop::drive(std::function<std::optional<instant>()> next_due,
                       std::function<void(instant)> advance) {
  next_due_ = std::move(next_due);
  advance_ = std::move(advance);
}

void model_loop::start() {
  thread_ = std::thread([this] { run(); });
}

void model_loop::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) {
    thread_.join();
  }
  // What tasks hold (connections of a face) must not outlive what it leans on: it goes now, not with the loop.
  std::multimap<instant, task> dropped;
  {
    const std::lock_guard lock(mutex_);
    dropped.swap(tasks_);
  }
}

void model_loop::at(instant when, task what) {
  {
    const std::lock_guard lock(mutex_);
    tasks_.emplace(when, std::move(what));
  }
  wake_.notify_one();
}

void model_loop::run() {
  std::optional<instant> due;
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const instant now = monotonic_now();
    if (!tasks_.empty() && tasks_.begin()->first <= now) {
      auto node = tasks_.extract(tasks_.begin());
      lock.unlock();
      node.mapped()();
      lock.lock();
      continue;
    }
    lock.unlock();
    if (due && *due <= now) {
      advance_(now);
    }
    due = next_due_ ? next_due_() : std::nullopt;
    lock.lock();
    if (!tasks_.empty() && tasks_.begin()->first <= monotonic_now()) {
      continue;
    }
    std::optional<instant> until = due;
    if (!tasks_.empty() && (!until || tasks_.begin()->first < *until)) {
      until = tasks_.begin()->first;
    }
    if (stopping_) {
      break;
    }
    if (until) {
      // steady_clock is CLOCK_MONOTONIC here, so the model's instants are its time points.
      wake_.wait_until(lock, std::chrono::steady_clock::time_point(*until));
    } else {
      wake_.wait(lock);
    }
  }
}

}  // namespace busbar::sim
