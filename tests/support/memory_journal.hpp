// A journal in memory for tests: store, log and hub as a daemon wires them. `restart()` is the daemon's next life on the same
// disk. Knows no CAF; spawn the actor with core::spawn_journal(system, {log, hub}, {}, false).
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <utility>

#include "actors/core/snapshot_hub.hpp"
#include "storage/journal_log.hpp"
#include "storage/memory_store.hpp"

namespace busbar::test_support {

class memory_journal {
 public:
  memory_journal() { start(); }
  explicit memory_journal(storage::journal_options limits) : limits_(std::move(limits)) { start(); }

  // Drops all that is not on the "disk" and opens again.
  void restart() {
    hub->close();
    hub.reset();
    log.reset();
    start();
  }

  std::shared_ptr<storage::memory_store> disk = std::make_shared<storage::memory_store>();
  std::shared_ptr<core::instant> now = std::make_shared<core::instant>(core::instant{1'000'000'000, 1'767'225'600'000'000'000});
  std::shared_ptr<storage::journal_log> log;
  std::shared_ptr<core::snapshot_hub> hub;
  storage::journal_contents found;  // what the last start loaded

 private:
  void start() {
    storage::journal_options options = limits_;
    options.clock = [now = now] { return *now; };
    options.boot_id = "boot-of-test";
    auto opened = storage::journal_log::open(disk, std::move(options));
    auto loaded = opened.ok() ? (*opened)->load() : absl::StatusOr<storage::journal_contents>(opened.status());
    if (!loaded.ok()) {
      std::cerr << "a journal in memory did not open: " << loaded.status() << '\n';
      std::abort();
    }
    log = *opened;
    found = std::move(*loaded);
    core::hub_options hub_options;
    hub_options.history = [log = log](const journal::Position& from, std::uint64_t to, std::size_t limit) {
      return log->read_events(from, to, limit);
    };
    hub = std::make_shared<core::snapshot_hub>(found.state, std::move(hub_options));
  }

  const storage::journal_options limits_{};
};

}  // namespace busbar::test_support
