// One-thread stand-ins for the I/O loop: post runs at once (or in order after the one that is running),
// delays run when the test says so.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "actors/devices/redfish/http_transport.hpp"

namespace busbar::devices::redfish {

class test_loop : public scheduler {
 public:
  void post(std::function<void()> work) override {
    queue_.push_back(std::move(work));
    if (running_) return;
    running_ = true;
    while (!queue_.empty()) {
      const auto next = std::move(queue_.front());
      queue_.pop_front();
      next();
    }
    running_ = false;
  }
  void after(std::chrono::milliseconds delay, std::function<void()> work) override {
    delays.push_back(delay);
    timers_.emplace(now_ + delay, std::move(work));
  }
  // Lets time pass until no timer is left, at most so many of them.
  void pass_time(int limit = 1'000) {
    for (int i = 0; i < limit && !timers_.empty(); ++i) {
      now_ = timers_.begin()->first;
      const auto work = std::move(timers_.begin()->second);
      timers_.erase(timers_.begin());
      post(work);
    }
  }
  std::vector<std::chrono::milliseconds> delays;

 private:
  std::chrono::milliseconds now_{0};
  std::multimap<std::chrono::milliseconds, std::function<void()>> timers_;
  std::deque<std::function<void()>> queue_;
  bool running_ = false;
};

// Answers from a function, inline; or, when held, one by one as the test says.
class scripted_transport : public http_transport {
 public:
  using handler = std::function<http_outcome(const http_request&)>;
  explicit scripted_transport(handler answer) : answer_(std::move(answer)) {}

  void send(const std::string&, http_request request, http_callback callback) override {
    seen.push_back(request);
    if (!hold) return callback(answer_(request));
    waiting.emplace_back(std::move(request), std::move(callback));
  }
  void release_one() {
    auto [request, callback] = std::move(waiting.front());
    waiting.pop_front();
    callback(answer_(request));
  }
  bool hold = false;
  std::vector<http_request> seen;
  std::deque<std::pair<http_request, http_callback>> waiting;

 private:
  handler answer_;
};

inline http_outcome reply_of(int status, std::string body, http_headers headers = {}) {
  http_outcome outcome;
  outcome.reply.status = status;
  outcome.reply.body = std::move(body);
  outcome.reply.headers = std::move(headers);
  outcome.reply.certificate_sha256 = "aa11";
  return outcome;
}

inline http_outcome no_answer(transport_error error) {
  http_outcome outcome;
  outcome.error = error;
  outcome.detail = "scripted";
  return outcome;
}

}  // namespace busbar::devices::redfish
