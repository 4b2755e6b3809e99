// Retention: events by count and age, audit and request ids by age, in bounded pieces between commits.
#include <algorithm>
#include <utility>

#include "storage/journal_log.hpp"
#include "storage/key_codec.hpp"

namespace busbar::storage {
namespace {

// However old they look: a clock that jumps must not empty the journal.
constexpr std::uint64_t always_kept_events = 1000;
// While the disk runs short, a tenth of the usual number is kept.
constexpr std::uint64_t shedding_divisor = 10;

std::int64_t nanoseconds(std::chrono::hours age) { return std::chrono::nanoseconds(age).count(); }

std::int64_t wall_time_of(std::string_view value) {
  journal::Event event;
  return event.ParseFromArray(value.data(), static_cast<int>(value.size())) ? event.wall_time_ns() : 0;
}

// A record that names evidence.
struct naming {
  std::string record_key;
  std::string name;
};

void collect(std::string_view key, std::string_view value, std::vector<naming>& into) {
  for (std::string& name : evidence_named_in(value)) into.push_back({std::string(key), std::move(name)});
}

// With the record its reference goes; what it named may be without any now.
void unname(const std::vector<naming>& namings, bool audit, store_write& write, std::vector<std::string>& unnamed) {
  for (const naming& one : namings) {
    write.erase(family::evidence, reference_key(one.name, audit, one.record_key));
    write.put(family::evidence, candidate_key(one.name), {});
    unnamed.push_back(one.name);
  }
}

}  // namespace

std::uint64_t journal_log::wanted_events(const journal::JournalHead& head) const {
  const std::uint64_t limit =
      store_->health() == store_health::shedding ? options_.kept_events / shedding_divisor : options_.kept_events;
  return std::min(limit, head.event_count());
}

bool journal_log::trim_is_due() const {
  const journal::JournalHead head = head_copy();
  const std::int64_t wall_ns = options_.clock().wall_ns;
  if (head.event_count() >= wanted_events(head) + options_.trim_step) return true;
  const auto is_older = [wall_ns](std::int64_t oldest, std::chrono::hours kept) {
    return oldest != 0 && wall_ns - oldest > nanoseconds(kept);
  };
  if (evidence_sweep_is_due()) return true;
  return (head.event_count() > always_kept_events &&
          is_older(head.oldest_event_wall_ns(), options_.kept_event_age)) ||
         is_older(head.oldest_audit_wall_ns(), options_.kept_audit_age) ||
         is_older(oldest_request_wall_ns_, options_.kept_request_age);
}

absl::StatusOr<bool> journal_log::trim() {
  if (evidence_sweep_is_due()) {
    if (const absl::Status done = sweep_evidence(); !done.ok()) return done;
  }
  store_write write;
  journal::JournalHead next = head_copy();
  const std::int64_t wall_ns = options_.clock().wall_ns;
  std::vector<std::string> unnamed;  // evidence whose record goes
  if (const absl::Status done = trim_events(write, next, wall_ns, unnamed); !done.ok()) return done;
  if (const absl::Status done = trim_audit(write, next, wall_ns, unnamed); !done.ok()) return done;
  const std::vector<std::string> forgotten = trim_requests(write, wall_ns);
  if (write.empty()) return false;
  write.put(family::meta, head_key(), next.SerializeAsString());
  if (const absl::Status done = store_->write(write); !done.ok()) return done;
  candidates_.insert(unnamed.begin(), unnamed.end());
  for (const std::string& id : forgotten) requests_.erase(id);
  oldest_request_wall_ns_ = 0;
  for (const auto& [id, record] : requests_) {
    if (oldest_request_wall_ns_ == 0 || record.wall_time_ns() < oldest_request_wall_ns_) {
      oldest_request_wall_ns_ = record.wall_time_ns();
    }
  }
  {
    const std::scoped_lock lock(mutex_);
    head_ = std::move(next);
  }
  return trim_is_due();
}

absl::Status journal_log::trim_events(store_write& write, journal::JournalHead& next, std::int64_t wall_ns,
                                      std::vector<std::string>& unnamed) const {
  const std::uint64_t surplus = next.event_count() - wanted_events(next);
  const std::uint64_t may_go = next.event_count() > always_kept_events ? next.event_count() - always_kept_events : 0;
  const std::int64_t cutoff = wall_ns - nanoseconds(options_.kept_event_age);
  std::uint64_t seen = 0;
  std::vector<naming> namings;  // of all that was seen
  std::uint64_t cut_at = next.oldest_revision();  // first revision that stays
  std::uint64_t removed = 0;                      // events before cut_at
  std::int64_t first_kept_wall = 0;
  bool stopped = false;
  const absl::Status scanned = store_->scan(
      family::events, event_key(next.oldest_revision(), 0), {}, [&](std::string_view key, std::string_view value) {
        const auto where = parse_event_key(key);
        if (!where.has_value()) return true;
        if (where->first != cut_at) {  // a revision begins: all before it may go
          cut_at = where->first;
          removed = seen;
          first_kept_wall = wall_time_of(value);
          const bool due = seen < surplus || (first_kept_wall < cutoff && seen < may_go);
          if (!due || seen >= options_.trim_step) {
            stopped = true;
            return false;
          }
        } else if (seen == 0) {
          first_kept_wall = wall_time_of(value);
          if (surplus == 0 && (first_kept_wall >= cutoff || may_go == 0)) {
            stopped = true;
            return false;
          }
        }
        ++seen;
        collect(key, value, namings);
        return true;
      });
  if (!scanned.ok()) return scanned;
  if (!stopped) {  // all of it is due
    cut_at = next.revision() + 1;
    removed = seen;
    first_kept_wall = 0;
  }
  if (removed == 0) return absl::OkStatus();
  std::erase_if(namings, [end = event_key(cut_at, 0)](const naming& one) { return one.record_key >= end; });
  unname(namings, false, write, unnamed);
  write.erase_range(family::events, event_key(next.oldest_revision(), 0), event_key(cut_at, 0));
  next.set_oldest_revision(cut_at);
  next.set_event_count(next.event_count() - removed);
  next.set_oldest_event_wall_ns(first_kept_wall);
  return absl::OkStatus();
}

absl::Status journal_log::trim_audit(store_write& write, journal::JournalHead& next, std::int64_t wall_ns,
                                     std::vector<std::string>& unnamed) const {
  const std::int64_t cutoff = wall_ns - nanoseconds(options_.kept_audit_age);
  if (next.oldest_audit_wall_ns() == 0 || next.oldest_audit_wall_ns() >= cutoff) return absl::OkStatus();
  std::size_t seen = 0;
  std::vector<naming> namings;
  std::string end;
  std::int64_t first_kept_wall = 0;
  const absl::Status scanned =
      store_->scan(family::audit, {}, {}, [&](std::string_view key, std::string_view value) {
        first_kept_wall = wall_time_of(value);
        end.assign(key);
        if (first_kept_wall >= cutoff || seen >= options_.trim_step) return false;
        ++seen;
        collect(key, value, namings);
        first_kept_wall = 0;
        end.push_back('\0');  // just behind this one
        return true;
      });
  if (!scanned.ok() || seen == 0) return scanned;
  unname(namings, true, write, unnamed);
  write.erase_range(family::audit, event_key(0, 0), end);
  next.set_oldest_audit_wall_ns(first_kept_wall);
  return absl::OkStatus();
}

std::vector<std::string> journal_log::trim_requests(store_write& write, std::int64_t wall_ns) const {
  std::vector<std::string> forgotten;
  const std::int64_t cutoff = wall_ns - nanoseconds(options_.kept_request_age);
  if (oldest_request_wall_ns_ == 0 || oldest_request_wall_ns_ >= cutoff) return forgotten;
  for (const auto& [id, record] : requests_) {
    if (forgotten.size() >= options_.trim_step) break;
    if (record.wall_time_ns() >= cutoff) continue;
    write.erase(family::meta, request_key(id));
    forgotten.push_back(id);
  }
  return forgotten;
}

}  // namespace busbar::storage
