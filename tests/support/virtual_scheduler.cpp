#include "tests/support/virtual_scheduler.hpp"

#include <algorithm>
#include <iterator>
#include <limits>

namespace busbar::test_support {

std::uint64_t virtual_scheduler::after(duration delay, callback action) {
  const std::uint64_t id = next_id_++;
  queue_.emplace(key{now_ + std::max(delay, duration::zero()), id}, std::move(action));
  return id;
}

bool virtual_scheduler::cancel(std::uint64_t id) {
  const auto found =
      std::find_if(queue_.begin(), queue_.end(), [id](const auto& entry) { return entry.first.second == id; });
  if (found == queue_.end()) return false;
  queue_.erase(found);
  return true;
}

std::optional<virtual_scheduler::time_point> virtual_scheduler::next_due() const {
  if (queue_.empty()) return std::nullopt;
  return queue_.begin()->first.first;
}

std::optional<virtual_scheduler::time_point> virtual_scheduler::next_later() const {
  const auto later = queue_.upper_bound(key{now_, std::numeric_limits<std::uint64_t>::max()});
  if (later == queue_.end()) return std::nullopt;
  return later->first.first;
}

std::size_t virtual_scheduler::due_count() const {
  const auto end = queue_.upper_bound(key{now_, std::numeric_limits<std::uint64_t>::max()});
  return static_cast<std::size_t>(std::distance(queue_.begin(), end));
}

bool virtual_scheduler::run_due_at(std::size_t index) {
  auto entry = queue_.begin();
  while (entry != queue_.end() && entry->first.first <= now_ && index > 0) {
    ++entry;
    --index;
  }
  if (entry == queue_.end() || entry->first.first > now_) return false;
  const callback action = std::move(entry->second);
  queue_.erase(entry);  // before the call: the callback may schedule, cancel or clear
  action();
  return true;
}

std::size_t virtual_scheduler::run_due(std::size_t limit) {
  std::size_t ran = 0;
  while (ran < limit && run_due_at(0)) ++ran;
  return ran;
}

void virtual_scheduler::set_now(time_point now) { now_ = std::max(now_, now); }

void virtual_scheduler::advance(duration d) {
  const time_point end = now_ + d;
  run_due();
  for (auto due = next_due(); due.has_value() && *due <= end; due = next_due()) {
    set_now(*due);
    run_due();
  }
  set_now(end);
}

}  // namespace busbar::test_support
