// What is due later in a simulated site, in time order; equal times run in the order in which they were put
// in.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "daemon/sim/http_message.hpp"

namespace busbar::sim {

class agenda {
 public:
  using action = std::function<void(instant)>;

  void at(instant when, action what) { entries_.emplace(when, std::move(what)); }

  std::optional<instant> next() const {
    return entries_.empty() ? std::nullopt : std::optional<instant>(entries_.begin()->first);
  }

  // The earliest entry due at `now`; the caller moves physics to its time before it runs it.
  std::optional<std::pair<instant, action>> take(instant now) {
    if (entries_.empty() || entries_.begin()->first > now) {
      return std::nullopt;
    }
    auto entry = entries_.extract(entries_.begin());
    return std::make_pair(entry.key(), std::move(entry.mapped()));
  }

 private:
  std::multimap<instant, action> entries_;
};

}  // namespace busbar::sim
