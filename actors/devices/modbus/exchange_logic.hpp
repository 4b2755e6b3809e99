// One Modbus TCP connection: which request is under way, which reply belongs to it, when to give up. Pure:
// events in, effects out; the caller owns socket and clock.
//
// A reply belongs to the request under way when transaction, unit, function and length fit; every other frame
// is dropped. So a late reply never answers a later request: its transaction is retired, and it only teaches
// the time-out. One request at a time: many devices serve no more.
#pragma once

#include <absl/status/statusor.h>

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "actors/devices/modbus/frame.hpp"

namespace busbar::devices::modbus {

enum class priority : std::uint8_t { safety, command, telemetry };
inline constexpr std::size_t priorities = 3;

struct exchange_options {
  // The time-out follows the round trips seen (RFC 6298: mean + 4 deviations) between these two.
  std::int64_t timeout_min_ns = 50'000'000;
  std::int64_t timeout_max_ns = 2'000'000'000;
  unsigned read_attempts = 3;       // a write is sent once: whether a lost one took is for its owner to read
  std::size_t most_retired = 256;   // unanswered transactions before the connection is made anew
  std::size_t most_waiting = 1024;  // requests in the queue, all priorities
  std::int64_t reconnect_min_ns = 100'000'000;
  std::int64_t reconnect_max_ns = 5'000'000'000;
  std::int64_t busy_pause_ns = 50'000'000;  // after "busy" or "acknowledged"
};

struct send_bytes {
  std::string bytes;
};
struct completed {
  std::uint64_t ticket = 0;
  absl::StatusOr<std::vector<std::uint16_t>> result;
};
struct open_connection {};
struct close_connection {};
using exchange_effect = std::variant<send_bytes, completed, open_connection, close_connection>;
using exchange_effects = std::vector<exchange_effect>;

struct exchange_counts {
  std::uint64_t sent = 0, answered = 0, timeouts = 0;
  std::uint64_t late = 0;     // replies to transactions given up
  std::uint64_t foreign = 0;  // fit no request: unknown transaction, or other unit, function, length
  std::uint64_t connections_lost = 0;
};

class exchange {
 public:
  explicit exchange(std::string device, exchange_options options = {});

  // Answered by one completed effect, at the latest at the deadline.
  void submit(std::uint64_t ticket, request wanted, priority urgency, std::int64_t deadline_ns,
              std::int64_t now_ns, exchange_effects& effects);
  void connected(std::int64_t now_ns, exchange_effects& effects);
  void disconnected(std::string_view why, std::int64_t now_ns, exchange_effects& effects);
  void received(std::string_view bytes, std::int64_t now_ns, exchange_effects& effects);
  void wake(std::int64_t now_ns, exchange_effects& effects);

  // When wake wants to be called; INT64_MAX: not at all.
  std::int64_t next_wake_ns() const;
  std::int64_t timeout_ns() const { return timeout_ns_; }
  const exchange_counts& counts() const { return counts_; }

 private:
  struct waiting {
    std::uint64_t ticket = 0;
    request wanted;
    std::int64_t deadline_ns = 0;
    unsigned attempts = 0;
    absl::Status last;  // of an attempt before
  };
  struct under_way {
    waiting what;
    std::uint16_t transaction = 0;
    std::int64_t sent_ns = 0;
    std::int64_t gives_up_ns = 0;
  };
  struct retired {
    std::uint16_t transaction = 0;
    std::int64_t sent_ns = 0;
  };
  enum class link { closed, opening, open };

  void pump(std::int64_t now_ns, exchange_effects& effects);
  void send(waiting next, std::int64_t now_ns, exchange_effects& effects);
  void take(const frame& came, std::int64_t now_ns, exchange_effects& effects);
  bool take_late(const frame& came, std::int64_t now_ns);
  void give_up(std::int64_t now_ns, exchange_effects& effects);
  void again_or_fail(waiting what, priority urgency, absl::Status why, std::int64_t now_ns,
                     exchange_effects& effects);
  void expire(std::int64_t now_ns, exchange_effects& effects);
  void drop_link(std::string_view why, std::int64_t now_ns, exchange_effects& effects);
  void learn(std::int64_t round_trip_ns);
  std::uint16_t fresh_transaction();
  std::size_t queued() const;

  std::string device_;
  exchange_options options_;
  link link_ = link::closed;
  frame_reader reader_;
  std::array<std::deque<waiting>, priorities> queues_;
  std::optional<under_way> now_;
  priority now_urgency_ = priority::telemetry;
  std::deque<retired> retired_;
  std::uint16_t last_transaction_ = 0;
  std::int64_t timeout_ns_;
  double mean_ns_ = 0, deviation_ns_ = 0;
  bool learned_ = false;
  std::int64_t reconnect_at_ns_ = 0;
  std::int64_t reconnect_pause_ns_;
  std::int64_t quiet_until_ns_ = 0;
  exchange_counts counts_;
};

}  // namespace busbar::devices::modbus
