// What the wiring of every role begins and ends with: the journal's store with its vault, the actor system, and how an actor
// is ended.
#pragma once

#include <absl/status/status.h>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "actors/core/snapshot_hub.hpp"
#include "actors/manifest/daemon_config.hpp"
#include "daemon/busbard/wiring.hpp"
#include "storage/journal_log.hpp"
#include "storage/vault.hpp"

namespace busbar::daemon {

struct actor_config : caf::actor_system_config {
  actor_config();
};

// Owner: a wired daemon. Thread-safe but for open().
class wired_store {
 public:
  // kind: of the object that events about the store stand at (rack, plant).
  absl::Status open(const manifest::daemon_config& config, const wire_options& how, const std::string& kind);

  const std::shared_ptr<storage::journal_log>& log() const { return log_; }
  const std::shared_ptr<core::snapshot_hub>& hub() const { return hub_; }
  const std::shared_ptr<storage::vault>& vault() const { return vault_; }
  core::event_source events() const;
  // Why what the hub holds may be old; empty: it is not.
  std::string may_be_old() const;
  // Empty: it takes writes.
  std::string why_degraded() const;
  bool failed() const;

 private:
  std::shared_ptr<storage::store> store_;
  std::shared_ptr<storage::journal_log> log_;
  std::shared_ptr<core::snapshot_hub> hub_;
  std::shared_ptr<storage::vault> vault_;
  mutable std::atomic<std::int64_t> no_writes_since_s_{0};  // 0: it takes them
};

// Tells an actor to end and waits for it; false when it took longer. Watches before it tells, by the handle: an actor that is
// already gone must not be watched by its address.
template <class Handle, class Tell>
bool end_actor(caf::actor_system& system, Handle& who, std::chrono::milliseconds limit, const Tell& tell) {
  caf::scoped_actor waiter(system);
  waiter->monitor(who);
  tell(who);
  bool ended = false;
  waiter->receive([&ended](const caf::down_msg&) { ended = true; }, caf::after(limit) >> [] {});
  who = nullptr;
  return ended;
}

inline const auto tell_exit = [](const auto& who) { caf::anon_send_exit(who, caf::exit_reason::user_shutdown); };

}  // namespace busbar::daemon
