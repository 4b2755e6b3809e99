#include "daemon/sim/model_loop.hpp"

#include <gtest/gtest.h>

#include <memory>

namespace busbar::sim {
namespace {

TEST(model_loop, what_waiting_tasks_hold_is_gone_when_stop_returns) {
  auto held = std::make_shared<int>(1);
  const std::weak_ptr<int> seen = held;
  model_loop loop;
  loop.at(monotonic_now() + std::chrono::hours(1), [held = std::move(held)] {});
  loop.start();
  loop.stop();
  EXPECT_TRUE(seen.expired());
}

TEST(model_loop, a_dropped_task_may_post_while_it_goes) {
  struct posts_at_its_end {
    explicit posts_at_its_end(model_loop& on) : loop(on) {}
    ~posts_at_its_end() {
      loop.post([] {});
    }
    model_loop& loop;
  };
  model_loop loop;
  loop.at(monotonic_now() + std::chrono::hours(1), [last = std::make_shared<posts_at_its_end>(loop)] {});
  loop.start();
  loop.stop();
}

}  // namespace
}  // namespace busbar::sim
