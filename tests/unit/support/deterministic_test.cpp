#include "tests/support/deterministic.hpp"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <caf/atom.hpp>
#include <caf/behavior.hpp>
#include <caf/send.hpp>
#include <caf/stateful_actor.hpp>

#include <chrono>
#include <cstdint>

namespace busbar::test_support {
namespace {

using namespace std::chrono_literals;

struct ticker_state {
  static inline const char* name = "ticker";
  std::int32_t ticks = 0;
};

caf::behavior ticker(caf::stateful_actor<ticker_state>* self) {
  self->delayed_send(self, 1s, caf::tick_atom::value);
  return {[self](caf::tick_atom) {
            ++self->state.ticks;
            self->delayed_send(self, 1s, caf::tick_atom::value);
          },
          [self](caf::get_atom) { return self->state.ticks; }};
}

caf::behavior mute(caf::event_based_actor*) {
  return {[](caf::put_atom) {}};
}

// Asks another actor and gives up after 5 s.
caf::behavior asker(caf::event_based_actor* self, caf::actor target) {
  return {[self, target](caf::get_atom) {
    auto promise = self->make_response_promise<std::int32_t>();
    self->request(target, 5s, caf::get_atom::value)
        .then([promise](std::int32_t value) mutable { promise.deliver(value); },
              [promise](caf::error& error) mutable { promise.deliver(std::move(error)); });
    return promise;
  }};
}

// Keeps every promise it makes for ever.
caf::behavior forgetful(caf::event_based_actor* self) {
  return {[self](caf::get_atom) { return self->make_response_promise<std::int32_t>(); }};
}

class deterministic : public deterministic_fixture {};

TEST_F(deterministic, time_stands_still_while_settling) {
  const auto one = actors().spawn(ticker);
  settle();
  settle();
  EXPECT_EQ(ask<std::int32_t>(one, caf::get_atom::value), 0);
  EXPECT_EQ(now(), virtual_scheduler::start_of_time);
}

TEST_F(deterministic, a_periodic_actor_ticks_as_often_as_time_allows) {
  const auto one = actors().spawn(ticker);
  advance(10s);
  EXPECT_EQ(ask<std::int32_t>(one, caf::get_atom::value), 10);
  EXPECT_EQ(now() - virtual_scheduler::start_of_time, 10s);
}

TEST_F(deterministic, device_callbacks_and_timers_share_one_clock) {
  const auto one = actors().spawn(ticker);
  std::int32_t seen = -1;
  devices().after(4500ms, [this, &seen, one]() { seen = *ask<std::int32_t>(one, caf::get_atom::value); });
  advance(5s);
  EXPECT_EQ(seen, 4);
}

TEST_F(deterministic, a_request_times_out_on_the_virtual_clock) {
  const auto target = actors().spawn(forgetful);
  const auto one = actors().spawn(asker, target);
  const auto answer = ask_within<std::int32_t>(6s, one, caf::get_atom::value);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error(), caf::sec::request_timeout);
  EXPECT_EQ(now() - virtual_scheduler::start_of_time, 5s);
}

TEST_F(deterministic, an_answer_without_content_is_an_answer) {
  EXPECT_TRUE(ask<void>(actors().spawn(mute), caf::put_atom::value));
}

TEST_F(deterministic, a_request_to_a_dead_actor_is_an_error_and_no_wait) {
  const auto one = actors().spawn(mute);
  caf::anon_send_exit(one, caf::exit_reason::kill);
  settle();
  EXPECT_EQ(ask<void>(one, caf::put_atom::value).error(), caf::sec::request_receiver_down);
}

TEST_F(deterministic, advance_until_stops_at_the_first_instant) {
  bool ready = false;
  devices().after(3s, [&ready]() { ready = true; });
  devices().after(4s, []() {});
  EXPECT_TRUE(advance_until([&ready]() { return ready; }, 1min));
  EXPECT_EQ(now() - virtual_scheduler::start_of_time, 3s);
  EXPECT_FALSE(advance_until([]() { return false; }, 10s));
  EXPECT_EQ(now() - virtual_scheduler::start_of_time, 13s);
}

TEST(deterministic_system_test, reports_a_request_that_nobody_answers) {
  EXPECT_NONFATAL_FAILURE(
      {
        deterministic_system machine;
        const auto answer = machine.ask<std::int32_t>(machine.actors().spawn(forgetful), caf::get_atom::value);
        EXPECT_EQ(answer.error(), caf::sec::request_timeout);
      },
      "no answer to a request");
}

TEST(deterministic_system_test, teardown_ends_an_actor_that_ignores_exit) {
  deterministic_system machine;
  const auto stubborn = machine.actors().spawn([](caf::event_based_actor* self) -> caf::behavior {
    self->set_exit_handler([](caf::exit_msg&) {});
    return {[](caf::put_atom) {}};
  });
  machine.settle();
  EXPECT_EQ(machine.stop_all(), 0U);
}

}  // namespace
}  // namespace busbar::test_support
