// What any thread may ask of the journal.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "actors/core/digest.hpp"
#include "actors/core/errors.hpp"
#include "storage/evidence.hpp"
#include "storage/journal_log.hpp"
#include "storage/key_codec.hpp"

namespace busbar::storage {
namespace {

std::shared_ptr<const journal::Event> parse_event(std::string_view value) {
  auto event = std::make_shared<journal::Event>();
  if (!event->ParseFromArray(value.data(), static_cast<int>(value.size()))) return nullptr;
  return event;
}

absl::Status undecodable(std::string_view key) {
  const auto where = parse_event_key(key);
  return core::make_fault(core::fault::STORE_DAMAGED,
                          fmt::format("the event at revision {} cannot be decoded", where ? where->first : 0));
}

}  // namespace

journal::JournalHead journal_log::head_copy() const {
  const std::scoped_lock lock(mutex_);
  return head_;
}

journal::Position journal_log::head() const {
  journal::Position position;
  position.set_journal_id(identity_.journal_id());
  const std::scoped_lock lock(mutex_);
  position.set_revision(head_.revision());
  return position;
}

bool journal_log::comes_from(std::string_view journal_id) const {
  const auto& parents = identity_.parents();
  return identity_.journal_id() == journal_id ||
         std::any_of(parents.begin(), parents.end(),
                     [journal_id](const auto& parent) { return parent.journal_id() == journal_id; });
}

journal::Position journal_log::oldest() const {
  journal::Position position;
  position.set_journal_id(identity_.journal_id());
  const std::scoped_lock lock(mutex_);
  position.set_revision(head_.oldest_revision() - 1);
  return position;
}

absl::Status journal_log::check_position(const journal::Position& from) const {
  const journal::Position first = oldest();
  const journal::Position last = head();
  std::string why;
  if (from.journal_id() != identity_.journal_id()) {
    why = fmt::format("is of journal '{}', this is another", from.journal_id());
  } else if (from.revision() < first.revision()) {
    why = "is older than what is kept";
  } else if (from.revision() > last.revision()) {
    why = fmt::format("is ahead of the journal, which is at {}", last.revision());
  } else {
    return absl::OkStatus();
  }
  return core::make_fault(core::fault::POSITION_OUT_OF_RANGE,
                          fmt::format("position {} {}; oldest: {}@{}; list again", from.revision(), why,
                                      first.journal_id(), first.revision()));
}

absl::StatusOr<std::vector<std::shared_ptr<const journal::Event>>> journal_log::read_events(
    const journal::Position& from, std::uint64_t to, std::size_t limit) const {
  if (const absl::Status done = check_position(from); !done.ok()) return done;
  std::vector<std::shared_ptr<const journal::Event>> events;
  const std::string end = to == std::numeric_limits<std::uint64_t>::max() ? std::string() : event_key(to + 1, 0);
  absl::Status failed;
  const absl::Status scanned =
      store_->scan(family::events, event_key(from.revision() + 1, 0), end,
                   [&events, &failed, limit](std::string_view key, std::string_view value) {
                     auto event = parse_event(value);
                     if (event == nullptr) {
                       failed = undecodable(key);
                       return false;
                     }
                     const bool next_revision =
                         !events.empty() && events.back()->position().revision() != event->position().revision();
                     if (next_revision && events.size() >= limit) return false;
                     events.push_back(std::move(event));
                     return true;
                   });
  if (!scanned.ok()) return scanned;
  if (!failed.ok()) return failed;
  // Retention may have taken some of it meanwhile.
  if (const absl::Status done = check_position(from); !done.ok()) return done;
  return events;
}

absl::StatusOr<std::vector<std::shared_ptr<const journal::Event>>> journal_log::last_events(std::size_t limit) const {
  std::vector<std::shared_ptr<const journal::Event>> events;
  absl::Status failed;
  const absl::Status scanned = store_->scan_back(
      family::events, {}, {}, [&events, &failed, limit](std::string_view key, std::string_view value) {
        if (events.size() >= limit) return false;
        auto event = parse_event(value);
        if (event == nullptr) {
          failed = undecodable(key);
          return false;
        }
        events.push_back(std::move(event));
        return true;
      });
  if (!scanned.ok()) return scanned;
  if (!failed.ok()) return failed;
  std::reverse(events.begin(), events.end());
  return events;
}

absl::Status journal_log::verify_audit() const {
  const journal::JournalHead head = head_copy();
  std::string digest;
  bool first = true;
  absl::Status failed;
  const absl::Status scanned =
      store_->scan(family::audit, {}, {}, [&](std::string_view key, std::string_view value) {
        const auto event = parse_event(value);
        if (event == nullptr || (!first && event->previous_audit_digest() != digest)) {
          const auto where = parse_event_key(key);
          failed = core::make_fault(core::fault::STORE_DAMAGED, fmt::format("the audit record at revision {} does not "
                                                                            "follow from the one before it",
                                                                            where ? where->first : 0));
          return false;
        }
        first = false;
        digest = core::sha256(value);
        return true;
      });
  if (!scanned.ok()) return scanned;
  if (!failed.ok()) return failed;
  if (!first && digest != head.audit_digest()) {
    return core::make_fault(core::fault::STORE_DAMAGED, "the newest audit record is not the one the head names");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> journal_log::read_evidence(std::string_view name) const {
  const auto stored = store_->get(family::evidence, name);
  if (!stored.ok()) return stored.status();
  if (!stored->has_value() || (*stored)->empty()) {
    return core::make_fault(core::fault::UNKNOWN_TARGET, fmt::format("there is no evidence {}", name));
  }
  if ((**stored)[0] == 'f') return read_evidence_file(options_.evidence_directory, name);
  std::string bytes = (*stored)->substr(1);
  if (core::evidence_name(bytes) != name) {
    return core::make_fault(core::fault::STORE_DAMAGED, fmt::format("evidence {} was changed", name));
  }
  return bytes;
}

store_health journal_log::health() const { return store_->health(); }

absl::Status journal_log::probe() { return store_->probe(); }

absl::Status journal_log::close() { return store_->close(); }

}  // namespace busbar::storage
