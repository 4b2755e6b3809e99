// Redfish bodies as the interlock reads them: links, collection members, one detector. The truth table is the
// driver's (actors/devices/redfish/leak_table.cpp), so that the two can never judge one body differently.
// Foreign bytes in, never an exception out; whatever is not plainly dry or plainly wet is unknown.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/devices/redfish/decode.hpp"
#include "daemon/interlock/interlock_logic.hpp"

namespace busbar::interlock {

using devices::redfish::raw_leak;

inline constexpr std::size_t body_max = 256U * 1024U;
inline constexpr std::size_t members_max = 1024;

// The "@odata.id" at a path of object keys ({"Links", "Sessions"}); only a plain path on the same host is a
// link.
std::optional<std::string> link_at(std::string_view body, const std::vector<std::string>& keys);

// A path that may stand in a request line as it is.
bool is_plain_path(std::string_view text);

// The members of a collection, at most members_max. Empty optional: no collection.
std::optional<std::vector<std::string>> member_links(std::string_view body);

// The verdict on one detector's body. Another detector's body, a body that is no JSON object: unknown.
// quirks: the profile of the truth table, empty = standard.
reading decode_detector(std::string_view body, std::string_view expected_id, raw_leak raw,
                        std::string_view quirks = {});

reading decode_detector(devices::redfish::json_view body, std::string_view expected_id, raw_leak raw,
                        std::string_view quirks = {});

// The detector's own analog value (a voltage with a limit).
raw_leak decode_raw(std::string_view body);

// Whether a detector's Id is the one that the SKU calls by `name`: "Chassis_0_LeakDetector_0_ColdPlate" is
// "0_ColdPlate".
bool is_detector(std::string_view id, std::string_view name);

std::string_view last_segment(std::string_view uri);

}  // namespace busbar::interlock
