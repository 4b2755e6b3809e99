#include "actors/devices/modbus/exchange_logic.hpp"

#include <gtest/gtest.h>

#include <map>

#include "tests/support/modbus_server.hpp"

namespace busbar::devices::modbus {
namespace {

constexpr std::int64_t ms = 1'000'000;

request read_of(std::uint16_t address, std::uint16_t count = 1) {
  return {function::read_holding, 1, address, count, {}};
}

// One exchange with a clock in hand; what it sends is kept, what it answers is looked up by ticket.
struct bench {
  explicit bench(exchange_options options = {}) : talk("10.0.0.7:502", options) {}

  void take(exchange_effects effects) {
    for (auto& effect : effects) {
      if (auto* bytes = std::get_if<send_bytes>(&effect)) sent.push_back(bytes->bytes);
      if (auto* answer = std::get_if<completed>(&effect)) {
        EXPECT_TRUE(answers.emplace(answer->ticket, answer->result).second)
            << "answered twice: " << answer->ticket;
      }
      if (std::holds_alternative<open_connection>(effect)) ++opened;
      if (std::holds_alternative<close_connection>(effect)) ++closed;
    }
  }
  void submit(std::uint64_t ticket, request wanted, priority urgency = priority::telemetry,
              std::int64_t deadline = 10'000 * ms) {
    exchange_effects effects;
    talk.submit(ticket, std::move(wanted), urgency, deadline, now, effects);
    take(std::move(effects));
  }
  void connect() {
    exchange_effects effects;
    talk.connected(now, effects);
    take(std::move(effects));
  }
  void receive(const std::string& bytes) {
    exchange_effects effects;
    talk.received(bytes, now, effects);
    take(std::move(effects));
  }
  void at(std::int64_t when) {
    now = when;
    exchange_effects effects;
    talk.wake(now, effects);
    take(std::move(effects));
  }
  frame last() const {
    frame_reader reader;
    reader.feed(sent.back());
    return *reader.next();
  }
  std::string honest() const { return encode(test::honest_reply(last())); }

  exchange talk;
  std::int64_t now = 0;
  std::vector<std::string> sent;
  std::map<std::uint64_t, absl::StatusOr<std::vector<std::uint16_t>>> answers;
  int opened = 0, closed = 0;
};

TEST(modbus_exchange, opens_the_connection_with_the_first_request_and_answers_it) {
  bench b;
  b.submit(1, read_of(40, 2));
  EXPECT_EQ(b.opened, 1);
  EXPECT_TRUE(b.sent.empty());
  b.connect();
  ASSERT_EQ(b.sent.size(), 1U);
  b.receive(b.honest());
  EXPECT_EQ(*b.answers.at(1), (std::vector<std::uint16_t>{test::register_of(40), test::register_of(41)}));
}

TEST(modbus_exchange, a_late_reply_answers_no_later_request) {
  bench b({.timeout_min_ns = 20 * ms, .timeout_max_ns = 20 * ms, .read_attempts = 1});
  b.submit(1, read_of(10));
  b.connect();
  const std::string late = b.honest();
  b.at(20 * ms);
  EXPECT_EQ(b.answers.at(1).status().code(), absl::StatusCode::kDeadlineExceeded);
  b.submit(2, read_of(11));
  b.receive(late);
  EXPECT_FALSE(b.answers.contains(2));
  EXPECT_EQ(b.talk.counts().late, 1U);
  b.receive(b.honest());
  EXPECT_EQ(b.answers.at(2)->front(), test::register_of(11));
}

// Every way in which a frame can carry the right transaction and still be another's answer.
TEST(modbus_exchange, drops_a_frame_of_another_unit_function_or_length) {
  bench b;
  b.submit(1, read_of(10, 2));
  b.connect();
  const frame right = test::honest_reply(b.last());
  frame wrong = right;
  wrong.unit = 9;
  b.receive(encode(wrong));
  wrong = right;
  wrong.pdu[0] = 4;
  b.receive(encode(wrong));
  wrong = right;
  wrong.pdu = wrong.pdu.substr(0, 4);
  b.receive(encode(wrong));
  wrong.pdu = right.pdu;
  wrong.pdu[1] = 2;  // says one word, carries two
  b.receive(encode(wrong));
  wrong.pdu = std::string("\x84\x02", 2);  // another function's exception
  b.receive(encode(wrong));
  EXPECT_TRUE(b.answers.empty());
  EXPECT_EQ(b.talk.counts().foreign, 5U);
  b.receive(encode(right));
  EXPECT_TRUE(b.answers.at(1).ok());
}

TEST(modbus_exchange, a_write_echo_of_another_register_or_value_is_no_answer) {
  bench b;
  b.submit(1, {function::write_single, 1, 7, 0, {55}});
  b.connect();
  frame wrong = test::honest_reply(b.last());
  wrong.pdu[4] = 56;
  b.receive(encode(wrong));
  wrong.pdu[4] = 55;
  wrong.pdu[2] = 8;
  b.receive(encode(wrong));
  EXPECT_TRUE(b.answers.empty());
  b.receive(b.honest());
  EXPECT_TRUE(b.answers.at(1).ok());
}

TEST(modbus_exchange, repeats_a_lost_read_and_never_a_lost_write) {
  bench b({.timeout_min_ns = 20 * ms, .timeout_max_ns = 20 * ms, .read_attempts = 3});
  b.submit(1, read_of(5));
  b.connect();
  b.at(20 * ms);
  EXPECT_EQ(b.sent.size(), 2U);
  b.receive(b.honest());
  EXPECT_TRUE(b.answers.at(1).ok());
  b.submit(2, {function::write_single, 1, 7, 0, {1}});
  EXPECT_EQ(b.sent.size(), 3U);
  b.at(60 * ms);
  EXPECT_EQ(b.sent.size(), 3U);
  EXPECT_EQ(b.answers.at(2).status().code(), absl::StatusCode::kDeadlineExceeded);
}

TEST(modbus_exchange, safety_goes_before_commands_before_telemetry) {
  bench b;
  b.submit(1, read_of(1));
  b.connect();
  b.submit(2, read_of(2), priority::telemetry);
  b.submit(3, read_of(3), priority::command);
  b.submit(4, read_of(4), priority::safety);
  std::vector<int> order;
  for (int i = 0; i < 4; ++i) {
    order.push_back(b.last().pdu[2]);
    b.receive(b.honest());
  }
  EXPECT_EQ(order, (std::vector<int>{1, 4, 3, 2}));
}

TEST(modbus_exchange, bytes_that_are_no_header_close_the_connection_and_the_read_is_asked_again) {
  bench b;
  b.submit(1, read_of(1));
  b.connect();
  b.receive("HTTP/1.1 400 Bad Request\r\n");
  EXPECT_EQ(b.closed, 1);
  EXPECT_EQ(b.opened, 1);
  b.at(100 * ms);  // the pause before a new connection
  EXPECT_EQ(b.opened, 2);
  b.connect();
  b.receive(b.honest());
  EXPECT_TRUE(b.answers.at(1).ok());
}

TEST(modbus_exchange, answers_by_the_deadline_though_nobody_listens) {
  bench b;
  b.submit(1, read_of(1), priority::telemetry, 500 * ms);
  for (std::int64_t next = b.talk.next_wake_ns(); next <= 500 * ms && b.answers.empty();
       next = b.talk.next_wake_ns()) {
    exchange_effects effects;
    b.talk.disconnected("refused", b.now, effects);
    b.take(std::move(effects));
    b.at(b.talk.next_wake_ns());
  }
  ASSERT_TRUE(b.answers.contains(1));
  EXPECT_FALSE(b.answers.at(1).ok());
  EXPECT_LE(b.now, 500 * ms);
}

TEST(modbus_exchange, the_timeout_grows_with_a_slow_device_and_shrinks_again) {
  bench b;
  b.submit(1, read_of(1));
  b.connect();
  for (std::uint64_t i = 2; i < 40; ++i) {
    b.now += 1 * ms;
    b.receive(b.honest());
    b.submit(i, read_of(1));
  }
  EXPECT_EQ(b.talk.timeout_ns(), 50 * ms);
  const std::string slow = b.honest();
  b.at(b.now + 50 * ms);  // given up, and doubled
  EXPECT_GE(b.talk.timeout_ns(), 100 * ms);
  b.now += 250 * ms;
  b.receive(slow);  // came after 300 ms
  EXPECT_GE(b.talk.timeout_ns(), 250 * ms);
}

TEST(modbus_exchange, a_busy_device_is_asked_again_later_and_a_refusal_is_final) {
  bench b;
  b.submit(1, read_of(1));
  b.connect();
  frame busy = b.last();
  busy.pdu = std::string("\x83\x06", 2);
  b.receive(encode(busy));
  EXPECT_EQ(b.sent.size(), 1U);
  b.at(50 * ms);
  EXPECT_EQ(b.sent.size(), 2U);
  frame refused = b.last();
  refused.pdu = std::string("\x83\x02", 2);
  b.receive(encode(refused));
  EXPECT_EQ(b.answers.at(1).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(modbus_exchange, makes_the_connection_anew_when_a_device_answers_nothing_any_more) {
  bench b({.timeout_min_ns = ms, .timeout_max_ns = ms, .read_attempts = 1, .most_retired = 3});
  b.submit(1, read_of(1));
  b.connect();
  for (std::uint64_t i = 2; i < 6; ++i) {
    b.submit(i, read_of(1));
    b.at(b.now + ms);
  }
  EXPECT_EQ(b.closed, 1);
}

// A transaction number that has not been answered is not used again, however long the connection lives.
TEST(modbus_exchange, never_reuses_a_transaction_that_may_still_be_answered) {
  bench b({.timeout_min_ns = 20 * ms, .timeout_max_ns = 20 * ms, .read_attempts = 1});
  b.submit(1, read_of(10));
  b.connect();
  const std::uint16_t lost = b.last().transaction;
  b.at(20 * ms);
  for (std::uint64_t i = 2; i < 70'000; ++i) {
    b.submit(i, read_of(11));
    ASSERT_NE(b.last().transaction, lost);
    b.receive(b.honest());
    b.sent.erase(b.sent.begin(), b.sent.end() - 1);
    b.answers.clear();
  }
}

TEST(modbus_exchange, refuses_what_no_frame_can_carry) {
  bench b;
  b.submit(1, read_of(1, 126));
  b.submit(2, read_of(65535, 2));
  b.submit(3, read_of(1, 0));
  b.submit(4, {function::write_multiple, 1, 1, 0, std::vector<std::uint16_t>(124)});
  for (std::uint64_t ticket = 1; ticket <= 4; ++ticket) {
    EXPECT_EQ(b.answers.at(ticket).status().code(), absl::StatusCode::kInvalidArgument) << ticket;
  }
}

}  // namespace
}  // namespace busbar::devices::modbus
