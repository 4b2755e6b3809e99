#include "daemon/busbard/rpc/event_pages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <utility>
#include <vector>

#include "daemon/busbard/rpc/convert.hpp"
#include "daemon/busbard/rpc/filter.hpp"
#include "daemon/busbard/rpc/names.hpp"
#include "daemon/busbard/rpc/pages.hpp"

namespace busbar::rpc {
namespace {

constexpr std::size_t most_looked_at = 20'000;  // events a page reads at most
constexpr std::size_t read_step = 1'000;
constexpr std::uint64_t first_stretch = 256;  // revisions
constexpr std::uint64_t longest_stretch = 4096;
constexpr std::size_t whole_stretch = 1 << 20;  // no limit: the stretch is one

using event_list = std::vector<std::shared_ptr<const journal::Event>>;

// Where a page goes on: forward, after this revision and index; backward, before them.
struct cursor {
  std::uint64_t revision = 0;
  std::uint32_t index = 0;
};

std::string token_of(const cursor& at) { return fmt::format("{}.{}", at.revision, at.index); }

absl::StatusOr<std::optional<cursor>> cursor_of(const std::string& token) {
  if (token.empty()) return std::optional<cursor>();
  unsigned long long revision = 0;
  unsigned index = 0;
  if (std::sscanf(token.c_str(), "%llu.%u", &revision, &index) != 2) {
    return absl::InvalidArgumentError("the page token is not of this list");
  }
  return std::optional<cursor>(cursor{revision, index});
}

class page_builder {
 public:
  page_builder(const v1::ListEventsRequest& request, const std::string& instance, filter chosen, std::size_t size)
      : scope_(short_name(request.object())), instance_(instance), chosen_(std::move(chosen)), size_(size) {}

  // False: the page is full, and event is the first that is not in it.
  bool take(const journal::Event& event) {
    const bool seen = scope_.empty() || is_within(event.object(), scope_) || event.operation_id() == scope_;
    if (!seen) return true;
    v1::Event shown = event_to_v1(event, instance_);
    if (!chosen_.matches(shown)) return true;
    if (static_cast<std::size_t>(page_.events_size()) == size_) return false;
    *page_.add_events() = std::move(shown);
    return true;
  }
  v1::ListEventsResponse& page() { return page_; }

 private:
  const std::string scope_;
  const std::string& instance_;
  const filter chosen_;
  const std::size_t size_;
  v1::ListEventsResponse page_;
};

absl::Status read_forward(page_builder& into, journal::Position from, cursor after, const journal::Position& head,
                          const core::event_source& events) {
  std::size_t looked = 0;
  while (looked < most_looked_at) {
    // A token in the middle of a revision reads that revision again and skips what was given.
    from.set_revision(after.index > 0 ? after.revision - 1 : after.revision);
    const absl::StatusOr<event_list> found = events(from, head.revision(), read_step);
    if (!found.ok()) return found.status();
    cursor last = after;
    for (const auto& event : *found) {
      ++looked;
      const cursor at{event->position().revision(), event->index_in_batch() + 1};
      if (at.revision == after.revision && at.index <= after.index) continue;
      if (!into.take(*event)) {
        into.page().set_next_page_token(token_of(last));
        return absl::OkStatus();
      }
      last = at;
    }
    if (found->empty() || last.revision >= head.revision()) return absl::OkStatus();
    after = {last.revision, 0};
  }
  into.page().set_next_page_token(token_of(after));
  return absl::OkStatus();
}

// Reads a stretch of revisions below `before`, walks it backward, and goes on below it.
absl::Status read_backward(page_builder& into, cursor before, const journal::Position& head, const core::event_source& events) {
  std::size_t looked = 0;
  std::uint64_t stretch = first_stretch;
  while (before.revision > 0 && looked < most_looked_at) {
    journal::Position from = head;
    from.set_revision(before.revision > stretch ? before.revision - stretch : 0);
    absl::StatusOr<event_list> found = events(from, before.revision, whole_stretch);
    if (!found.ok() && found.status().code() == absl::StatusCode::kOutOfRange) {
      if (stretch == 1) return absl::OkStatus();  // the oldest there is
      stretch /= 2;
      continue;
    }
    if (!found.ok()) return found.status();
    std::sort(found->begin(), found->end(), [](const auto& a, const auto& b) {
      return std::pair(a->position().revision(), a->index_in_batch()) > std::pair(b->position().revision(), b->index_in_batch());
    });
    for (const auto& event : *found) {
      ++looked;
      const cursor at{event->position().revision(), event->index_in_batch()};
      if (at.revision == before.revision && at.index >= before.index) continue;
      if (!into.take(*event)) {
        into.page().set_next_page_token(token_of({at.revision, at.index + 1}));
        return absl::OkStatus();
      }
    }
    before = {from.revision(), UINT32_MAX};
    stretch = std::min(stretch * 2, longest_stretch);
  }
  if (before.revision > 0) into.page().set_next_page_token(token_of(before));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<v1::ListEventsResponse> event_page(const v1::ListEventsRequest& request, const std::string& instance,
                                                  const journal::Position& head, const core::event_source& events) {
  const absl::StatusOr<std::size_t> size = page_size(request.page_size());
  if (!size.ok()) return size.status();
  absl::StatusOr<filter> chosen = filter::parse(request.filter(), v1::Event::descriptor());
  if (!chosen.ok()) return chosen.status();
  const absl::StatusOr<std::optional<cursor>> token = cursor_of(request.page_token());
  if (!token.ok()) return token.status();
  page_builder into(request, instance, *std::move(chosen), *size);
  absl::Status status;
  if (request.has_after()) {
    journal::Position from;
    from.set_journal_id(request.after().journal_id());
    from.set_revision(request.after().revision());
    status = read_forward(into, from, token->value_or(cursor{from.revision(), 0}), head, events);
  } else {
    status = read_backward(into, token->value_or(cursor{head.revision(), UINT32_MAX}), head, events);
  }
  if (!status.ok()) return status;
  *into.page().mutable_position() = position_to_v1(head);
  return std::move(into.page());
}

}  // namespace busbar::rpc
