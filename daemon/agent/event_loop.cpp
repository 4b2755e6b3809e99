#include "daemon/agent/event_loop.hpp"

namespace busbar::agent_client {

event_loop::event_loop() : thread_([this] { run(); }) {}

event_loop::~event_loop() {
  stop();
}

bool event_loop::post(task work) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return false;
    ready_.push_back(std::move(work));
  }
  wake_.notify_one();
  return true;
}

bool event_loop::post_at(clock::time_point due, task work) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return false;
    timers_.emplace(due, std::move(work));
  }
  wake_.notify_one();
  return true;
}

void event_loop::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
  const std::lock_guard lock(mutex_);
  timers_.clear();
}

void event_loop::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    const auto now = clock::now();
    while (!stopping_ && !timers_.empty() && timers_.begin()->first <= now) {
      ready_.push_back(std::move(timers_.begin()->second));
      timers_.erase(timers_.begin());
    }
    if (!ready_.empty()) {
      task work = std::move(ready_.front());
      ready_.pop_front();
      lock.unlock();
      work();
      work = nullptr;  // what it captured is let go outside the lock
      lock.lock();
      continue;
    }
    if (stopping_) return;
    if (timers_.empty()) {
      wake_.wait(lock);
    } else {
      const auto due = timers_.begin()->first;
      wake_.wait_until(lock, due);
    }
  }
}

}  // namespace busbar::agent_client
