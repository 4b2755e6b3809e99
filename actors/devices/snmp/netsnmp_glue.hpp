// The corner of the SNMP driver that speaks net-snmp's own types. Only snmp_client.cpp includes it.
#pragma once

// net-snmp wants its configuration first.
#include <net-snmp/net-snmp-config.h>

#include <net-snmp/net-snmp-includes.h>

#include <cstddef>
#include <string>

#include "actors/devices/snmp/snmp_client.hpp"

namespace busbar::devices::snmp {

// Once a process: no configuration files, no state on disk, no MIBs; OIDs are numbers here.
void prepare_library();

bool parse_oid(const std::string& text, oid* out, std::size_t& length);
variable read_variable(const netsnmp_variable_list& from);

// authPriv with SHA and AES-128. `user` lives until the session is open.
bool use_v3(netsnmp_session& wanted, std::string& user, const login& as);

// The library keeps the first keys it saw for a user of an engine, process-wide, and would go on with them
// after the passwords were changed.
void forget_user(const std::string& engine, const std::string& user);

}  // namespace busbar::devices::snmp
