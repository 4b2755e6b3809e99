// Where the edge reads: immutable snapshots of all state, and watching from a position. The journal publishes after each sync;
// any thread reads and subscribes. No lock is held while a callback runs or the disk is read.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "actors/core/journal_batch.hpp"

namespace busbar::core {

// An object and the revision that wrote it last (its etag).
template <class Message>
struct versioned {
  std::uint64_t revision = 0;
  std::shared_ptr<const Message> object;
};

template <class Message>
using object_map = std::map<std::string, versioned<Message>, std::less<>>;

// All state at one position. Immutable; kinds that a commit does not touch are shared with the snapshot before.
struct snapshot {
  journal::Position position;
  std::shared_ptr<const object_map<journal::Node>> nodes;          // compute and switch trays, and shelves
  std::shared_ptr<const object_map<journal::Rack>> racks;
  std::shared_ptr<const object_map<journal::Endpoint>> endpoints;
  std::shared_ptr<const object_map<journal::Operation>> operations;
  std::shared_ptr<const object_map<std::string>> records;
  std::shared_ptr<const object_map<journal::Valve>> valves;
  std::shared_ptr<const object_map<journal::Pdu>> pdus;
  std::shared_ptr<const object_map<journal::Cdu>> cdus;

  snapshot();
  // nullptr if there is none.
  std::shared_ptr<const journal::Node> node(std::string_view name) const;
  std::shared_ptr<const journal::Rack> rack(std::string_view name) const;
  std::shared_ptr<const journal::Endpoint> endpoint(std::string_view name) const;
  std::shared_ptr<const journal::Operation> operation(std::string_view id) const;
  std::shared_ptr<const std::string> record(std::string_view name) const;
  std::shared_ptr<const journal::Valve> valve(std::string_view name) const;
  std::shared_ptr<const journal::Pdu> pdu(std::string_view name) const;
  std::shared_ptr<const journal::Cdu> cdu(std::string_view name) const;
};

// Reads events after `from` (exclusive), oldest first, at most `limit`, up to revision `to` (inclusive), never part of a
// revision. OUT_OF_RANGE names the oldest position. Called on the subscriber's thread; storage::journal_log is one.
using event_source = std::function<absl::StatusOr<std::vector<std::shared_ptr<const journal::Event>>>(
    const journal::Position& from, std::uint64_t to, std::size_t limit)>;

struct watch_filter {
  std::vector<object_kind> kinds;  // empty: all
  std::string object_prefix;       // "r01", "r01/c07"; empty: all
  bool events = true;
  bool objects = true;
};

struct watch_item {
  enum class type { event, changed, erased, bookmark };
  type what = type::bookmark;
  journal::Position position;                   // watch again from here and miss nothing (some items may come twice)
  std::uint64_t revision = 0;                   // that made it
  std::shared_ptr<const journal::Event> event;  // what == event
  object_kind kind = object_kind::record;       // changed, erased
  std::string name;                             // changed, erased
  std::optional<journal_object> object;         // changed
};

struct watch_options {
  std::size_t queue_limit = 1024;      // items a live watcher may lag behind before it is ended (at most hub_options.kept_items)
  std::uint64_t bookmark_every = 256;  // revisions that passed the filter by before a bookmark tells the position
};

struct hub_options {
  std::size_t kept_items = 8192;       // newest items held in memory for watchers
  event_source history;                // older ones; absent: only what is held in memory
};

class snapshot_hub;

// One watcher. Owned by the edge; destroying it ends it. take() is for one thread at a time.
class subscription {
 public:
  ~subscription();
  subscription(const subscription&) = delete;
  subscription& operator=(const subscription&) = delete;

  // The next items in order, at most about `limit` (a revision is not split). Call it once after subscribing. Empty: nothing
  // now, `wake` will be called once when there may be more. RESOURCE_EXHAUSTED (WATCH_OVERFLOW): lagged too far; OUT_OF_RANGE: retention overtook it;
  // UNAVAILABLE: the hub closed. After an error it stays ended.
  absl::StatusOr<std::vector<watch_item>> take(std::size_t limit);
  // All up to here has been taken: what a bookmark on a timer says.
  journal::Position position() const;

 private:
  friend class snapshot_hub;
  struct state;
  explicit subscription(std::shared_ptr<state> shared);
  absl::Status take_history(std::unique_lock<std::mutex>& lock, std::size_t limit, std::vector<watch_item>& items);
  void take_changed(std::vector<watch_item>& items);
  void take_held(std::unique_lock<std::mutex>& lock, std::size_t limit, std::vector<watch_item>& items);
  const std::shared_ptr<state> state_;
};

class snapshot_hub {
 public:
  explicit snapshot_hub(std::shared_ptr<const snapshot> initial, hub_options options = {});
  ~snapshot_hub();
  snapshot_hub(const snapshot_hub&) = delete;
  snapshot_hub& operator=(const snapshot_hub&) = delete;

  // Never null, never blocks on a writer's work.
  std::shared_ptr<const snapshot> read() const;

  // The journal's thread, after the sync, in order of revision.
  void publish(std::span<const committed_batch> commits);

  // Watches what comes after `from` (exclusive). A `from` without journal id means "from now". `wake` runs on the
  // publisher's thread, must not block and must not call take() itself: it hands over to the watcher's own thread.
  absl::StatusOr<std::unique_ptr<subscription>> subscribe(const journal::Position& from, watch_filter filter,
                                                          watch_options options, std::function<void()> wake);

  // Ordered stop: every watcher is ended with UNAVAILABLE.
  void close();

 private:
  friend class subscription;
  struct core;
  std::shared_ptr<core> core_;
};

// The snapshot after `commits`; shares what they do not touch.
std::shared_ptr<const snapshot> advance(const snapshot& before, std::span<const committed_batch> commits);

}  // namespace busbar::core
