#include "actors/devices/modbus/exchange_logic.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace busbar::devices::modbus {
namespace {

constexpr std::int64_t never_ns = std::numeric_limits<std::int64_t>::max();

std::string text_of(const request& wanted) {
  const std::size_t words = wanted.writes() ? wanted.values.size() : wanted.count;
  return fmt::format("{} {} words at register {} of unit {}", wanted.writes() ? "write" : "read", words,
                     wanted.address, wanted.unit);
}

}  // namespace

exchange::exchange(std::string device, exchange_options options)
    : device_(std::move(device)),
      options_(options),
      timeout_ns_(options.timeout_max_ns),
      reconnect_pause_ns_(options.reconnect_min_ns) {}

std::size_t exchange::queued() const {
  std::size_t count = 0;
  for (const auto& queue : queues_) count += queue.size();
  return count;
}

void exchange::submit(std::uint64_t ticket, request wanted, priority urgency, std::int64_t deadline_ns,
                      std::int64_t now_ns, exchange_effects& effects) {
  if (const absl::Status fits = check(wanted); !fits.ok()) {
    effects.emplace_back(completed{ticket, fits});
    return;
  }
  if (queued() >= options_.most_waiting) {
    effects.push_back(
        completed{ticket, absl::ResourceExhaustedError(fmt::format("{} on {}: {} requests wait already",
                                                                   text_of(wanted), device_, queued()))});
    return;
  }
  queues_[static_cast<std::size_t>(urgency)].push_back({ticket, std::move(wanted), deadline_ns, 0, {}});
  pump(now_ns, effects);
}

void exchange::connected(std::int64_t now_ns, exchange_effects& effects) {
  link_ = link::open;
  reader_ = frame_reader();
  retired_.clear();  // their replies belong to another connection
  pump(now_ns, effects);
}

void exchange::disconnected(std::string_view why, std::int64_t now_ns, exchange_effects& effects) {
  if (link_ == link::closed) return;
  link_ = link::closed;
  ++counts_.connections_lost;
  reconnect_at_ns_ = now_ns + reconnect_pause_ns_;
  reconnect_pause_ns_ = std::min(reconnect_pause_ns_ * 2, options_.reconnect_max_ns);
  if (now_.has_value()) {
    waiting what = std::move(now_->what);
    now_.reset();
    const absl::Status lost =
        absl::UnavailableError(fmt::format("{} on {}: {}", text_of(what.wanted), device_, std::string(why)));
    again_or_fail(std::move(what), now_urgency_, lost, now_ns, effects);
  }
  pump(now_ns, effects);
}

void exchange::drop_link(std::string_view why, std::int64_t now_ns, exchange_effects& effects) {
  effects.emplace_back(close_connection{});
  disconnected(why, now_ns, effects);
}

void exchange::received(std::string_view bytes, std::int64_t now_ns, exchange_effects& effects) {
  if (link_ != link::open) return;
  reader_.feed(bytes);
  while (auto came = reader_.next()) {
    take(*came, now_ns, effects);
    if (link_ != link::open) return;
  }
  if (reader_.broken()) drop_link("sent bytes that are no Modbus TCP header", now_ns, effects);
}

bool exchange::take_late(const frame& came, std::int64_t now_ns) {
  const auto found = std::find_if(retired_.begin(), retired_.end(), [&came](const retired& one) {
    return one.transaction == came.transaction;
  });
  if (found == retired_.end()) return false;
  ++counts_.late;
  learn(now_ns - found->sent_ns);
  retired_.erase(found);
  return true;
}

void exchange::take(const frame& came, std::int64_t now_ns, exchange_effects& effects) {
  if (!now_.has_value() || came.transaction != now_->transaction) {
    if (!take_late(came, now_ns)) ++counts_.foreign;
    return;
  }
  reading said = read_reply(now_->what.wanted, came);
  if (said.how == relation::foreign) {
    ++counts_.foreign;
    return;
  }
  learn(now_ns - now_->sent_ns);
  reconnect_pause_ns_ = options_.reconnect_min_ns;
  waiting what = std::move(now_->what);
  now_.reset();
  if (said.how == relation::answers) {
    ++counts_.answered;
    effects.emplace_back(completed{what.ticket, std::move(said.words)});
  } else {
    const std::string text =
        fmt::format("{} on {}: {}", text_of(what.wanted), device_, exception_text(said.exception));
    if (exception_passes(said.exception)) {
      quiet_until_ns_ = now_ns + options_.busy_pause_ns;
      again_or_fail(std::move(what), now_urgency_, absl::UnavailableError(text), now_ns, effects);
    } else {
      effects.emplace_back(completed{what.ticket, absl::FailedPreconditionError(text)});
    }
  }
  pump(now_ns, effects);
}

// A read may be asked again while its deadline lasts; a write may not: whether it took is unknown.
void exchange::again_or_fail(waiting what, priority urgency, absl::Status why, std::int64_t now_ns,
                             exchange_effects& effects) {
  if (what.wanted.writes() || what.attempts >= options_.read_attempts || now_ns >= what.deadline_ns) {
    effects.emplace_back(completed{what.ticket, std::move(why)});
    return;
  }
  what.last = std::move(why);
  queues_[static_cast<std::size_t>(urgency)].push_front(std::move(what));
}

void exchange::give_up(std::int64_t now_ns, exchange_effects& effects) {
  ++counts_.timeouts;
  retired_.push_back({now_->transaction, now_->sent_ns});
  waiting what = std::move(now_->what);
  const std::int64_t waited_ms = (now_ns - now_->sent_ns) / 1'000'000;
  now_.reset();
  // A lost reply says that the device is slower than believed, at least for now.
  timeout_ns_ = std::min(timeout_ns_ * 2, options_.timeout_max_ns);
  const absl::Status why = absl::DeadlineExceededError(
      fmt::format("{} on {}: no answer within {} ms", text_of(what.wanted), device_, waited_ms));
  again_or_fail(std::move(what), now_urgency_, why, now_ns, effects);
  if (retired_.size() > options_.most_retired) drop_link("answers nothing any more", now_ns, effects);
}

void exchange::expire(std::int64_t now_ns, exchange_effects& effects) {
  for (auto& queue : queues_) {
    std::deque<waiting> kept;
    for (waiting& one : queue) {
      if (now_ns < one.deadline_ns) {
        kept.push_back(std::move(one));
        continue;
      }
      absl::Status why = one.last.ok()
                             ? absl::DeadlineExceededError(fmt::format("{} on {}: not sent by its deadline",
                                                                       text_of(one.wanted), device_))
                             : one.last;
      effects.emplace_back(completed{one.ticket, std::move(why)});
    }
    queue = std::move(kept);
  }
}

void exchange::wake(std::int64_t now_ns, exchange_effects& effects) {
  if (now_.has_value() && now_ns >= now_->gives_up_ns) give_up(now_ns, effects);
  expire(now_ns, effects);
  pump(now_ns, effects);
}

void exchange::pump(std::int64_t now_ns, exchange_effects& effects) {
  if (now_.has_value() || queued() == 0) return;
  if (link_ == link::closed && now_ns >= reconnect_at_ns_) {
    link_ = link::opening;
    effects.emplace_back(open_connection{});
    return;
  }
  if (link_ != link::open || now_ns < quiet_until_ns_) return;
  for (std::size_t urgency = 0; urgency < priorities; ++urgency) {
    auto& queue = queues_[urgency];
    if (queue.empty()) continue;
    waiting next = std::move(queue.front());
    queue.pop_front();
    now_urgency_ = static_cast<priority>(urgency);
    send(std::move(next), now_ns, effects);
    return;
  }
}

void exchange::send(waiting next, std::int64_t now_ns, exchange_effects& effects) {
  ++next.attempts;
  ++counts_.sent;
  under_way started;
  started.transaction = fresh_transaction();
  started.sent_ns = now_ns;
  started.gives_up_ns = std::min(now_ns + timeout_ns_, next.deadline_ns);
  effects.emplace_back(send_bytes{encode(next.wanted, started.transaction)});
  started.what = std::move(next);
  now_ = std::move(started);
}

std::uint16_t exchange::fresh_transaction() {
  const auto taken = [this](std::uint16_t id) {
    return std::any_of(retired_.begin(), retired_.end(),
                       [id](const retired& one) { return one.transaction == id; });
  };
  do {
    ++last_transaction_;
  } while (taken(last_transaction_));
  return last_transaction_;
}

// RFC 6298, section 2: gains 1/8 and 1/4.
void exchange::learn(std::int64_t round_trip_ns) {
  const auto sample = static_cast<double>(round_trip_ns);
  if (!learned_) {
    mean_ns_ = sample;
    deviation_ns_ = sample / 2;
    learned_ = true;
  } else {
    deviation_ns_ += (std::abs(sample - mean_ns_) - deviation_ns_) / 4;
    mean_ns_ += (sample - mean_ns_) / 8;
  }
  const auto wanted = static_cast<std::int64_t>(mean_ns_ + 4 * deviation_ns_);
  timeout_ns_ = std::clamp(wanted, options_.timeout_min_ns, options_.timeout_max_ns);
}

std::int64_t exchange::next_wake_ns() const {
  std::int64_t next = never_ns;
  if (now_.has_value()) next = std::min(next, now_->gives_up_ns);
  for (const auto& queue : queues_) {
    for (const waiting& one : queue) next = std::min(next, one.deadline_ns);
  }
  if (!now_.has_value() && queued() > 0) {
    if (link_ == link::closed) next = std::min(next, reconnect_at_ns_);
    if (link_ == link::open) next = std::min(next, quiet_until_ns_);
  }
  return next;
}

}  // namespace busbar::devices::modbus
