// A whole rack on a bench: the rack's logic, members that are what a test says they are, a CDU and an
// interlock that behave until told otherwise, and a clock that a test moves. CAF-free, one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "actors/rack/rack_commands.hpp"
#include "actors/rack/rack_logic.hpp"

namespace busbar::rack::test {

class rack_bench {
 public:
  explicit rack_bench(unsigned compute = 18);

  void add_controller();  // m01 with two isolation valves; before bring_up()
  void give(const rack_event& event);
  void wait_ns(std::int64_t ns) {
    now.monotonic_ns += ns;
    now.wall_ns += ns;
  }
  void wake_when_due();  // to the next due time, if there is one
  void bring_up() { give(begin_bringup{"operations/1"}); }
  // Members change together; each tells the rack.
  void change(const std::string& name, const std::function<void(journal::Node&)>& how);
  void change_all(journal::MemberKind kind, const std::function<void(journal::Node&)>& how);
  void raise_all(journal::NodeStep step);  // compute and switch trays not failed; energised ones read On
  void break_member(const std::string& name, core::fault why = core::fault::INVENTORY_MISSING);
  void cool(std::optional<double> flow_lpm = 200.0, std::optional<double> dp_kpa = 60.0);
  void soak();  // 11 s of good readings
  void arm(const std::function<void(interlock::Status&)>& how = nullptr);
  void answer_fabric();  // what every member asked shows: all links up, one primary
  void finish_tests(unsigned members_silent = 0);
  void judged(journal::SuiteResult::Verdict verdict);
  // Everything good up to this step (of the rack).
  void reach(journal::RackStep step);

  const journal::Node& node(const std::string& name) const { return *state.run.members.at(name); }
  journal::NodeStep goal(const std::string& name) const;
  std::string operation_state() const;  // of operations/1; empty while it runs
  const node::permit_answer* last_answer(const std::string& name) const;
  std::vector<std::string> granted() const;
  bool told(std::string_view type, std::string_view words = {}) const;
  std::size_t count_told(std::string_view type) const;
  template <class T>
  std::vector<T> effects_of() const {
    std::vector<T> found;
    for (const effect& one : effects) {
      if (const auto* it = std::get_if<T>(&one)) found.push_back(*it);
    }
    return found;
  }

  journal::RackSpec& spec() { return *state.rack.mutable_spec(); }

  rack_state state;
  core::instant now{1'000'000'000'000, 1'700'000'000'000'000'000};
  std::int64_t wake_at_ns = core::never_ns;
  bool durable = false;  // of the last step
  bool answers_looks = true;  // a look at the power finds what is shown
  std::vector<effect> effects;
  std::vector<journal::Event> events;
  std::map<std::string, devices::nvlink_facts> fabric;
};

std::string slot(char kind, unsigned number);

}  // namespace busbar::rack::test
