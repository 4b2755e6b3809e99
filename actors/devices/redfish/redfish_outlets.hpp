// The outlets of one rack PDU over Redfish (PowerDistribution, Outlet). Calls may come from any thread; they
// are answered on the scheduler's I/O thread.
#pragma once

#include <memory>
#include <string>

#include "actors/devices/bmc.hpp"
#include "actors/devices/outlet.hpp"
#include "actors/devices/redfish/device.hpp"
#include "actors/devices/redfish/http_transport.hpp"

namespace busbar::devices::redfish {

// No session is opened: each request carries the login, so that nothing is left behind. pdu: the Id of one of
// several RackPDUs behind an address; empty: the only one.
std::shared_ptr<outlet_bank> make_redfish_outlets(std::string address, credentials login, std::string pdu,
                                                  std::shared_ptr<http_transport> transport,
                                                  std::shared_ptr<scheduler> loop,
                                                  device_options options = {});

}  // namespace busbar::devices::redfish
