#include "daemon/busbard/wiring_outlets.hpp"

#include <fmt/format.h>

#include "actors/devices/redfish/curl_transport.hpp"
#include "actors/devices/redfish/redfish_outlets.hpp"
#include "actors/devices/snmp/snmp_outlets.hpp"

namespace busbar::daemon {

daemon_outlets::daemon_outlets(std::shared_ptr<devices::redfish::curl_transport> io) : io_(std::move(io)) {}
daemon_outlets::~daemon_outlets() = default;

absl::StatusOr<std::shared_ptr<devices::outlet_bank>> daemon_outlets::make_outlets(const journal::PduSpec& spec,
                                                                                   devices::credentials login) {
  if (spec.protocol() == "redfish") return devices::redfish::make_redfish_outlets(spec.address(), std::move(login), "", io_, io_);
  if (spec.protocol() == "snmp") return make_snmp(spec, login);
  return absl::InvalidArgumentError(fmt::format("no protocol '{}' of a PDU: redfish or snmp", spec.protocol()));
}

absl::StatusOr<std::shared_ptr<devices::outlet_bank>> daemon_outlets::make_snmp(const journal::PduSpec& spec,
                                                                                const devices::credentials& login) {
  const auto text = devices::snmp::shipped_dialect(spec.dialect());
  if (!text.has_value()) {
    return absl::InvalidArgumentError(fmt::format("no SNMP dialect '{}'; there are: {}", spec.dialect(),
                                                  fmt::join(devices::snmp::shipped_dialects(), ", ")));
  }
  auto spoken = devices::snmp::parse_dialect(*text, spec.dialect());
  if (!spoken.ok()) return spoken.status();
  devices::snmp::login as;
  as.user = login.user;
  if (login.user.empty()) as.community = login.password;
  if (!login.user.empty()) as.auth_password = as.privacy_password = login.password;
  if (snmp_ == nullptr) snmp_ = std::make_unique<devices::snmp::client>();
  auto agent = snmp_->open(spec.address(), as);
  if (!agent.ok()) return agent.status();
  return devices::snmp::make_snmp_outlets(*std::move(agent), *std::move(spoken));
}

}  // namespace busbar::daemon
