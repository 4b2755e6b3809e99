// The outlets of one rack PDU over SNMP, in its family's dialect.
#pragma once

#include <memory>

#include "actors/devices/outlet.hpp"
#include "actors/devices/snmp/dialect.hpp"
#include "actors/devices/snmp/snmp_client.hpp"

namespace busbar::devices::snmp {

// pdu: its number where several share an agent (Raritan, Sentry), else 1.
std::shared_ptr<outlet_bank> make_snmp_outlets(std::shared_ptr<agent> wire, dialect spoken, int pdu = 1);

}  // namespace busbar::devices::snmp
