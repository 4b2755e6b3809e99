// One resource in full, for people; and what of it differs from what is declared. Pure.
#pragma once

#include <google/protobuf/message.h>

#include <string>
#include <vector>

#include "daemon/cli/table.hpp"

namespace busbar::cli {

// Every field that says something, in the order of the API; lists of messages as small tables.
std::string describe_text(const google::protobuf::Message& item, wall_time now);

// Name, what, expected, seen: identity, firmware, drift. Seen is "unknown" where nothing was read.
std::vector<row> differences(const google::protobuf::Message& item);

}  // namespace busbar::cli
