// Racks of busbar-sim with their busbar-interlocks, as installed: what a benchmark on the wire starts, arms,
// wets, resets and repairs. Times are the simulator's stamps of CLOCK_MONOTONIC, never the interlock's word.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "actors/rack/interlock_wire.hpp"
#include "busbar/interlock/interlock.pb.h"
#include "tests/bench/bench_programs.hpp"

namespace busbar::bench {

inline constexpr std::int64_t ms = 1'000'000;

// The interlock's socket: requests by one caller at a time, heartbeats taken by a thread of its own.
class interlock_link {
 public:
  explicit interlock_link(const std::string& path);
  ~interlock_link();
  interlock_link(const interlock_link&) = delete;
  interlock_link& operator=(const interlock_link&) = delete;

  interlock::Answer ask(interlock::Request request);
  // When a heartbeat said so; gives up after two minutes.
  std::int64_t until(const std::string& what, const std::function<bool(const interlock::Status&)>& wanted);
  // The same, and false after so long.
  bool within(std::int64_t limit_ns, const std::function<bool(const interlock::Status&)>& wanted);
  interlock::Status last() const;
  // What the interlock said to be the device's interval, last before this moment.
  std::int64_t interval_ns(const std::string& device, std::int64_t before_ns) const;

 private:
  void listen();

  int fd_;
  std::uint64_t id_ = 0;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::shared_ptr<const interlock::Status> last_;
  std::int64_t last_at_ns_ = 0;
  std::uint64_t heard_ = 0;
  std::map<std::uint64_t, interlock::Answer> answers_;
  std::map<std::string, std::vector<std::pair<std::int64_t, std::int64_t>>> intervals_;  // changes: when, ns
  bool gone_ = false;
  std::thread thread_;
};

// One request that reached a device, or an event that left it.
struct wire_row {
  std::uint64_t number = 0;  // 0: an event
  std::int64_t received = 0;
  std::int64_t written = 0;  // no later than the last byte of the reply or event; 0: not known
  std::string device;
  std::string path;
  std::string act;
  std::string argument;
  std::string address;  // of an event
};

// The simulator's journal, read as it grows; rows are kept for a minute. Thread-safe.
class wire_journal {
 public:
  explicit wire_journal(std::string path) : path_(std::move(path)) {}
  // Rows received (events: written) at or after this moment of devices whose name begins so.
  std::vector<wire_row> since(std::int64_t from_ns, const std::string& device_prefix);

 private:
  void read_on();

  std::mutex mutex_;
  std::string path_;
  std::streamoff read_to_ = 0;
  std::deque<wire_row> rows_;
};

// POSTs to many BMCs at once, over connections that it keeps.
struct wire_post {
  std::string address;
  std::string path;
  std::string body;
};
class wire_poster {
 public:
  explicit wire_poster(std::string password);
  ~wire_poster();
  wire_poster(const wire_poster&) = delete;
  wire_poster& operator=(const wire_poster&) = delete;
  // How many were not accepted.
  std::size_t post(const std::vector<wire_post>& what);

 private:
  std::string password_;
  void* multi_;
};

struct rig_options {
  std::string programs;  // folder of busbar-sim and busbar-interlock
  std::string folder;    // empty, for state
  std::string network = "127.29";
  std::string profile = "instant";
  int racks = 2;
  int confirm_ms = 0;  // of every tray's detectors
  std::uint64_t seed = 7;
};

class interlock_rig;

// One rack of the rig; its methods are one thread's.
class rack_rig {
 public:
  rack_rig(interlock_rig& of, int number);
  ~rack_rig();

  const std::string& name() const { return name_; }
  std::string tray_name(int index) const;  // 0 to 17 compute trays, 18 to 26 switch trays
  std::string address_of(int index) const;
  static std::vector<std::string> detectors_of(int index);
  std::string rope() const { return "cdu01/" + name_ + "_rope"; }
  static constexpr int trays = 27;

  interlock_link& link() { return *link_; }
  pid_t interlock() const { return pid_; }
  void arm();
  // Valves open, shelves on; hosts on where their BMC is up.
  void power_up();
  void hosts_on(const std::vector<int>& which);
  void hosts_on();
  // Every device armed, no trip or latch open; or gives up.
  void until_ready();
  // By a person at the operator's socket; tried until it is dry for long enough. What was asked last.
  void reset(const std::string& scope);
  void fault(const std::string& kind, const std::string& target, const json& more = {});
  std::int64_t wet(const std::string& target);  // when it became wet
  void clear(const std::string& kind, const std::string& target);

 private:
  interlock::ArmedDevice device(const std::string& name, const char* kind, const std::string& address) const;

  interlock_rig& of_;
  int number_;
  std::string name_;
  pid_t pid_ = -1;
  std::unique_ptr<interlock_link> link_;
  std::unique_ptr<interlock_link> person_;
  std::unique_ptr<wire_poster> poster_;
};

class interlock_rig {
 public:
  explicit interlock_rig(rig_options options);
  ~interlock_rig();  // ends the programs
  interlock_rig(const interlock_rig&) = delete;
  interlock_rig& operator=(const interlock_rig&) = delete;

  std::vector<std::unique_ptr<rack_rig>>& racks() { return racks_; }
  wire_journal& journal() { return *journal_; }
  const rig_options& options() const { return options_; }
  const std::string& password() const { return password_; }
  std::string sim_socket() const { return options_.folder + "/sim/sim.sock"; }
  int stroke_ms() const;
  int simulator_nice() const;  // as the host has granted it
  std::string certificate_pin(const std::string& address) const;

 private:
  rig_options options_;
  std::string password_;
  pid_t sim_ = -1;
  std::unique_ptr<wire_journal> journal_;
  std::vector<std::unique_ptr<rack_rig>> racks_;
};

// p of the sorted values, the nearest above; -1 of none.
double share_of(std::vector<double> values, double p);
void print_row(const char* what, const std::vector<double>& values, const char* unit);

}  // namespace busbar::bench
