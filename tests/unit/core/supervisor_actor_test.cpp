#include "actors/core/supervisor_actor.hpp"

#include <gtest/gtest.h>

#include <caf/atom.hpp>
#include <caf/behavior.hpp>
#include <caf/sec.hpp>
#include <caf/send.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/deterministic.hpp"

namespace busbar::core {
namespace {

using namespace std::chrono_literals;

struct counting_state {
  static inline const char* name = "counting";
  std::int32_t value = 0;
};

// Counts what it is sent; crashes on put 0; says at its end who it was.
caf::behavior counting(caf::stateful_actor<counting_state>* self, std::string label, std::vector<std::string>* ended) {
  self->attach_functor([label, ended](const caf::error&) { ended->push_back(label); });
  return {[self](caf::put_atom, std::int32_t value) {
            if (value == 0) self->quit(caf::make_error(caf::sec::runtime_error, "crash"));
            self->state.value += value;
          },
          [self](caf::get_atom) { return self->state.value; }};
}

caf::behavior deaf(caf::event_based_actor* self) {
  self->set_exit_handler([](caf::exit_msg&) {});
  return {[](caf::put_atom, std::int32_t) {}};
}

class supervisor_test : public test_support::deterministic_fixture {
 protected:
  child_spec counted(std::size_t index, std::string name) {
    handles.resize(std::max(handles.size(), index + 1));
    return {{.name = name}, [this, index, name](caf::event_based_actor* self) -> caf::expected<caf::actor> {
              if (broken) return caf::make_error(caf::sec::runtime_error, "factory is broken");
              handles[index] = self->spawn(counting, name, &ended);
              return handles[index];
            }};
  }

  // Starts a supervisor and remembers how it ended.
  caf::actor start(supervisor_plan plan, std::vector<child_spec> children) {
    const auto one = actors().spawn(supervisor, std::move(plan), std::move(children));
    one->attach_functor([this](const caf::error& why) {
      over = true;
      outcome = actors().render(why);
    });
    settle();
    top = one;
    return one;
  }

  void TearDown() override {
    deterministic_fixture::TearDown();
    top = nullptr;
    handles.clear();
  }

  caf::actor top;  // an actor that nobody holds is unreachable, and gone
  std::vector<caf::actor> handles;
  std::vector<std::string> ended;
  bool broken = false;
  bool over = false;
  std::string outcome;
};

TEST_F(supervisor_test, a_crashed_child_starts_again_from_its_factory_with_clean_state) {
  start({.name = "top"}, {counted(0, "a"), counted(1, "b")});
  ASSERT_TRUE(ask<void>(handles[0], caf::put_atom::value, 5));
  ASSERT_TRUE(ask<void>(handles[1], caf::put_atom::value, 7));
  const auto first = handles[0];
  caf::anon_send(handles[0], caf::put_atom::value, 0);
  settle();
  EXPECT_EQ(handles[0], first) << "not before the back-off is over";
  advance(100ms);
  ASSERT_NE(handles[0], first);
  EXPECT_EQ(ask<std::int32_t>(handles[0], caf::get_atom::value), 0);
  EXPECT_EQ(ask<std::int32_t>(handles[1], caf::get_atom::value), 7) << "scope one leaves the other alone";
  EXPECT_FALSE(over);
}

TEST_F(supervisor_test, scope_rest_renews_what_was_started_later) {
  start({.name = "top", .limits = {}, .scope = restart_scope::rest}, {counted(0, "a"), counted(1, "b"), counted(2, "c")});
  const auto before = handles;
  caf::anon_send(handles[1], caf::put_atom::value, 0);
  advance(1s);
  EXPECT_EQ(handles[0], before[0]);
  EXPECT_NE(handles[1], before[1]);
  EXPECT_NE(handles[2], before[2]);
  EXPECT_EQ(ended, (std::vector<std::string>{"b", "c"}));
}

TEST_F(supervisor_test, stops_in_reverse_order_and_ends_itself) {
  start({.name = "top"}, {counted(0, "a"), counted(1, "b"), counted(2, "c")});
  caf::anon_send_exit(top, caf::exit_reason::user_shutdown);
  settle();
  EXPECT_EQ(ended, (std::vector<std::string>{"c", "b", "a"}));
  EXPECT_TRUE(over);
}

TEST_F(supervisor_test, a_child_that_ignores_stop_is_killed_after_its_limit) {
  std::vector<child_spec> children{counted(0, "a")};
  children.push_back({{.name = "deaf", .restart = restart_policy::permanent, .stop_limit = 3s},
                      [](caf::event_based_actor* self) -> caf::expected<caf::actor> { return self->spawn(deaf); }});
  start({.name = "top"}, std::move(children));
  caf::anon_send_exit(top, caf::exit_reason::user_shutdown);
  advance(2999ms);
  EXPECT_TRUE(ended.empty());
  EXPECT_FALSE(over);
  advance(1ms);
  EXPECT_EQ(ended, (std::vector<std::string>{"a"}));
  EXPECT_TRUE(over);
}

TEST_F(supervisor_test, too_many_failures_end_it_with_an_error_that_names_the_child) {
  start({.name = "top", .limits = {.at_most = 2}}, {counted(0, "a"), counted(1, "b")});
  for (int i = 0; i < 3; ++i) {
    caf::anon_send(handles[1], caf::put_atom::value, 0);
    advance(1s);
  }
  EXPECT_TRUE(over);
  EXPECT_NE(outcome.find("top: b failed"), std::string::npos) << outcome;
  EXPECT_EQ(ended, (std::vector<std::string>{"b", "b", "b", "a"}));
}

TEST_F(supervisor_test, a_factory_that_fails_is_tried_again_and_then_escalates) {
  broken = true;
  start({.name = "top", .limits = {.at_most = 2}}, {counted(0, "a")});
  EXPECT_FALSE(over);
  advance(1s);
  EXPECT_TRUE(over);
  EXPECT_NE(outcome.find("factory is broken"), std::string::npos) << outcome;
}

TEST_F(supervisor_test, a_killed_supervisor_leaves_no_orphans) {
  start({.name = "top"}, {counted(0, "a"), counted(1, "b")});
  caf::anon_send_exit(top, caf::exit_reason::kill);
  settle();
  EXPECT_EQ(ended.size(), 2U);
}

TEST_F(supervisor_test, a_supervisor_can_be_a_child_of_a_supervisor) {
  std::vector<child_spec> outer;
  outer.push_back({{.name = "inner"}, [this](caf::event_based_actor* self) -> caf::expected<caf::actor> {
                     return self->spawn(supervisor, supervisor_plan{.name = "inner", .limits = {.at_most = 0}},
                                        std::vector<child_spec>{counted(0, "a")});
                   }});
  start({.name = "top"}, std::move(outer));
  const auto first = handles[0];
  caf::anon_send(handles[0], caf::put_atom::value, 0);  // inner escalates at once, top starts it again
  advance(1s);
  EXPECT_NE(handles[0], first);
  caf::anon_send_exit(top, caf::exit_reason::user_shutdown);
  settle();
  EXPECT_TRUE(over);
  EXPECT_EQ(ended, (std::vector<std::string>{"a", "a"}));
}

}  // namespace
}  // namespace busbar::core
