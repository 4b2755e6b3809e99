// The interlock's own connections. Each device has three lanes, one request in flight on each, all on the
// caller's thread: polls, commands with their read-backs, and the event stream where one is offered. A slow
// device delays nobody else, and a poll delays no command; one that finds its lane taken by something else
// goes by that of the polls. Bounded: 256 KiB a body, 64 devices.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "daemon/interlock/curl_lane.hpp"
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

  // Queued, and on a kept connection on the wire with the next push(). A device that is not known well enough
  // yet gets it as soon as it is; one command of a key waits at most once.
  void run(const command& what);
  void run(const read_back& what);
  void run(const read_detectors& what);
  void push();

  // Starts what is due and takes what has arrived; never blocks.
  void turn();
  // Sleeps until a connection, one of `extra` (its revents becomes non-zero) or the time limit is due, or the
  // next poll.
  void wait(std::vector<pollfd>* extra, std::int64_t limit_ms);

 private:
  class connection;

  void start_due(std::int64_t now_ms);
  void start_jobs(connection& of, std::int64_t now_ms);
  void lend_poll_lane(connection& of);
  void start_aside(connection& of, std::int64_t now_ms);
  void start_stream(connection& of, std::int64_t now_ms);
  void poll_finished(connection& of, int curl_code, std::int64_t now_ms);
  void finished(connection& of, int curl_code, std::int64_t now_ms);
  void job_finished(connection& of, int curl_code);
  void lent_finished(connection& of, int curl_code);
  void stream_heard(connection& of, std::string_view bytes);
  void stream_lost(connection& of, std::int64_t now_ms);
  void poll_at_once(connection& of);
  void poll_soon(connection& of);
  void set_streaming(connection& of, bool on);
  void online(connection& of);
  void lose(connection& of, const std::string& why);
  void after_answer(connection& of, device_walk::news news, std::int64_t now_ms);
  void after_poll(connection& of, std::int64_t now_ms);

  clock_ms clock_;
  sink emit_;
  std::function<std::int64_t(const std::string&)> interval_;
  lane_pool polls_;
  lane_pool commands_;
  lane_pool streams_;
  std::map<std::string, std::unique_ptr<connection>> connections_;
  std::map<std::string, std::string> sessions_;
  bool sessions_changed_ = false;
};

}  // namespace busbar::interlock
