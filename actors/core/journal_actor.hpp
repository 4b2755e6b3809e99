// JOURNAL: the one writer of state. Gathers all batches its mailbox holds, syncs once, then answers all and publishes them.
#pragma once

#include <caf/fwd.hpp>

#include <cstddef>
#include <chrono>
#include <memory>

#include "actors/core/journal_interface.hpp"

namespace busbar::storage {
class journal_log;
}

namespace busbar::core {

class snapshot_hub;

struct journal_config {
  std::size_t group_limit = 512;                          // batches synced together at most
  std::chrono::milliseconds probe_interval{1000};         // while the store refuses writes
};

// log and hub outlive the actor; the actor is the only one who commits to log. In the daemon spawned detached (it blocks on
// the disk), in tests attached: system.spawn<caf::detached>(journal, ...) or system.spawn(journal, ...).
struct journal_dependencies {
  std::shared_ptr<storage::journal_log> log;
  std::shared_ptr<snapshot_hub> hub;
};

// Stop: send it exit; what was gathered is written and answered first.
journal_actor spawn_journal(caf::actor_system& system, journal_dependencies dependencies, journal_config config,
                            bool detached);

}  // namespace busbar::core
