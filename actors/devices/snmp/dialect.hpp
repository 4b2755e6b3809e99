// How one family of rack PDUs says "outlet 7 is on": OIDs, codes and scales as data. A dialect is a JSON
// file.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/devices/outlet.hpp"

namespace busbar::devices::snmp {

// A number behind an OID. digits_oid: the device itself says how many decimal digits the number has, each
// sensor its own.
struct measured {
  std::string oid;
  double scale = 1;
  std::string digits_oid;
};

struct dialect {
  std::string name;
  std::string system_oid;  // sysObjectID of the family begins with it; empty: not told by it
  // OIDs of columns; the index of an outlet follows: "{outlet}" or, say, "{pdu}.{outlet}".
  std::string index = "{outlet}";
  std::string control_oid;
  std::int64_t control_on = 0, control_off = 0;
  std::string state_oid;
  std::vector<std::int64_t> state_on, state_off;
  std::string name_oid;
  std::optional<measured> current_a, power_w;  // of an outlet
};

absl::StatusOr<dialect> parse_dialect(std::string_view json, std::string_view source);

// "1.3.6.1.4.1.318.1.1.26.9.2.3.1.5.7"
std::string oid_of(const dialect& spoken, const std::string& column, int pdu, int outlet);
// A code that the dialect does not know is unknown, never off.
outlet_state state_of(const dialect& spoken, std::int64_t code);

std::optional<std::string_view> shipped_dialect(std::string_view name);
std::vector<std::string_view> shipped_dialects();

}  // namespace busbar::devices::snmp
