// What main and the edge know of a running rack. wiring.cpp builds the real one: store, journal, actors,
// drivers, gates; it is the one place where things are spawned and where their order stands.
#pragma once

#include <absl/status/statusor.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "actors/core/command.hpp"
#include "actors/core/command_answer.hpp"
#include "actors/core/reading_board.hpp"
#include "actors/core/snapshot_hub.hpp"
#include "actors/plant/plant_port.hpp"
#include "storage/history.hpp"

namespace busbar::manifest {
struct daemon_config;
}

namespace busbar::daemon {

// Owner: main, on its thread, but for what says otherwise. Destroyed only after the three stops.
class rack_daemon {
 public:
  virtual ~rack_daemon() = default;

  // What the edge reads; alive as long as the daemon.
  virtual std::shared_ptr<core::snapshot_hub> hub() const = 0;
  // Events from the store, thread-safe (storage::journal_log::read_events).
  virtual core::event_source events() const = 0;
  // Where this journal was restored from; empty: nowhere.
  virtual std::string journal_parent() const { return {}; }
  // What is read now, and what was; null: there is none. Thread-safe, alive as long as the daemon.
  virtual std::shared_ptr<const core::reading_board> board() const { return nullptr; }
  virtual std::shared_ptr<storage::history> history() const { return nullptr; }
  // Hands a command to OPERATIONS and returns at once. Any thread. After stop_operations() the answer is
  // UNAVAILABLE.
  virtual void submit(std::shared_ptr<const core::command> what, core::answer_ptr answer) = 0;
  // Role plant: where racks' demands go, from any thread. Null: none are heard.
  virtual std::function<void(plant::demand_ptr, plant::demand_answer_ptr)> demands() { return nullptr; }
  // Why the daemon can do less than it should (store read-only, interlock gone), for people. Any thread, does
  // not block.
  virtual std::vector<std::string> degraded() const = 0;
  // Why what the hub holds may be old, from any thread; empty: it is as the members said last.
  virtual std::string may_be_old() const { return {}; }

  // It gave up for good (the rack cannot be kept alive, the store has failed): the process must not exit with
  // 0.
  virtual bool failed() const { return false; }

  // A message through the actors and back; false if it took longer. Feeds systemd's watchdog.
  virtual bool round_trip(std::chrono::milliseconds limit) = 0;

  // The ordered stop, in this order. True: done within the limit. False: given up, logged by name, and the
  // next one is called all the same.
  virtual bool stop_operations(
      std::chrono::milliseconds limit) = 0;  // no new work; running operations stay for the next start
  virtual bool stop_devices(
      std::chrono::milliseconds limit) = 0;  // sessions deleted, I/O loop and agent gate ended
  virtual bool stop_store(std::chrono::milliseconds limit) = 0;  // journal actor ended, store closed
};

struct wire_options {
  bool accept_empty_store = false;  // begin anew though the state folder had another store
  bool accept_lost_tail = false;    // go on from before the damage of the store's log
};

// The same for a plant (wiring_plant.cpp).
absl::StatusOr<std::unique_ptr<rack_daemon>> wire_plant(const manifest::daemon_config& config,
                                                        const wire_options& options = {});

// Builds and starts the rack. An error (store of a newer release, damaged, gone, open elsewhere) starts
// nothing.
absl::StatusOr<std::unique_ptr<rack_daemon>> wire(const manifest::daemon_config& config,
                                                  const wire_options& options = {});

}  // namespace busbar::daemon
