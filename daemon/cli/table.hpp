// Rows for people. Pure: the caller says what time it is.
#pragma once

#include <google/protobuf/message.h>

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "busbar/v1/busbar.pb.h"
#include "daemon/cli/json_text.hpp"
#include "daemon/cli/kinds.hpp"

namespace busbar::cli {

using row = std::vector<std::string>;
using wall_time = std::chrono::system_clock::time_point;

row header_of(kind of, bool wide);
row row_of(const google::protobuf::Message& item, bool wide, wall_time now);

// Columns padded to the widest, two spaces between, nothing behind the last. An empty cell shows "-".
std::string aligned(const std::vector<row>& rows);
// Header, items and a row UNREACHABLE for each daemon that did not answer.
std::string table_text(kind of, const listing& all, bool wide, wall_time now);

// PRODUCTION, FIRMWARE_CURRENT -> production, firmware_current: states in tables are the words of `explain`.
std::string word(std::string_view enum_name);
// 3m05s, 2h10m, 4d02h; "-" for a time that is not set.
std::string age_text(const google::protobuf::Timestamp& since, bool is_set, wall_time now);
// What stops it, else what it waits for.
std::string reason_text(const v1::Failure& failure, bool failed, const std::string& waits_for);

}  // namespace busbar::cli
