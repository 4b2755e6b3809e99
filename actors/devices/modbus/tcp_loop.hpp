// The sockets under the Modbus driver: one thread and one epoll for all devices of a process.
#pragma once

#include <absl/status/statusor.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "actors/devices/modbus/exchange_logic.hpp"

namespace busbar::devices::modbus {

using words_callback = std::function<void(absl::StatusOr<std::vector<std::uint16_t>>)>;

// One device behind one connection, which is opened with the first request and again after a loss. Requests
// of a link are answered in order of priority, one at a time. Thread-safe.
class link {
 public:
  virtual ~link() = default;
  // Calls back exactly once, on the loop's thread, by the deadline at the latest; words of a read, none of a
  // write. DEADLINE_EXCEEDED and UNAVAILABLE of a write: it may have taken; read it back.
  virtual void transact(request wanted, priority urgency, std::chrono::milliseconds deadline,
                        words_callback reply) = 0;
  virtual exchange_counts counts() const = 0;
};

class tcp_loop {
 public:
  tcp_loop();
  // Ends the thread; requests still open are answered CANCELLED.
  ~tcp_loop();
  tcp_loop(const tcp_loop&) = delete;
  tcp_loop& operator=(const tcp_loop&) = delete;

  // INVALID_ARGUMENT unless the address is numeric host:port. The link may outlive the loop; it then answers
  // CANCELLED.
  absl::StatusOr<std::shared_ptr<link>> open(const std::string& address, exchange_options options = {});

 private:
  class impl;
  std::shared_ptr<impl> impl_;
};

}  // namespace busbar::devices::modbus
