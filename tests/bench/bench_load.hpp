// What else a host does while reactions are measured on it: busy cores, readers of telemetry, alarms, a
// bring-up of another rack.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/bench/interlock_rig.hpp"

namespace busbar::bench {

// One busy thread a core, at normal priority.
class busy_cores {
 public:
  busy_cores();
  ~busy_cores();
  busy_cores(const busy_cores&) = delete;
  busy_cores& operator=(const busy_cores&) = delete;

 private:
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

// How much of all cores' time was not idle since construction, 0 to 1; of /proc/stat.
class busy_share {
 public:
  busy_share() : begin_(read()) {}
  double now() const;

 private:
  struct ticks {
    double idle = 0;
    double all = 0;
  };
  static ticks read();
  ticks begin_;
};

// Processor seconds of a process so far, user and system.
double cpu_seconds(pid_t pid);
double resident_mib(pid_t pid);

// Reads the metric reports of every tray and shelf of every rack at the pace that the baseline names for
// busbard: the fast ones at 1 Hz, the rest every 10 s.
class telemetry_readers {
 public:
  explicit telemetry_readers(interlock_rig& of);
  ~telemetry_readers();
  telemetry_readers(const telemetry_readers&) = delete;
  telemetry_readers& operator=(const telemetry_readers&) = delete;
  std::uint64_t reads() const { return reads_; }

 private:
  struct place {
    std::string address;
    std::string report;
    std::int64_t every_ns = 0;
    std::int64_t due_ns = 0;
  };
  void run(std::vector<place> places, const std::string& password);

  std::atomic<bool> stop_{false};
  std::atomic<std::uint64_t> reads_{0};
  std::vector<std::thread> threads_;
};

// Brings a rack of another simulator from dark to production again and again, by a busbard of its own, until
// it ends: tests/bench/bring_up_beside.py, which writes one line a bring-up.
class bring_up_beside {
 public:
  bring_up_beside(const std::string& programs, std::string log);
  ~bring_up_beside();
  bring_up_beside(const bring_up_beside&) = delete;
  bring_up_beside& operator=(const bring_up_beside&) = delete;
  int done() const;    // so many reached production
  int failed() const;  // so many did not

 private:
  int lines(const std::string& word) const;
  std::string log_;
  pid_t pid_ = -1;
};

}  // namespace busbar::bench
