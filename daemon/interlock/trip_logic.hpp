// The rack's trips: when one opens, what it commands in which order, when it has done its work. step() is
// pure: no clock, no I/O; times are nanoseconds of one monotonic clock.
//
// A trip only removes energy: its commands are ForceOff of a tray, ForceOff of a shelf, Closed of a valve,
// and there is no other. It ends when every device was READ to be in its final state, never by an answer 2xx;
// until then it repeats and complains. Its latch stands until a person resets it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "daemon/interlock/leak_suspicion.hpp"
#include "daemon/interlock/trip_plan.hpp"

namespace busbar::interlock {

struct reading {
  DetectorReading::Verdict seen = DetectorReading::UNKNOWN;
  std::string detail;
};

enum class power_seen { unknown, on, off };

// Events.
struct plan_changed {
  trip_plan plan;
};
struct sensors_read {
  std::string device;
  std::map<std::string, reading> readings;
  std::int64_t took_ns = 0;  // of the poll: its oldest part may be so old
};
struct coolant_read {  // what the CDU says of this rack; what it does not say is unknown
  std::optional<double> flow_lpm;
  std::optional<double> supply_c;
  std::optional<double> pressure_kpa;
  std::optional<double> level_percent;
};
struct power_read {  // of a tray or a shelf
  std::string device;
  power_seen seen = power_seen::unknown;
};
struct valve_read {
  std::string key;
  std::optional<double> open_percent;
};
struct command_ended {
  std::string key;
  int http = 0;  // 0: no answer
};
struct reach_changed {  // the device's connection
  std::string device;
  bool online = false;
};
struct trip_asked {
  Cause cause = EMERGENCY_STOP;
  std::string scope;  // a tray's name, or the rack's
  std::string detail;
};
struct trips_restored {  // once, after the plan: what the latch file says
  std::vector<Latch> lines;
  std::int64_t wall_ns = 0;
};
struct latch_reset {
  std::string scope;
};
struct bypass_set {
  std::string device;
  std::string detector;
  std::string owner;
  std::string reason;
  std::int64_t until_ns = 0;  // not after now: ends it
  std::int64_t until_wall_ns = 0;
};
struct tick {};

using trip_event =
    std::variant<plan_changed, sensors_read, coolant_read, power_read, valve_read, command_ended,
                 reach_changed, trip_asked, trips_restored, latch_reset, bypass_set, tick>;

// Effects, run in order; every command of a step comes before anything else.
struct command {
  std::string key;
  std::string device;
  std::string valve;
  target_kind kind = target_kind::tray;
  int attempt = 1;
};
struct read_back {
  std::string device;
};
struct read_detectors {  // now, do not wait for the next poll
  std::string device;
};
struct note {  // a line of the latch file; LEAK_SEEN and TRIP_OPENED are synced, the rest may wait
  Latch line;
};
struct keep_evidence {
  std::uint64_t trip = 0;
};
struct tell {
  bool alarm = false;
  std::string text;
};

using trip_effect = std::variant<command, read_back, read_detectors, note, keep_evidence, tell>;

struct target_state {
  trip_target what;
  bool wanted = false;  // off, cut, closed
  bool final = false;   // read to be so
  bool alarmed = false;
  int commands = 0;
  int last_http = -1;
  std::int64_t wanted_ns = 0;
  std::int64_t repeat_at_ns = 0;
  std::int64_t read_at_ns = 0;
  std::int64_t watch_at_ns = 0;  // of a tray that is off and held off: is it still
};

struct sensor_state {
  std::optional<std::int64_t> wet_since_ns;
  std::int64_t wet_last_ns = 0;
  bool asked = false;  // a reading was asked for at the end of the confirm time
};

struct trip_state {
  std::uint64_t number = 0;
  Cause cause = CAUSE_UNSPECIFIED;
  std::string scope;
  std::string detail;
  std::int64_t opened_ns = 0;
  bool rack = false;
  bool cut = false;
  bool closed = false;
  bool durable = false;
};

struct bypass_state {
  std::string owner;
  std::string reason;
  std::int64_t until_ns = 0;
};

struct hazard {  // of the coolant
  std::optional<std::int64_t> since_ns;
  bool told = false;
};

struct trips {
  trip_plan plan;
  std::vector<target_state> targets;
  std::map<std::uint64_t, trip_state> open;  // not reset; closed or not
  std::set<std::string> leaking;             // devices with a leak that nobody has reset
  std::map<std::string, std::map<std::string, sensor_state>> sensors;
  std::map<std::pair<std::string, std::string>, bypass_state> bypasses;  // device, detector
  std::map<Cause, hazard> hazards;
  std::map<std::string, std::pair<power_seen, std::int64_t>> power;  // of trays and shelves: what, when read
  std::map<std::string, bool> reach;
  std::int64_t power_asked_ns = 0;
  leak_suspicion suspicion;
  bool suspected = false;
  std::uint64_t last_number = 0;  // of all lines of the latch file
};

[[nodiscard]] std::vector<trip_effect> step(trips& of, const trip_event& what, std::int64_t now_ns);

// When step() wants a tick; nothing while it waits for nobody.
std::optional<std::int64_t> next_due_ns(const trips& of);

bool is_bypassed(const trips& of, const std::string& device, const std::string& detector);
// An unreset trip that holds this device down; null: none.
const trip_state* trip_over(const trips& of, const std::string& device);
// What an open trip still waits for: "r01/c07 off".
std::vector<std::string> waits_for(const trips& of, const trip_state& trip);
bool every_shelf_is_off(const trips& of);

}  // namespace busbar::interlock
