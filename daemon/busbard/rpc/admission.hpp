// How many calls of a class may be inside at once; more are answered RESOURCE_EXHAUSTED. And the switch that the ordered stop
// turns first: no new call is let in.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <utility>

namespace busbar::rpc {

enum class call_class { read, act, stream, wait };

class admission;

// One place inside; given back when destroyed.
class ticket {
 public:
  ticket() = default;
  ticket(ticket&& other) noexcept : count_(std::exchange(other.count_, nullptr)) {}
  ticket& operator=(ticket&& other) noexcept {
    if (this != &other) {
      release();
      count_ = std::exchange(other.count_, nullptr);
    }
    return *this;
  }
  ~ticket() { release(); }
  explicit operator bool() const { return count_ != nullptr; }

 private:
  friend class admission;
  explicit ticket(std::atomic<int>* count) : count_(count) {}
  void release() {
    if (count_ != nullptr) count_->fetch_sub(1, std::memory_order_relaxed);
    count_ = nullptr;
  }
  std::atomic<int>* count_ = nullptr;
};

struct admission_limits {
  int read = 512;
  int act = 64;
  int stream = 64;
  int wait = 64;
};

// Outlives its tickets. Thread-safe.
class admission {
 public:
  explicit admission(admission_limits limits) : limits_{limits.read, limits.act, limits.stream, limits.wait} {}
  // An empty ticket: full.
  ticket enter(call_class of) {
    const auto index = static_cast<std::size_t>(of);
    if (inside_[index].fetch_add(1, std::memory_order_relaxed) < limits_[index]) return ticket(&inside_[index]);
    inside_[index].fetch_sub(1, std::memory_order_relaxed);
    return {};
  }
  void stop() { stopped_.store(true); }
  bool stopped() const { return stopped_.load(); }
  int inside(call_class of) const { return inside_[static_cast<std::size_t>(of)].load(); }

 private:
  std::array<int, 4> limits_;
  std::array<std::atomic<int>, 4> inside_{};
  std::atomic<bool> stopped_{false};
};

}  // namespace busbar::rpc
