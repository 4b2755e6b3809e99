// One thread with a queue, for what must not run on gRPC's few threads (disk, YAML, streams). Tasks run in order.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace busbar::rpc {

class worker {
 public:
  // tick runs on the worker's thread at most every interval, while it returns true; any task makes it run again.
  explicit worker(std::size_t limit, std::function<bool()> tick = {},
                  std::chrono::milliseconds interval = std::chrono::milliseconds(250));
  ~worker();
  worker(const worker&) = delete;
  worker& operator=(const worker&) = delete;

  // False: the queue is full or the worker has stopped; task will not run.
  bool post(std::function<void()> task);
  // For tasks that end something and must not be refused for want of room. False: stopped.
  bool post_always(std::function<void()> task);
  // Runs what is queued, then ends the thread. Safe to call twice, not from the worker's own thread.
  void stop();

 private:
  void run();

  const std::size_t limit_;
  const std::function<bool()> tick_;
  const std::chrono::milliseconds interval_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace busbar::rpc
