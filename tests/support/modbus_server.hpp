// A Modbus TCP device for tests and figures: many connections, registers that are a function of their
// address, replies that come late, go missing or lie as the test says. One thread; its address is 127.0.0.1
// and a free port.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "actors/devices/modbus/frame.hpp"

namespace busbar::test {

// What becomes of one request. No bytes: never answered.
struct modbus_answer {
  std::optional<std::string> bytes;
  std::int64_t delay_ns = 0;
  bool hang_up = false;
};

class modbus_server {
 public:
  // Called on the server's thread, in order of arrival.
  using behaviour = std::function<modbus_answer(const devices::modbus::frame&)>;
  explicit modbus_server(behaviour answers);
  ~modbus_server();
  modbus_server(const modbus_server&) = delete;
  modbus_server& operator=(const modbus_server&) = delete;

  std::string address() const;  // "127.0.0.1:40213"

 private:
  class impl;
  std::unique_ptr<impl> impl_;
};

// The register at an address, as the honest device has it; no two neighbours are alike.
std::uint16_t register_of(std::uint16_t address);
// The frame an honest device answers with: reads from register_of, writes echoed.
devices::modbus::frame honest_reply(const devices::modbus::frame& came);

}  // namespace busbar::test
