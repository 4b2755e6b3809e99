// The journal: every change of state as one atomic batch under one revision, over a store. One thread commits; any thread reads
// events and evidence. Knows no CAF; actors/core/journal_actor is its only writer in the daemon.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "actors/core/clock.hpp"
#include "actors/core/journal_batch.hpp"
#include "actors/core/snapshot_hub.hpp"
#include "storage/store.hpp"

namespace busbar::storage {

struct journal_options {
  std::function<core::instant()> clock;        // required; wall time of events, retention by age
  std::string boot_id;                         // of the machine, in every event
  std::string evidence_directory;              // files over 64 KiB; empty: all evidence inline
  bool restored = false;                       // the store is a restored copy: take a new journal_id, record the parent
  std::size_t inline_evidence_bytes = 64 << 10;
  std::uint64_t kept_events = 1'000'000;
  std::chrono::hours kept_event_age{24 * 30};
  std::chrono::hours kept_audit_age{24 * 400};
  std::chrono::hours kept_request_age{24};
  std::chrono::minutes evidence_sweep{60};     // how long evidence may stand unnamed, at least
  std::size_t trim_step = 4096;                // records one trim() removes at most
};

// What a daemon starts from.
struct journal_contents {
  std::shared_ptr<const core::snapshot> state;
  std::vector<journal::Intent> open_intents;   // in order of opening
};

class journal_log {
 public:
  // Migrates, then reads identity and head. STORE_NEWER, STORE_DAMAGED.
  static absl::StatusOr<std::shared_ptr<journal_log>> open(std::shared_ptr<store> below, journal_options options);

  // All state. Once, at start.
  absl::StatusOr<journal_contents> load() const;

  // One sync for all. One answer a batch, in order: the commit, a refusal of this batch alone (INVALID_ARGUMENT,
  // REQUEST_ID_REUSED), or the store's refusal of all. A repeated request (same body) writes nothing; its `batch` is null and
  // `earlier_operation_id` set.
  struct outcome {
    core::committed_batch commit;
    std::string earlier_operation_id;
  };
  std::vector<absl::StatusOr<outcome>> commit_many(std::span<const std::shared_ptr<const core::journal_batch>> batches);
  absl::StatusOr<outcome> commit(core::journal_batch batch);

  // "" = new; REQUEST_ID_REUSED = known with another body. Writer's thread.
  absl::StatusOr<std::string> find_request(std::string_view request_id, std::string_view body_digest) const;

  journal::Position head() const;
  // This journal, or one that it was restored from. Constant after open.
  bool comes_from(std::string_view journal_id) const;
  // The oldest position one can read on from.
  journal::Position oldest() const;
  // Events after `from`, up to revision `to` inclusive, about `limit` of them; a revision is never split.
  absl::StatusOr<std::vector<std::shared_ptr<const journal::Event>>> read_events(const journal::Position& from,
                                                                                 std::uint64_t to,
                                                                                 std::size_t limit) const;
  // The newest `limit` events, oldest of them first.
  absl::StatusOr<std::vector<std::shared_ptr<const journal::Event>>> last_events(std::size_t limit) const;
  // Walks the audit records and their digests; DATA_LOSS names the first that does not fit.
  absl::Status verify_audit() const;

  absl::StatusOr<std::string> read_evidence(std::string_view name) const;

  // Retention of events, audit, request ids and evidence, a bounded piece; true if more is waiting. Writer's thread.
  absl::StatusOr<bool> trim();
  // True if trim() would find something by count or age.
  bool trim_is_due() const;

  store_health health() const;
  // Writer's thread: gets a read-only store going again if it can.
  absl::Status probe();
  absl::Status close();

  const store& below() const { return *store_; }

 private:
  journal_log(std::shared_ptr<store> below, journal_options options);
  struct group;  // a commit_many in the making

  absl::Status read_identity();
  absl::Status read_head();
  absl::Status read_requests();
  absl::Status make_identity(bool from_parent);
  absl::StatusOr<outcome> stage(group& into, const std::shared_ptr<const core::journal_batch>& batch);
  absl::Status write_evidence_files(const core::journal_batch& batch);
  bool is_kept_as_file(std::string_view evidence) const {
    return evidence.size() > options_.inline_evidence_bytes && !options_.evidence_directory.empty();
  }
  // Retention of evidence (journal_evidence.cpp). Writer's thread.
  absl::Status read_candidates();
  absl::Status announce_evidence_files(const core::journal_batch& batch);
  void note_candidate(const std::string& name);
  absl::StatusOr<bool> has_record(const std::string& name) const;
  bool evidence_sweep_is_due() const;
  absl::Status sweep_evidence();
  void sweep_at_start();
  void stage_state(group& into, const core::journal_batch& batch) const;
  void stage_events(group& into, const core::journal_batch& batch, core::committed_batch& commit) const;
  void stage_event(group& into, journal::Event event, core::committed_batch& commit) const;
  void stage_rest(group& into, const core::journal_batch& batch);
  void settle(group& written);
  journal::JournalHead head_copy() const;
  absl::Status check_position(const journal::Position& from) const;
  std::uint64_t wanted_events(const journal::JournalHead& head) const;
  absl::Status trim_events(store_write& write, journal::JournalHead& next, std::int64_t wall_ns,
                            std::vector<std::string>& unnamed) const;
  absl::Status trim_audit(store_write& write, journal::JournalHead& next, std::int64_t wall_ns,
                            std::vector<std::string>& unnamed) const;
  std::vector<std::string> trim_requests(store_write& write, std::int64_t wall_ns) const;

  const std::shared_ptr<store> store_;
  const journal_options options_;
  journal::JournalIdentity identity_;   // constant after open
  std::unordered_map<std::string, journal::RequestRecord> requests_;  // writer's thread
  std::int64_t oldest_request_wall_ns_ = 0;                           // writer's thread
  std::set<std::string> candidates_;    // names that may be without a record; writer's thread
  std::set<std::string> young_;         // of those: stored since the last sweep, in whose batch nothing named them yet
  std::int64_t swept_ns_ = 0;           // monotonic; writer's thread
  std::uint64_t lost_revisions_ = 0;    // taken by failed writes, never used again; writer's thread
  mutable std::mutex mutex_;            // guards head_
  journal::JournalHead head_;
};

// The machine's clock and boot id, for daemons.
core::instant machine_instant();
std::string machine_boot_id();
// A fresh random UUID (version 4).
std::string new_uuid();

}  // namespace busbar::storage
