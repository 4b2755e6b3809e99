// One Modbus device through its register map: polls by class, writes with read-back. No thread of its own.
#pragma once

#include <absl/status/statusor.h>

#include <functional>
#include <memory>
#include <string>

#include "actors/devices/modbus/register_map.hpp"
#include "actors/devices/modbus/tcp_loop.hpp"
#include "actors/devices/points.hpp"

namespace busbar::devices::modbus {

class map_device : public std::enable_shared_from_this<map_device> {
 public:
  using clock_ns = std::function<std::int64_t()>;  // time of reception, as points carry it
  using batch_callback = std::function<void(absl::StatusOr<point_batch>)>;
  using done = std::function<void(absl::Status)>;

  map_device(std::shared_ptr<link> wire, register_map map, clock_ns clock);

  // All reads of the class, then one answer: the points of every read that was answered. Fails when none was;
  // a part that failed is missing from the batch, and its points grow stale at the caller. The fast class
  // goes as safety.
  void read(poll_class polled, std::chrono::milliseconds deadline, batch_callback reply);

  // OK only when the register was read to hold the value; ABORTED with both values when it holds another.
  void write(const std::string& point, double value, std::chrono::milliseconds deadline, done reply);

  const register_map& map() const { return map_; }

 private:
  struct gathering;
  void read_back(const std::string& point, double value, const request& written,
                 std::chrono::milliseconds deadline, const done& reply);

  std::shared_ptr<link> wire_;
  register_map map_;
  clock_ns clock_;
};

}  // namespace busbar::devices::modbus
