#include "actors/core/reading_board.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace busbar::core {

void reading_board::store(entry& into, reading what) {
  if (what.value.has_value() && !std::isfinite(*what.value)) {
    what.value.reset();
    what.quality = reading_quality::bad;
  }
  into.what = std::move(what);
  into.version = version_;
}

bool reading_board::matches(std::string_view name, std::span<const std::string> prefixes) {
  return prefixes.empty() || std::any_of(prefixes.begin(), prefixes.end(), [name](const std::string& prefix) {
           return name.starts_with(prefix);
         });
}

void reading_board::put(std::span<const named_reading> batch) {
  if (batch.empty()) return;
  const std::lock_guard lock(guard_);
  ++version_;
  for (const named_reading& one : batch) store(points_[one.name], one.what);
}

void reading_board::mark_stale(std::string_view prefix, std::int64_t before_wall_ns) {
  const std::lock_guard lock(guard_);
  ++version_;
  for (auto at = points_.lower_bound(prefix); at != points_.end() && at->first.starts_with(prefix); ++at) {
    reading& what = at->second.what;
    if (what.quality != reading_quality::good || what.received_wall_ns >= before_wall_ns) continue;
    what.quality = reading_quality::stale;
    at->second.version = version_;
  }
}

void reading_board::forget(std::string_view prefix) {
  const std::lock_guard lock(guard_);
  auto first = points_.lower_bound(prefix);
  auto last = first;
  while (last != points_.end() && last->first.starts_with(prefix)) ++last;
  points_.erase(first, last);
}

std::optional<reading> reading_board::find(std::string_view name) const {
  const std::lock_guard lock(guard_);
  const auto found = points_.find(name);
  if (found == points_.end()) return std::nullopt;
  return found->second.what;
}

std::vector<named_reading> reading_board::under(std::string_view prefix) const {
  const std::lock_guard lock(guard_);
  std::vector<named_reading> found;
  for (auto at = points_.lower_bound(prefix); at != points_.end() && at->first.starts_with(prefix); ++at)
    found.push_back({at->first, at->second.what});
  return found;
}

reading_board::changes reading_board::since(std::uint64_t version,
                                            std::span<const std::string> prefixes) const {
  const std::lock_guard lock(guard_);
  changes out;
  out.version = version_;
  for (const auto& [name, of] : points_) {
    if (of.version > version && matches(name, prefixes)) out.points.push_back({name, of.what});
  }
  return out;
}

std::size_t reading_board::size() const {
  const std::lock_guard lock(guard_);
  return points_.size();
}

}  // namespace busbar::core
