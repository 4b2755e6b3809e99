#include "actors/core/reading_board.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace busbar::core {
namespace {

// A value that is no number is no value.
void keep_finite(reading& what) {
  if (!what.value.has_value() || std::isfinite(*what.value)) return;
  what.value.reset();
  what.quality = reading_quality::bad;
}

// In order, each name under one of them at most: what another one covers is left out.
std::vector<std::string_view> disjoint(std::span<const std::string> prefixes) {
  std::vector<std::string_view> sorted(prefixes.begin(), prefixes.end());
  std::sort(sorted.begin(), sorted.end());
  std::vector<std::string_view> kept;
  for (const std::string_view one : sorted) {
    if (kept.empty() || !one.starts_with(kept.back())) kept.push_back(one);
  }
  if (kept.empty()) kept.emplace_back();
  return kept;
}

}  // namespace

void reading_board::changed(entry& of) {
  if (of.version == 0) ++known_;
  of.version = version_;
  ++of.times;
}

reading_board::entry& reading_board::entry_of(std::string_view name) {
  if (const auto found = by_name_.find(name); found != by_name_.end()) return entries_[found->second];
  if (const auto left = forgotten_.find(name); left != forgotten_.end()) {
    entry& back = entries_[left->second];
    back.forgotten = false;
    by_name_.insert(forgotten_.extract(left));
    return back;
  }
  entry& made = entries_.emplace_back();
  made.name = std::string(name);
  by_name_.emplace(made.name, static_cast<place>(entries_.size() - 1));
  return made;
}

void reading_board::put(std::span<const named_reading> batch) {
  if (batch.empty()) return;
  const std::lock_guard lock(guard_);
  ++version_;
  puts_ += batch.size();
  for (const named_reading& one : batch) {
    entry& into = entry_of(one.name);
    into.what = one.what;
    keep_finite(into.what);
    changed(into);
  }
}

reading_board::place reading_board::place_of(std::string_view name, std::string_view unit,
                                             std::string_view source) {
  const std::lock_guard lock(guard_);
  entry& into = entry_of(name);
  into.what.unit = std::string(unit);
  into.what.source = std::string(source);
  return by_name_.find(name)->second;
}

void reading_board::put(std::span<const placed_reading> batch, std::int64_t received_wall_ns) {
  if (batch.empty()) return;
  const std::lock_guard lock(guard_);
  ++version_;
  for (const placed_reading& one : batch) {
    if (one.at >= entries_.size() || entries_[one.at].forgotten) continue;
    entry& into = entries_[one.at];
    into.what.value = one.value;
    into.what.quality = one.quality;
    into.what.source_wall_ns = one.source_wall_ns;
    into.what.received_wall_ns = received_wall_ns;
    keep_finite(into.what);
    changed(into);
    ++puts_;
  }
}

void reading_board::mark_stale(std::string_view prefix, std::int64_t before_wall_ns) {
  const std::lock_guard lock(guard_);
  ++version_;
  for (auto at = by_name_.lower_bound(prefix); at != by_name_.end() && at->first.starts_with(prefix); ++at) {
    entry& of = entries_[at->second];
    if (of.what.quality != reading_quality::good || of.what.received_wall_ns >= before_wall_ns) continue;
    of.what.quality = reading_quality::stale;
    changed(of);
  }
}

void reading_board::mark_stale(std::span<const place> places) {
  const std::lock_guard lock(guard_);
  ++version_;
  for (const place one : places) {
    if (one >= entries_.size()) continue;
    entry& of = entries_[one];
    if (of.forgotten || of.what.quality != reading_quality::good) continue;
    of.what.quality = reading_quality::stale;
    changed(of);
  }
}

void reading_board::forget(std::string_view prefix) {
  const std::lock_guard lock(guard_);
  for (auto at = by_name_.lower_bound(prefix); at != by_name_.end() && at->first.starts_with(prefix);) {
    entry& of = entries_[at->second];
    if (of.version != 0) --known_;
    of.what = {};
    of.version = 0;
    of.forgotten = true;
    const auto next = std::next(at);
    forgotten_.insert(by_name_.extract(at));
    at = next;
  }
}

std::optional<reading> reading_board::find(std::string_view name) const {
  const std::lock_guard lock(guard_);
  const auto found = by_name_.find(name);
  if (found == by_name_.end() || entries_[found->second].version == 0) return std::nullopt;
  return entries_[found->second].what;
}

std::vector<named_reading> reading_board::under(std::string_view prefix) const {
  const std::vector<std::string> one = {std::string(prefix)};
  return since(0, one).points;
}

reading_board::changes reading_board::since(std::uint64_t version,
                                            std::span<const std::string> prefixes) const {
  changes out;
  out.version = look(version, prefixes, [&out](const sight& seen) {
    out.points.push_back({std::string(seen.name), seen.what});
  });
  return out;
}

std::uint64_t reading_board::look(std::uint64_t version, std::span<const std::string> prefixes,
                                  const std::function<void(const sight&)>& each) const {
  const std::lock_guard lock(guard_);
  if (version_ <= version) return version_;
  for (const std::string_view prefix : disjoint(prefixes)) {
    auto at = prefix.empty() ? by_name_.begin() : by_name_.lower_bound(prefix);
    for (; at != by_name_.end() && at->first.starts_with(prefix); ++at) {
      const entry& of = entries_[at->second];
      if (of.version > version) each({of.name, at->second, of.what, of.times});
    }
  }
  return version_;
}

std::size_t reading_board::size() const {
  const std::lock_guard lock(guard_);
  return known_;
}

std::uint64_t reading_board::puts() const {
  const std::lock_guard lock(guard_);
  return puts_;
}

}  // namespace busbar::core
