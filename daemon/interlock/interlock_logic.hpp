// What the interlock decides: which devices are armed, when the gate on host power is open, which record it
// takes, which latch a person may reset. What leaks and what is done about it is trip_logic's. step() is
// pure: no I/O, no clock. Times are milliseconds of one monotonic clock.
#pragma once

#include <absl/status/status.h>

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "busbar/interlock/interlock.pb.h"
#include "daemon/interlock/record_rules.hpp"
#include "daemon/interlock/trip_logic.hpp"

namespace busbar::interlock {

using verdict = DetectorReading::Verdict;

inline constexpr std::int64_t blind_window_max_ms = 10 * 60 * 1000;
inline constexpr std::size_t blind_devices_max = 6;  // of one rack at once
inline constexpr std::uint64_t latch_number_max = std::uint64_t{1} << 53U;

struct device_state {
  ArmedDevice spec;
  bool online = false;                        // pinned connection and a session of the trip account
  std::string trouble = "not connected yet";  // why the last attempt or poll failed; empty after a whole poll
  std::map<std::string, reading> readings;    // of the last poll that answered
  std::optional<std::int64_t> read_at_ms;     // end of that poll
  std::optional<std::int64_t> dry_since_ms;   // every needed detector dry in each poll since
  std::string cannot;  // what of a trip the device does not offer; empty: nothing is missing
  std::array<std::int64_t, 31> poll_times_ms{};  // of the last polls, for the median
  std::size_t polls = 0;
  bool streaming = false;        // its event stream lives
  std::int64_t interval_ms = 0;  // that followed the last reading
  std::int64_t blind_since_ms = 0;
  std::int64_t blind_until_ms =
      0;  // 0: no window; a window that is extended still ends 10 minutes after its start
};

struct state {
  std::string rack;
  std::optional<ArmingRecord> record;
  std::string record_trouble = "no arming record yet";
  bool record_unreadable =
      false;  // one lies on disk that could not be opened: busbard's word alone replaces it not
  std::map<std::string, device_state> devices;
  std::map<std::string, Latch> latches;      // open ones by device: one leak, one latch
  std::uint64_t last_latch_number = 0;       // of LEAK_SEEN and RESET: what busbard imports
  trips trip;                                // its last_number counts the lines of every kind
  std::uint64_t durable_number = 0;          // highest on disk, synced: Status.last_record_number
  std::map<std::uint64_t, Latch> unwritten;  // lines that are not on disk yet: tried again with the next poll
  std::string latch_file_trouble;  // not empty: what was latched before is not known, all gates stay closed
  std::map<std::uint64_t, std::pair<std::uint64_t, std::string>>
      resets;  // being written: number -> request, device
};

// Events.
struct loaded {  // at the start: what the disk held
  std::optional<ArmingRecord> record;
  std::string record_trouble;  // not empty: a record lies there but cannot be trusted
  std::vector<Latch> latches;  // all that could be read, in order of number
  std::string latch_file_trouble;
  std::int64_t wall_ns = 0;
};
struct record_offered {
  std::uint64_t request = 0;
  ArmingRecord record;
  bool operator_socket = false;
  std::string reason;
};
struct record_stored {  // answer to store_record
  std::uint64_t request = 0;
  ArmingRecord record;
  absl::Status status;
};
struct device_online {
  std::string device;
};
struct device_lost {
  std::string device;
  std::string why;
};
struct detectors_read {
  std::string device;
  std::map<std::string, reading> readings;  // by short name; a needed one that is absent is unknown
  std::int64_t took_ms = 0;
};
struct poll_failed {
  std::string device;
  std::string why;
};
struct stream_changed {
  std::string device;
  bool lives = false;
};
struct device_cannot {  // found out at the device: an action that a trip needs is not offered
  std::string device;
  std::string what;  // empty: all is offered
};
struct coolant_seen {
  std::string device;
  coolant_read values;
};
struct trip_requested {
  std::uint64_t request = 0;
  std::string scope;
  std::string reason;
  std::string principal;
  bool operator_socket = false;
};
struct bypass_asked {
  std::uint64_t request = 0;
  std::string device;
  std::string detector;
  std::string reason;
  std::string principal;
  std::int64_t length_s = 0;  // 0 ends it
  std::int64_t wall_ns = 0;
};
struct blind_asked {
  std::uint64_t request = 0;
  std::string device;
  std::int64_t length_ms = 0;
};
struct reset_asked {
  std::uint64_t request = 0;
  std::string device;  // "*": acknowledge a damaged latch file
  std::string reason;
  std::string principal;
  std::int64_t wall_ns = 0;
};
struct latch_written {
  std::uint64_t number = 0;
  absl::Status status;
};

struct lines_known {  // busbard has seen lines up to this number; beyond our own: ours were lost or put back
  std::uint64_t number = 0;
  std::int64_t wall_ns = 0;
};

using event = std::variant<loaded, lines_known, record_offered, record_stored, device_online, device_lost,
                           detectors_read, poll_failed, stream_changed, device_cannot, coolant_seen,
                           power_read, valve_read, command_ended, trip_requested, bypass_asked, blind_asked,
                           reset_asked, latch_written, tick>;

// Effects, run in order. Disk writes are synchronous; their results come back as events before the next event
// is fed.
struct store_record {
  std::uint64_t request = 0;
  ArmingRecord record;
};
struct follow_devices {};  // connections shall equal the record's devices
struct write_latch {       // wall time 0: the runner stamps it
  Latch latch;
  bool sync = true;  // false: lost with the host, not with the process; read back after a restart
};
struct answer {
  std::uint64_t request = 0;
  absl::Status status;
  std::string fault;
};
struct publish {};  // something a gate depends on changed: a heartbeat now
struct say {
  bool alarm = false;
  std::string text;
};

using effect = std::variant<store_record, follow_devices, command, read_back, read_detectors, keep_evidence,
                            write_latch, answer, publish, say>;

[[nodiscard]] std::vector<effect> step(state& now_state, const event& what, std::int64_t now_ms);

// When step() wants a tick; nothing: not before something else happens.
std::optional<std::int64_t> next_due_ms(const state& of);

// max(poll_min, poll_service_times x the median of the last poll times), in steps of 50 ms. A tray that is
// dry and whose event stream lives is read again once a second, as is what has no detectors: its power, its
// valves.
std::int64_t poll_interval_ms(const state& of, const device_state& device);

// Beyond this age a reading is stale.
std::int64_t stale_after_ms(const state& of, const device_state& device);

// A device's row and the whole heartbeat, as they stand at now_ms. Freshness is judged here, so silence alone
// disarms.
DeviceStatus device_status(const state& of, const device_state& device, std::int64_t now_ms);
void fill_status(const state& of, std::int64_t now_ms, Status* status);

}  // namespace busbar::interlock
