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

// busbar-interlock reset|bypass|trip|status ...; exit code. argv[1] names the command.
int run_operator_command(int argc, char** argv, const std::string& default_run_dir);
bool is_operator_command(const std::string& name);

}  // namespace busbar::interlock
