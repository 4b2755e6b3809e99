#include "daemon/busbard/rpc/worker.hpp"

#include <utility>

namespace busbar::rpc {

worker::worker(std::size_t limit, std::function<bool()> tick, std::chrono::milliseconds interval)
    : limit_(limit), tick_(std::move(tick)), interval_(interval), thread_([this] { run(); }) {}

worker::~worker() { stop(); }

bool worker::post(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_ || tasks_.size() >= limit_) return false;
    tasks_.push_back(std::move(task));
  }
  changed_.notify_one();
  return true;
}

bool worker::post_always(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return false;
    tasks_.push_back(std::move(task));
  }
  changed_.notify_one();
  return true;
}

void worker::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void worker::run() {
  bool ticking = false;
  auto next_tick = std::chrono::steady_clock::now();
  std::unique_lock lock(mutex_);
  const auto has_work = [this] { return stopping_ || !tasks_.empty(); };
  while (true) {
    if (ticking) {
      changed_.wait_until(lock, next_tick, has_work);
    } else {
      changed_.wait(lock, has_work);
    }
    if (stopping_ && tasks_.empty()) return;
    if (!tasks_.empty()) {
      std::function<void()> task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
      task = nullptr;
      lock.lock();
      ticking = ticking || static_cast<bool>(tick_);
    }
    if (ticking && std::chrono::steady_clock::now() >= next_tick) {
      lock.unlock();
      ticking = tick_();
      lock.lock();
      next_tick = std::chrono::steady_clock::now() + interval_;
    }
  }
}

}  // namespace busbar::rpc
