// The CDU over Modbus TCP: a server on one address whose registers are those of a shipped register map. One
// thread for its connections; requests are answered on the model loop, in order of arrival.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "daemon/sim/model_loop.hpp"

namespace busbar::sim {

// How the face asks the model; every function is called on the model loop's thread.
struct modbus_backend {
  std::function<std::optional<double>(std::string_view point)> read;
  std::function<absl::Status(std::string_view point, double value, const std::string& peer)> write;
  // What faults do to the next reply.
  std::function<instant()> delay;
  std::function<bool()> lost;
  std::function<std::optional<std::uint8_t>()> exception;
};

class modbus_face {
 public:
  modbus_face(model_loop& loop, modbus_backend backend);
  ~modbus_face();
  modbus_face(const modbus_face&) = delete;
  modbus_face& operator=(const modbus_face&) = delete;

  // Port 0: any free one. map: of actors/devices/modbus/maps.
  absl::Status listen(const std::string& address, std::uint16_t port, std::string_view map);
  std::uint16_t port() const;
  void start();
  void stop();  // joins; before the model loop stops

 private:
  class impl;
  std::shared_ptr<impl> impl_;
};

}  // namespace busbar::sim
