// What the host grants this process: real-time priority, locked memory, and the service manager's attention.
#pragma once

#include <cstdint>
#include <string>

namespace busbar::interlock {

struct host_grants {
  bool realtime = false;  // SCHED_FIFO
  bool memory_locked = false;
  std::string detail;  // what was refused, and why
};

// Asks once, at start. Refusal is no error: it is said, and shown in every Status.
host_grants ask_host_grants();

// Tells the service manager, where there is one.
void notify_ready(const std::string& text);
void notify_stopping();
void notify_alive();

std::int64_t monotonic_ms();
std::int64_t wall_ns();

// One line on stderr. Never blocks: while nobody reads, lines are dropped and counted.
void say_line(const std::string& instance, bool alarm, const std::string& text);

}  // namespace busbar::interlock
