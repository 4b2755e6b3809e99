// One request at a time over one kept connection to one pinned device (a lane), and the set of lanes that
// share a curl multi handle (a pool). A pool keeps one connection a host, so that lanes of different pools
// never take each other's: a command does not wait for a poll.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/interlock/device_walk.hpp"

struct pollfd;

namespace busbar::interlock {

class lane {
 public:
  // owner: whose lane this is; of no meaning to the lane.
  lane(const ArmedDevice& device, std::int64_t timeout_ms, void* owner);
  ~lane();
  lane(const lane&) = delete;
  lane& operator=(const lane&) = delete;

  void* owner() const { return owner_; }
  bool busy() const { return busy_; }
  // Where an event stream's bytes go as they come; without it a body is collected.
  void on_chunk(std::function<void(std::string_view)> sink);

  http_response take_response();
  bool wrong_pin() const;
  std::string transport_error(int code) const;

 private:
  friend class lane_pool;
  struct impl;

  void* owner_;
  bool busy_ = false;
  std::unique_ptr<impl> impl_;
};

class lane_pool {
 public:
  lane_pool();
  ~lane_pool();
  lane_pool(const lane_pool&) = delete;
  lane_pool& operator=(const lane_pool&) = delete;

  void start(lane& on, const http_request& request);
  void abandon(lane& on);
  // Moves bytes; on a kept connection a request that was started leaves the host here.
  void push();
  // push(), then one call for each lane that has finished. code: 0 is an answer, whatever its status.
  void turn(const std::function<void(lane& of, int code)>& finished);

  // Sleeps until one of the pools, one of `extra` (its revents becomes non-zero) or the limit is due.
  static void wait(std::vector<pollfd>* extra, std::int64_t limit_ms,
                   const std::vector<const lane_pool*>& pools);

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace busbar::interlock
