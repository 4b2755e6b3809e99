// Retention of evidence: what no event, audit record or state names any longer goes, and nothing else does.
//
// Two kinds of rows stand beside the evidence, in its own family, so that a sweep costs what changed since the last
// one and not what is kept:
//   reference   one a name and an event or audit record that has it; written and erased with that record
//   candidate   a name that may be without any: just stored, or a record that had it was trimmed
// A candidate that records still have is settled by the next sweep; one that only state has stays a candidate. Of one that
// nothing has, the evidence goes first (one batch), then its file, then the candidate: a crash between leaves a candidate,
// and the next start removes what is left of it.
#include <algorithm>
#include <iterator>

#include "actors/core/log.hpp"
#include "storage/evidence.hpp"
#include "storage/journal_log.hpp"
#include "storage/key_codec.hpp"

namespace busbar::storage {

absl::Status journal_log::read_candidates() {
  const auto [first, last] = candidate_range();
  return store_->scan(family::evidence, first, last, [this](std::string_view key, std::string_view) {
    candidates_.insert(name_of_candidate(key));
    return true;
  });
}

// A file is there before the batch that names it: should that never come, the candidate finds it.
absl::Status journal_log::announce_evidence_files(const core::journal_batch& batch) {
  store_write write;
  for (const auto& bytes : batch.evidence) {
    if (!is_kept_as_file(*bytes)) continue;
    const std::string name = core::evidence_name(*bytes);
    note_candidate(name);
    write.put(family::evidence, candidate_key(name), {});
  }
  return write.empty() ? absl::OkStatus() : store_->write(write);
}

void journal_log::note_candidate(const std::string& name) {
  candidates_.insert(name);
  young_.insert(name);  // who stored it names it in a batch of its own, soon
}

bool journal_log::evidence_sweep_is_due() const {
  return !candidates_.empty() &&
         options_.clock().monotonic_ns - swept_ns_ >= std::chrono::nanoseconds(options_.evidence_sweep).count();
}

absl::StatusOr<bool> journal_log::has_record(const std::string& name) const {
  const auto [first, last] = reference_range(name);
  bool any = false;
  const absl::Status scanned = store_->scan(family::evidence, first, last, [&any](std::string_view, std::string_view) {
    any = true;
    return false;
  });
  if (!scanned.ok()) return scanned;
  return any;
}

absl::Status journal_log::sweep_evidence() {
  swept_ns_ = options_.clock().monotonic_ns;
  std::vector<std::string> looked_at;
  for (const std::string& name : candidates_) {
    if (!young_.contains(name) && looked_at.size() < options_.trim_step) looked_at.push_back(name);
  }
  young_.clear();
  if (looked_at.empty()) return absl::OkStatus();
  std::set<std::string> in_state;
  absl::Status done = store_->scan(family::state, {}, {}, [&in_state](std::string_view, std::string_view value) {
    for (std::string& name : evidence_named_in(value)) in_state.insert(std::move(name));
    return true;
  });
  if (!done.ok()) return done;
  store_write first, last;
  std::vector<std::string> settled, gone;
  for (const std::string& name : looked_at) {
    const auto kept = has_record(name);
    if (!kept.ok()) return kept.status();
    if (*kept) {
      first.erase(family::evidence, candidate_key(name));
      settled.push_back(name);
    } else if (!in_state.contains(name)) {
      first.erase(family::evidence, name);
      last.erase(family::evidence, candidate_key(name));
      gone.push_back(name);
    }
  }
  if (!first.empty()) done = store_->write(first);
  if (!done.ok()) return done;
  for (const std::string& name : settled) candidates_.erase(name);
  if (gone.empty()) return absl::OkStatus();
  if (!options_.evidence_directory.empty()) done = remove_evidence_files(options_.evidence_directory, gone);
  if (done.ok()) done = store_->write(last);
  if (!done.ok()) return done;
  for (const std::string& name : gone) candidates_.erase(name);
  core::log_info("evidence_removed", {{"count", gone.size()}});
  return absl::OkStatus();
}

// The start's sweep: what a crash or the last life left. Not being able to is no reason not to start.
void journal_log::sweep_at_start() {
  if (candidates_.empty()) return;
  if (const absl::Status done = sweep_evidence(); !done.ok())
    core::log_warning("evidence_sweep_failed", {{"error", std::string(done.message())}});
}

// Schema 2: stores of schema 1 kept all evidence and had no rows beside it.
absl::Status index_evidence(const store& before, store_write& write) {
  for (const family where : {family::events, family::audit}) {
    const absl::Status scanned = before.scan(where, {}, {}, [&write, where](std::string_view key, std::string_view value) {
      for (const std::string& name : evidence_named_in(value))
        write.put(family::evidence, reference_key(name, where == family::audit, key), {});
      return true;
    });
    if (!scanned.ok()) return scanned;
  }
  return before.scan(family::evidence, {}, {}, [&write](std::string_view key, std::string_view) {
    if (is_evidence_name(key)) write.put(family::evidence, candidate_key(key), {});
    return true;
  });
}

}  // namespace busbar::storage
