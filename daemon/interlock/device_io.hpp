// The interlock's own connections: one a device, pinned, one request in flight each, all on one curl multi
// handle and the caller's thread. A slow device delays nobody else. Bounded: 256 KiB a body, 64 devices.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "daemon/interlock/device_walk.hpp"
#include "daemon/interlock/interlock_logic.hpp"

struct pollfd;

namespace busbar::interlock {

class device_io {
 public:
  using sink = std::function<void(const event&)>;
  using clock_ms = std::function<std::int64_t()>;  // monotonic

  // emit is called from follow(), turn() only. interval: milliseconds between the end of a device's poll and
  // the next.
  device_io(clock_ms clock, sink emit, std::function<std::int64_t(const std::string&)> interval);
  ~device_io();
  device_io(const device_io&) = delete;
  device_io& operator=(const device_io&) = delete;

  // Connections shall equal the record's devices; an unchanged device keeps its own.
  void follow(const ArmingRecord* record);

  // Sessions by device, to be remembered so that a later process deletes them first; changed() is true once
  // after a change.
  void remember(std::map<std::string, std::string> sessions) { sessions_ = std::move(sessions); }
  const std::map<std::string, std::string>& sessions() const { return sessions_; }
  bool sessions_changed();

  // Starts what is due and takes what has arrived; never blocks.
  void turn();
  // Sleeps until a connection, one of `extra` (its revents becomes non-zero) or the time limit is due, or the
  // next poll.
  void wait(std::vector<pollfd>* extra, std::int64_t limit_ms);

 private:
  class connection;
  struct multi;

  void start_due(std::int64_t now_ms);
  void finished(connection& of, int curl_code, std::int64_t now_ms);
  void lose(connection& of, const std::string& why);
  void after_answer(connection& of, device_walk::news news, std::int64_t now_ms);

  clock_ms clock_;
  sink emit_;
  std::function<std::int64_t(const std::string&)> interval_;
  std::unique_ptr<multi> multi_;
  std::map<std::string, std::unique_ptr<connection>> connections_;
  std::map<std::string, std::string> sessions_;
  bool sessions_changed_ = false;
};

}  // namespace busbar::interlock
