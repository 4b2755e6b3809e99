// What a person asks of a running interlock, from the program's own command line.
#pragma once

#include <string>

#include "actors/rack/interlock_operator.hpp"

namespace busbar::interlock {

// Exit code of a status: 3 without an arming record (nothing is watched, so nothing is known), 1 when a
// device is not armed or a latch, a trip, a bypass, a suspicion or damage is open, else 0.
int judge_status(const Status& status);

// busbar-interlock reset|bypass|trip|status ...; exit code. argv[1] names the command.
int run_operator_command(int argc, char** argv, const std::string& default_run_dir);
bool is_operator_command(const std::string& name);

}  // namespace busbar::interlock
