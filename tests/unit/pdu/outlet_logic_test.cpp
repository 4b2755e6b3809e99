#include "actors/pdu/outlet_logic.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace busbar::pdu {
namespace {

using devices::outlet_act;
using devices::outlet_facts;
using devices::outlet_state;
using ::testing::HasSubstr;

constexpr std::int64_t second = 1'000'000'000;

outlet_facts facts_of(outlet_state state, std::optional<double> current_a = std::nullopt) {
  outlet_facts facts;
  facts.id = "7";
  facts.state = state;
  facts.current_a = current_a;
  if (state == outlet_state::unknown) facts.raw_state = "5";
  return facts;
}

// A PDU whose relay moves a while after it said yes.
struct bench {
  bench() { outlet.name = "r01/pdu1/7"; }

  void feed(const outlet_event& event) {
    for (const auto& effect : step(outlet, event, now)) {
      if (const auto* asked_for = std::get_if<ask>(&effect)) {
        asks.push_back(asked_for->act);
        moves_at = now + relay_delay;
        moves_to = asked_for->act == outlet_act::on ? outlet_state::on : outlet_state::off;
        feed(asked{ask_answer});
      } else if (std::holds_alternative<read_now>(effect)) {
        ++reads;
        feed(read{read_answer, facts_of(state, current_a)});
      } else if (const auto* done = std::get_if<resolved>(&effect)) {
        ends.push_back(*done);
      } else if (const auto* no = std::get_if<refused>(&effect)) {
        refusals.push_back(*no);
      }
    }
  }
  void run(std::int64_t seconds) {
    for (const std::int64_t end = now + seconds * second; now < end; now += second / 4) {
      if (moves_at.has_value() && now >= *moves_at) state = moves_to;
      if (now >= next_wake_ns(outlet)) feed(wake{});
    }
  }

  outlet_record outlet;
  std::int64_t now = 0;
  std::int64_t relay_delay = 3 * second;
  std::optional<std::int64_t> moves_at;
  outlet_state moves_to = outlet_state::on;
  outlet_state state = outlet_state::on;
  std::optional<double> current_a;
  absl::Status ask_answer, read_answer;
  std::vector<outlet_act> asks;
  std::vector<resolved> ends;
  std::vector<refused> refusals;
  int reads = 0;
};

TEST(outlet, off_is_proven_when_it_reads_off_and_was_asked_once) {
  bench b;
  b.feed(commanded{wish::off, "op", 1});
  b.run(10);
  ASSERT_EQ(b.ends.size(), 1U);
  EXPECT_EQ(b.ends[0].how, verdict::proven);
  EXPECT_EQ(b.asks, std::vector{outlet_act::off});
}

TEST(outlet, a_slow_relay_is_waited_for_and_not_toggled_again) {
  bench b;
  b.relay_delay = 20 * second;
  b.feed(commanded{wish::off, "op", 1});
  b.run(40);
  ASSERT_EQ(b.ends.size(), 1U);
  EXPECT_EQ(b.ends[0].how, verdict::proven);
  EXPECT_EQ(b.asks.size(), 1U);
}

TEST(outlet, what_is_so_already_is_not_switched) {
  bench b;
  b.feed(commanded{wish::on, "op", 1});
  EXPECT_EQ(b.ends.at(0).how, verdict::proven);
  EXPECT_TRUE(b.asks.empty());
}

TEST(outlet, off_that_still_delivers_is_a_failure_that_names_the_current) {
  bench b;
  b.current_a = 3.2;
  b.feed(commanded{wish::off, "op", 1});
  b.run(60);
  ASSERT_EQ(b.ends.size(), 1U);
  EXPECT_EQ(b.ends[0].how, verdict::failed);
  EXPECT_THAT(b.ends[0].why, HasSubstr("3.20 A"));
}

TEST(outlet, a_state_that_is_never_known_is_unproven_not_done) {
  bench b;
  b.state = outlet_state::unknown;
  b.relay_delay = 1000 * second;
  b.feed(commanded{wish::off, "op", 1});
  b.run(60);
  ASSERT_EQ(b.ends.size(), 1U);
  EXPECT_EQ(b.ends[0].how, verdict::unproven);
  EXPECT_THAT(b.ends[0].why, HasSubstr("unknown (5)"));
}

TEST(outlet, a_pdu_that_cannot_be_read_ends_unproven_with_its_trouble_and_is_not_asked_blindly) {
  bench b;
  b.read_answer = absl::UnavailableError("no answer from 10.0.0.9");
  b.feed(commanded{wish::off, "op", 1});
  b.run(60);
  ASSERT_EQ(b.ends.size(), 1U);
  EXPECT_EQ(b.ends[0].how, verdict::unproven);
  EXPECT_THAT(b.ends[0].why, HasSubstr("10.0.0.9"));
  EXPECT_TRUE(b.asks.empty());
}

TEST(outlet, a_refusal_ends_at_once_and_a_lost_answer_does_not) {
  bench refusing;
  refusing.ask_answer = absl::FailedPreconditionError("locked at the PDU");
  refusing.feed(commanded{wish::off, "op", 1});
  ASSERT_EQ(refusing.ends.size(), 1U);
  EXPECT_EQ(refusing.ends[0].how, verdict::failed);
  bench losing;
  losing.ask_answer = absl::DeadlineExceededError("no answer");
  losing.feed(commanded{wish::off, "op", 1});
  EXPECT_TRUE(losing.ends.empty());
  losing.run(10);
  EXPECT_EQ(losing.ends.at(0).how, verdict::proven);
}

TEST(outlet, a_cycle_is_off_proven_a_rest_and_on_proven) {
  bench b;
  b.feed(commanded{wish::cycle, "op", 1});
  b.run(30);
  ASSERT_EQ(b.ends.size(), 1U);
  EXPECT_EQ(b.ends[0].how, verdict::proven);
  EXPECT_EQ(b.asks, (std::vector{outlet_act::off, outlet_act::on}));
  EXPECT_EQ(b.state, outlet_state::on);
}

TEST(outlet, a_cycle_of_what_is_off_turns_it_on) {
  bench b;
  b.state = outlet_state::off;
  b.feed(commanded{wish::cycle, "op", 1});
  b.run(30);
  EXPECT_EQ(b.asks, std::vector{outlet_act::on});
  EXPECT_EQ(b.ends.at(0).how, verdict::proven);
}

TEST(outlet, a_cycle_that_cannot_turn_off_is_not_turned_on) {
  bench b;
  b.relay_delay = 1000 * second;
  b.feed(commanded{wish::cycle, "op", 1});
  b.run(60);
  EXPECT_EQ(b.ends.at(0).how, verdict::failed);
  EXPECT_EQ(b.asks, std::vector{outlet_act::off});
}

TEST(outlet, the_second_operator_is_refused_with_the_name_of_the_first) {
  bench b;
  b.feed(commanded{wish::off, "anna", 1});
  b.feed(commanded{wish::on, "ben", 2});
  ASSERT_EQ(b.refusals.size(), 1U);
  EXPECT_THAT(b.refusals[0].why, HasSubstr("anna asked for off"));
  b.run(10);
  b.feed(commanded{wish::on, "ben", 3});
  EXPECT_EQ(b.refusals.size(), 1U);
}

// Whatever the PDU does, an order ends by its deadlines, and no act is asked twice in it.
TEST(outlet, every_order_ends_and_repeats_no_act) {
  for (unsigned seed = 1; seed <= 500; ++seed) {
    std::mt19937 random(seed);
    bench b;
    b.relay_delay = static_cast<std::int64_t>(random() % 60) * second;
    b.state = std::array{outlet_state::on, outlet_state::off, outlet_state::unknown}[random() % 3];
    if (random() % 3 == 0) b.current_a = 1.0;
    if (random() % 4 == 0) b.read_answer = absl::UnavailableError("lost");
    if (random() % 4 == 0) b.ask_answer = absl::UnavailableError("lost");
    b.feed(commanded{std::array{wish::on, wish::off, wish::cycle}[random() % 3], "op", seed});
    b.run(100);
    ASSERT_EQ(b.ends.size(), 1U) << seed;
    EXPECT_LE(std::count(b.asks.begin(), b.asks.end(), outlet_act::on), 1) << seed;
    EXPECT_LE(std::count(b.asks.begin(), b.asks.end(), outlet_act::off), 1) << seed;
    const bool unreadable = !b.read_answer.ok();
    EXPECT_FALSE(unreadable && b.ends[0].how == verdict::proven) << seed;
  }
}

}  // namespace
}  // namespace busbar::pdu
