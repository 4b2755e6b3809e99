// The real drivers: bmc and cooling_source over Redfish. Calls may come from any thread; they run, and are
// answered, on the scheduler's I/O thread. Letting go of a driver answers all that is open with
// BMC_UNREACHABLE (UNAVAILABLE).
#pragma once

#include <memory>

#include "actors/devices/bmc.hpp"
#include "actors/devices/redfish/device.hpp"
#include "actors/devices/redfish/http_transport.hpp"

namespace busbar::devices::redfish {

std::shared_ptr<bmc> make_redfish_bmc(std::string address, MemberKind kind,
                                      std::shared_ptr<http_transport> transport,
                                      std::shared_ptr<scheduler> loop, device_options options);
std::shared_ptr<cooling_source> make_redfish_cooling(std::string address, credentials login,
                                                     std::shared_ptr<http_transport> transport,
                                                     std::shared_ptr<scheduler> loop, device_options options);

std::shared_ptr<driver_factory> make_redfish_factory(std::shared_ptr<http_transport> transport,
                                                     std::shared_ptr<scheduler> loop,
                                                     device_options options = {});

}  // namespace busbar::devices::redfish
