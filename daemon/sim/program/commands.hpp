// The commands of busbar-sim. Exit codes as everywhere in Busbar: 0 done, 1 false, 2 usage, 7 unreachable.
#pragma once

#include "daemon/sim/program/arguments.hpp"

namespace busbar::sim {

inline constexpr int exit_done = 0;
inline constexpr int exit_false = 1;
inline constexpr int exit_usage = 2;
inline constexpr int exit_unreachable = 7;

int run_command(const arguments& line);  // until SIGINT or SIGTERM
int replay_command(const arguments& line);
int fault_command(const arguments& line);
int load_command(const arguments& line);
int truth_command(const arguments& line);
int journal_command(const arguments& line);

}  // namespace busbar::sim
