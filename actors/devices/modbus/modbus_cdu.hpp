// A CDU over Modbus TCP through its register map. The map's point names say what each register is
// (modbus_cdu.cpp); what a map does not have stays unknown. Calls may come from any thread; they are answered
// on the loop's.
#pragma once

#include <memory>

#include "actors/devices/cdu.hpp"
#include "actors/devices/modbus/map_device.hpp"

namespace busbar::devices::modbus {

std::shared_ptr<cdu> make_modbus_cdu(std::shared_ptr<link> wire, register_map map,
                                     map_device::clock_ns clock);

// Pure: what the points of a poll say about the CDU.
cdu_facts cdu_facts_of(const register_map& map, const point_batch& points);

}  // namespace busbar::devices::modbus
