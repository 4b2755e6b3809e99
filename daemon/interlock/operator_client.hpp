// What a person asks of a running interlock, from the program's own command line.
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

// Exit code of a status: 3 without an arming record (nothing is watched, so nothing is known), 1 when a
// device is not armed or a latch, a trip, a bypass, a suspicion or damage is open, else 0.
int judge_status(const Status& status);

// busbar-interlock reset|bypass|trip|status ...; exit code. argv[1] names the command.
int run_operator_command(int argc, char** argv, const std::string& default_run_dir);
bool is_operator_command(const std::string& name);

}  // namespace busbar::interlock
