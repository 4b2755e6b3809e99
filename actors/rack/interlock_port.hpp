// What a rack asks of its interlock, and the one rule by which a heartbeat opens the gate on host power. The
// real client (interlock_client.hpp) and the one for deterministic tests (tests/support/fake_interlock.hpp)
// stand behind it.
#pragma once

#include <absl/status/status.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "busbar/interlock/interlock.pb.h"

namespace busbar::rack {

// Not heard for this long: alarm, and no host is powered on (nothing is powered off for it).
inline constexpr std::chrono::milliseconds interlock_dead_after{3000};
inline constexpr std::chrono::milliseconds blind_window_max = std::chrono::minutes(10);

enum class interlock_life {
  never_heard,  // no heartbeat since the start
  alive,
  dead,  // heard before, not for interlock_dead_after
};

std::string_view name_of(interlock_life life);

// What was last heard. Immutable and shared; status is null until the first heartbeat.
struct interlock_view {
  interlock_life life = interlock_life::never_heard;
  std::shared_ptr<const interlock::Status> status;
  std::chrono::milliseconds age{0};  // of the heartbeat, when this view was made
};

// fault is the name out of faults.def that a condition or refusal carries; empty when allowed.
struct gate_verdict {
  bool allowed = false;
  std::string fault;  // POWER_INTERLOCK_NOT_ARMED | POWER_LEAK_LATCHED | POWER_DETECTOR_UNKNOWN | TRIP_OPEN
  std::string reason;
};

// The gate on host power of one tray ("r01/c07"): open only if the interlock is alive, armed for that tray,
// not latched, not blind, and its needed detectors are dry and fresh. Pure.
gate_verdict judge_gate(const interlock_view& view, std::string_view device);

// Armed for the rack (the standby rule): alive, a sealed record held, the latch file sound, no open latch.
gate_verdict judge_rack(const interlock_view& view);

class interlock_port {
 public:
  using done = std::function<void(absl::Status)>;
  using observer = std::function<void(std::shared_ptr<const interlock_view>)>;

  virtual ~interlock_port() = default;

  // Hands a record over; answers once, after the interlock holds it sealed on disk, or with why it refused. A
  // record that widens a limit or drops a device or a detector is refused here (FAILED_PRECONDITION): that is
  // for the operator's socket.
  virtual void arm(const interlock::ArmingRecord& record, done reply) = 0;

  // A planned outage of a BMC, at most blind_window_max from now. A length of zero ends it.
  virtual void announce_blind_window(std::string device, std::chrono::milliseconds length, done reply) = 0;

  // Numbered lines of all kinds above `after`, for import into the journal.
  virtual void read_latches(std::uint64_t after,
                            std::function<void(absl::Status, std::vector<interlock::Latch>)> reply) = 0;

  // Safe from any thread; never null.
  virtual std::shared_ptr<const interlock_view> last() const = 0;

  // Called with each heartbeat and when life changes, on the implementation's thread. Set once, before the
  // first use.
  virtual void observe(observer watcher) = 0;

  gate_verdict gate(std::string_view device) const { return judge_gate(*last(), device); }
};

}  // namespace busbar::rack
