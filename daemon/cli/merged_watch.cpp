#include "daemon/cli/merged_watch.hpp"

#include <absl/status/status.h>

#include <algorithm>

namespace busbar::cli {
namespace {

constexpr auto longest_stream = std::chrono::hours(1);  // then dialled again from where it was
constexpr auto redial_pause = std::chrono::milliseconds(500);
constexpr std::size_t queue_limit = 10'000;  // a reader waits: gRPC's flow control then reaches the daemon

}  // namespace

merged_watch::merged_watch(session& with, const std::vector<std::size_t>& whom,
                           const v1::WatchRequest& request)
    : with_(with) {
  for (const std::size_t endpoint : whom) {
    readers_.emplace_back(
        [this, endpoint, request](const std::stop_token& stop) { read(stop, endpoint, request); });
  }
}

merged_watch::~merged_watch() {
  for (auto& reader : readers_) reader.request_stop();
  changed_.notify_all();
}

void merged_watch::read(const std::stop_token& stop, std::size_t endpoint, v1::WatchRequest request) {
  bool said_lost = false;
  while (!stop.stop_requested()) {
    const call_result end = with_.wire().watch(
        endpoint, request, std::chrono::duration_cast<std::chrono::milliseconds>(longest_stream), stop,
        [this, endpoint, &request, &said_lost, &stop](const v1::WatchResponse& change) {
          said_lost = false;
          // Not during the present state: half of it is no place to go on from.
          if (!change.initial() && change.has_position()) *request.mutable_position() = change.position();
          {
            std::unique_lock lock(mutex_);
            changed_.wait(lock, stop, [this] { return queue_.size() < queue_limit; });
          }
          push({endpoint, change, std::nullopt});
        });
    if (stop.stop_requested()) return;
    if (end.code == static_cast<int>(absl::StatusCode::kOutOfRange)) {
      request.clear_position();
      continue;
    }
    if (!end.ok() && !end.unanswered())
      return push({endpoint, std::nullopt, end});  // refused: asking again is no use
    if (!end.ok() && !said_lost) push({endpoint, std::nullopt, end});
    said_lost = !end.ok();
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, stop, redial_pause, [] { return false; });
  }
}

void merged_watch::push(watch_event event) {
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(event));
  }
  changed_.notify_all();
}

std::optional<watch_event> merged_watch::next(std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_for(lock, patience, [this] { return !queue_.empty(); })) return std::nullopt;
  watch_event event = std::move(queue_.front());
  queue_.pop_front();
  lock.unlock();
  changed_.notify_all();
  return event;
}

}  // namespace busbar::cli
