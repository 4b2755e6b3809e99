// The drivers of rack PDUs: Redfish on the daemon's I/O loop, SNMP on a thread of its own.
#pragma once

#include <memory>

#include "actors/devices/outlet_factory.hpp"

namespace busbar::devices::redfish {
class curl_transport;
}
namespace busbar::devices::snmp {
class client;
}

namespace busbar::daemon {

class daemon_outlets final : public devices::outlet_factory {
 public:
  explicit daemon_outlets(std::shared_ptr<devices::redfish::curl_transport> io);
  ~daemon_outlets() override;
  absl::StatusOr<std::shared_ptr<devices::outlet_bank>> make_outlets(const journal::PduSpec& spec,
                                                                     devices::credentials login) override;

 private:
  absl::StatusOr<std::shared_ptr<devices::outlet_bank>> make_snmp(const journal::PduSpec& spec,
                                                                  const devices::credentials& login);

  const std::shared_ptr<devices::redfish::curl_transport> io_;
  std::unique_ptr<devices::snmp::client> snmp_;  // made with the first PDU that needs it
};

}  // namespace busbar::daemon
