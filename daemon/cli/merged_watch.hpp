// Watches of several daemons as one queue. A daemon that goes away is said once and dialled again from the
// last position, so a restart of it loses nothing; a position it no longer knows starts again with its
// present state.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "daemon/cli/session.hpp"

namespace busbar::cli {

struct watch_event {
  std::size_t from = 0;
  std::optional<v1::WatchResponse> change;
  std::optional<call_result> lost;  // that daemon does not answer now, or refuses to be watched
};

class merged_watch {
 public:
  // A thread a daemon; the queue is guarded by mutex_. with must outlive this.
  merged_watch(session& with, const std::vector<std::size_t>& whom, const v1::WatchRequest& request);
  ~merged_watch();  // cancels the streams and joins
  merged_watch(const merged_watch&) = delete;
  merged_watch& operator=(const merged_watch&) = delete;

  // The next event; nothing when none came in this time.
  std::optional<watch_event> next(std::chrono::milliseconds patience);

 private:
  void read(const std::stop_token& stop, std::size_t endpoint, v1::WatchRequest request);
  void push(watch_event event);

  session& with_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<watch_event> queue_;
  std::vector<std::jthread> readers_;
};

}  // namespace busbar::cli
