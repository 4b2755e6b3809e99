// Drivers of CDUs by what their declaration says: Redfish on the process's HTTP loop, Modbus TCP on a loop of its own.
#pragma once

#include <memory>
#include <string>

#include "actors/devices/cdu.hpp"
#include "actors/devices/modbus/tcp_loop.hpp"
#include "actors/devices/redfish/curl_transport.hpp"

namespace busbar::daemon {

class daemon_cdus final : public devices::cdu_factory {
 public:
  explicit daemon_cdus(std::shared_ptr<devices::redfish::curl_transport> http) : http_(std::move(http)) {}

  absl::StatusOr<std::shared_ptr<devices::cdu>> make(const std::string& protocol, const std::string& address,
                                                     const std::string& map, devices::credentials login) override;

 private:
  const std::shared_ptr<devices::redfish::curl_transport> http_;
  std::unique_ptr<devices::modbus::tcp_loop> modbus_;  // with the first CDU that speaks it
};

}  // namespace busbar::daemon
