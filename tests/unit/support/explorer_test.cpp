#include "tests/support/explorer.hpp"

#include <gtest/gtest.h>

#include <caf/atom.hpp>
#include <caf/behavior.hpp>
#include <caf/stateful_actor.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <string>

namespace busbar::test_support {
namespace {

using namespace std::chrono_literals;

struct counter_state {
  static inline const char* name = "counter";
};

struct world {
  std::int32_t value = 0;
  std::int32_t finished = 0;
  std::int32_t losses = 0;
};

caf::behavior counter(caf::stateful_actor<counter_state>*, world* shared) {
  return {[shared](caf::get_atom) { return shared->value; }, [shared](caf::put_atom, std::int32_t value) { shared->value = value; }};
}

struct adder_state {
  static inline const char* name = "adder";
  caf::actor target;
  world* shared = nullptr;

  // The planted race: read, then write what was read plus one, in two messages.
  void add(caf::stateful_actor<adder_state>* self) {
    self->request(target, 1min, caf::get_atom::value)
        .then([self](std::int32_t value) { self->state.write(self, value + 1); }, [self](caf::error& why) { self->quit(why); });
  }
  void write(caf::stateful_actor<adder_state>* self, std::int32_t value) {
    self->request(target, 1min, caf::put_atom::value, value)
        .then([self]() { ++self->state.shared->finished; }, [self](caf::error& why) { self->quit(why); });
  }
};

caf::behavior adder(caf::stateful_actor<adder_state>* self, caf::actor target, world* shared) {
  self->state.target = std::move(target);
  self->state.shared = shared;
  self->delayed_send(self, 10ms, caf::tick_atom::value);
  return {[self](caf::tick_atom) { self->state.add(self); }};
}

std::optional<std::string> two_adders(simulation& sim) {
  auto& shared = sim.make<world>();
  const auto target = sim.actors().spawn(counter, &shared);
  sim.actors().spawn(adder, target, &shared);
  sim.actors().spawn(adder, target, &shared);
  if (auto failed = sim.run([&shared]() { return shared.finished == 2; }).failure()) return failed;
  if (shared.value != 2) return "lost update: " + std::to_string(shared.value);
  return std::nullopt;
}

TEST(explorer, the_same_seed_gives_the_same_trace) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    simulation first(seed);
    simulation second(seed);
    EXPECT_EQ(two_adders(first), two_adders(second));
    EXPECT_EQ(first.trace(), second.trace());
    EXPECT_EQ(first.trace_digest(), second.trace_digest());
  }
}

TEST(explorer, two_hundred_seeds_give_many_different_traces) {
  std::set<std::uint64_t> traces;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    simulation sim(seed);
    two_adders(sim);
    traces.insert(sim.trace_digest());
  }
  EXPECT_GE(traces.size(), 150U);
}

TEST(explorer, some_seed_finds_the_planted_race_and_some_seed_does_not) {
  std::size_t lost = 0;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    simulation sim(seed);
    if (two_adders(sim).has_value()) ++lost;
  }
  EXPECT_GT(lost, 0U);
  EXPECT_LT(lost, 50U);
}

TEST(explorer, a_failure_names_its_seed_and_its_last_steps) {
  const auto report = for_seeds(200, two_adders);
  ASSERT_TRUE(report.failure.has_value());
  EXPECT_FALSE(report.passed());
  EXPECT_NE(report.describe().find("BUSBAR_SEED=" + std::to_string(report.failure->seed)), std::string::npos);
  EXPECT_NE(report.describe().find("lost update"), std::string::npos);
  EXPECT_NE(report.describe().find("counter#"), std::string::npos);
}

TEST(explorer, an_invariant_is_checked_after_every_step) {
  simulation sim(7);
  auto& shared = sim.make<world>();
  for (const auto delay : {1ms, 2ms, 3ms}) sim.devices().after(delay, [&shared]() { ++shared.value; });
  sim.devices().after(4ms, [&shared]() { shared.value = 0; });
  sim.add_invariant("below three", [&shared]() -> std::optional<std::string> {
    if (shared.value < 3) return std::nullopt;
    return "it is " + std::to_string(shared.value);
  });
  const auto outcome = sim.run([&shared]() { return shared.value == 0 && shared.finished > 0; });
  EXPECT_EQ(outcome.violation, "below three: it is 3");
}

TEST(explorer, a_fault_strikes_at_most_as_often_as_allowed_and_only_when_possible) {
  std::int32_t struck = 0;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    simulation sim(seed);
    auto& shared = sim.make<world>();
    std::function<void()> again = [&sim, &shared, &again]() {
      ++shared.value;
      sim.devices().after(1ms, again);
    };
    sim.devices().after(1ms, again);
    sim.limits.fault_per_mille = 200;
    sim.add_fault("loss", [&shared]() { ++shared.losses; }, 2, [&shared]() { return shared.value >= 5; });
    sim.add_invariant("not before five", [&shared]() -> std::optional<std::string> {
      if (shared.losses == 0 || shared.value >= 5) return std::nullopt;
      return "too early";
    });
    EXPECT_EQ(sim.run([&shared]() { return shared.value == 100; }).failure(), std::nullopt) << sim.describe();
    EXPECT_LE(shared.losses, 2);
    struck += shared.losses;
  }
  EXPECT_GT(struck, 0);
}

TEST(explorer, a_scenario_with_nothing_left_to_run_is_a_failure) {
  simulation sim(1);
  const auto outcome = sim.run([]() { return false; });
  EXPECT_FALSE(outcome.done);
  EXPECT_EQ(outcome.failure(), "not done, and nothing is left that could run");
}

TEST(explorer, an_endless_scenario_ends_at_its_limit) {
  simulation sim(1);
  std::function<void()> again = [&sim, &again]() { sim.devices().after(1ms, again); };
  again();
  sim.limits.steps = 500;
  EXPECT_EQ(sim.run([]() { return false; }).failure(), "not done after 500 steps");
}

}  // namespace
}  // namespace busbar::test_support
