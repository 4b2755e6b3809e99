#include "daemon/busbard/wiring_cdus.hpp"

#include <fmt/format.h>

#include <utility>

#include "actors/devices/modbus/modbus_cdu.hpp"
#include "actors/devices/redfish/redfish_cdu.hpp"
#include "storage/journal_log.hpp"

namespace busbar::daemon {

absl::StatusOr<std::shared_ptr<devices::cdu>> daemon_cdus::make(const std::string& protocol, const std::string& address,
                                                                const std::string& map, devices::credentials login) {
  if (protocol == "redfish") {
    devices::redfish::device_options options;
    options.request_timeout = std::chrono::milliseconds(2'000);  // read once a second: a late answer is of no use
    return devices::redfish::make_redfish_cdu(address, std::move(login), http_, http_, options);
  }
  if (protocol != "modbus") return absl::InvalidArgumentError(fmt::format("no protocol {} (redfish, modbus)", protocol));
  const auto text = devices::modbus::shipped_map(map);
  if (!text) return absl::InvalidArgumentError(fmt::format("no register map {} comes with this release", map));
  auto parsed = devices::modbus::parse_register_map(*text, map);
  if (!parsed.ok()) return parsed.status();
  if (modbus_ == nullptr) modbus_ = std::make_unique<devices::modbus::tcp_loop>();
  auto link = modbus_->open(address);
  if (!link.ok()) return link.status();
  return devices::modbus::make_modbus_cdu(*std::move(link), *std::move(parsed),
                                          [] { return storage::machine_instant().wall_ns; });
}

}  // namespace busbar::daemon
