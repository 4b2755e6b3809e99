#include "tests/support/virtual_scheduler.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace busbar::test_support {
namespace {

using namespace std::chrono_literals;

TEST(virtual_scheduler, runs_in_order_of_time_then_of_insertion) {
  virtual_scheduler clock;
  std::string order;
  clock.after(20ms, [&order]() { order += 'c'; });
  clock.after(10ms, [&order]() { order += 'a'; });
  clock.after(10ms, [&order]() { order += 'b'; });
  clock.advance(30ms);
  EXPECT_EQ(order, "abc");
  EXPECT_EQ(clock.now() - virtual_scheduler::start_of_time, 30ms);
}

TEST(virtual_scheduler, runs_nothing_before_it_is_due) {
  virtual_scheduler clock;
  int ran = 0;
  clock.after(10ms, [&ran]() { ++ran; });
  clock.set_now(clock.now() + 9ms);
  EXPECT_EQ(clock.run_due(), 0U);
  EXPECT_EQ(clock.due_count(), 0U);
  clock.set_now(clock.now() + 1ms);
  EXPECT_EQ(clock.due_count(), 1U);
  EXPECT_EQ(clock.run_due(), 1U);
  EXPECT_EQ(ran, 1);
  EXPECT_EQ(clock.next_due(), std::nullopt);
}

TEST(virtual_scheduler, a_periodic_callback_runs_at_each_of_its_times) {
  virtual_scheduler clock;
  int ticks = 0;
  std::function<void()> tick = [&clock, &ticks, &tick]() {
    ++ticks;
    clock.after(1s, tick);
  };
  clock.after(1s, tick);
  clock.advance(10s);
  EXPECT_EQ(ticks, 10);
}

TEST(virtual_scheduler, a_cancelled_callback_never_runs) {
  virtual_scheduler clock;
  int ran = 0;
  const auto id = clock.after(1ms, [&ran]() { ++ran; });
  EXPECT_TRUE(clock.cancel(id));
  EXPECT_FALSE(clock.cancel(id));
  clock.advance(1s);
  EXPECT_EQ(ran, 0);
}

TEST(virtual_scheduler, time_never_goes_back) {
  virtual_scheduler clock;
  clock.set_now(clock.now() + 5s);
  const auto now = clock.now();
  clock.set_now(now - 1s);
  EXPECT_EQ(clock.now(), now);
}

TEST(virtual_scheduler, any_due_callback_can_be_picked) {
  virtual_scheduler clock;
  std::string order;
  clock.after(0ms, [&order]() { order += 'a'; });
  clock.after(0ms, [&order]() { order += 'b'; });
  clock.after(1ms, [&order]() { order += 'c'; });
  EXPECT_TRUE(clock.run_due_at(1));
  EXPECT_FALSE(clock.run_due_at(1)) << "c is not due";
  EXPECT_TRUE(clock.run_due_at(0));
  EXPECT_EQ(order, "ba");
  EXPECT_EQ(clock.next_later(), virtual_scheduler::start_of_time + 1ms);
}

}  // namespace
}  // namespace busbar::test_support
