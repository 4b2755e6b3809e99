// A CDU over Redfish (CoolingUnit, its connectors, pumps, reservoir, leak detectors, and the Controls that
// hold its set-points). Calls may come from any thread; they are answered on the scheduler's I/O thread.
#pragma once

#include <memory>
#include <string>

#include "actors/devices/cdu.hpp"
#include "actors/devices/redfish/device.hpp"
#include "actors/devices/redfish/http_transport.hpp"

namespace busbar::devices::redfish {

// No session is opened: each request carries the login, so that nothing is left behind.
std::shared_ptr<cdu> make_redfish_cdu(std::string address, credentials login,
                                      std::shared_ptr<http_transport> transport,
                                      std::shared_ptr<scheduler> loop, device_options options = {});

}  // namespace busbar::devices::redfish
