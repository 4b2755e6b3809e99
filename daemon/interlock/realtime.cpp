#include "daemon/interlock/realtime.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <systemd/sd-daemon.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace busbar::interlock {
namespace {

constexpr int priority = 20;  // above all ordinary work, below the kernel's own threads

std::int64_t read_clock_ns(clockid_t which) {
  timespec now{};
  ::clock_gettime(which, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace

host_grants ask_host_grants() {
  host_grants grants;
  sched_param parameters{};
  parameters.sched_priority = priority;
  grants.realtime = ::sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &parameters) == 0;
  if (!grants.realtime) grants.detail = fmt::format("SCHED_FIFO refused: {}", std::strerror(errno));
  // With a finite limit a later allocation would fail instead of being paged: worse than not locking.
  rlimit limit{};
  const bool unlimited =
      ::getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && (limit.rlim_cur == RLIM_INFINITY || ::geteuid() == 0);
  grants.memory_locked = unlimited && ::mlockall(MCL_CURRENT | MCL_FUTURE) == 0;
  if (!grants.memory_locked) {
    if (!grants.detail.empty()) grants.detail += "; ";
    grants.detail += unlimited ? fmt::format("mlockall refused: {}", std::strerror(errno))
                               : std::string("memory not locked: RLIMIT_MEMLOCK is finite");
  }
  return grants;
}

void notify_ready(const std::string& text) {
  ::sd_notify(0, ("READY=1\nSTATUS=" + text).c_str());
}
void notify_stopping() {
  ::sd_notify(0, "STOPPING=1");
}
void notify_alive() {
  ::sd_notify(0, "WATCHDOG=1");
}

std::int64_t monotonic_ms() {
  return read_clock_ns(CLOCK_MONOTONIC) / 1'000'000;
}
std::int64_t wall_ns() {
  return read_clock_ns(CLOCK_REALTIME);
}

void say_line(const std::string& instance, bool alarm, const std::string& text) {
  static std::uint64_t dropped = 0;  // one thread
  pollfd out{STDERR_FILENO, POLLOUT, 0};
  if (::poll(&out, 1, 0) != 1 || (out.revents & POLLOUT) == 0) {
    ++dropped;
    return;
  }
  std::string line = fmt::format("busbar-interlock {} {}: {}", instance, alarm ? "ALARM" : "info", text);
  if (dropped > 0) line += fmt::format(" ({} lines before this one were dropped)", dropped);
  dropped = 0;
  line += '\n';
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace busbar::interlock
