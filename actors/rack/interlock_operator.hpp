// What a person asks of a running interlock at its operator's socket; blocks for seconds at most. The interlock's own program and
// the operator's CLI use it; busbard never does.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <string>

#include "busbar/interlock/interlock.pb.h"

namespace busbar::interlock {

// One request at the operator's socket. The interlock's refusal comes back as it gave it.
absl::Status ask_operator(const std::string& operator_socket, Request request);

// The next heartbeat, of either socket.
absl::StatusOr<Status> read_status(const std::string& socket);

}  // namespace busbar::interlock
