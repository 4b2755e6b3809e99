// What `wait --for FIELD=VALUE` may ask for: judged before anything is waited for, so that a slip is told at once and not by
// the time limit.
#pragma once

#include <google/protobuf/message.h>

#include <optional>
#include <string>

#include "daemon/cli/kinds.hpp"

namespace busbar::cli {

// Empty when items of this kind can come to hold the condition; else what is wrong with it and what there is instead.
std::string wrong_condition(const kind_info& of, const std::string& condition);
// True, false, or nothing when the value is not known yet. The condition was judged before.
std::optional<bool> holds(const google::protobuf::Message& item, const std::string& condition);

}  // namespace busbar::cli
