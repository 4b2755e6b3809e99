// What a supervisor decides: when a child is started, started again, asked to stop, killed or given up, and when to escalate by
// ending itself. No CAF, no clock: events come with their time, effects are carried out by supervisor_actor in order.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace busbar::core {

enum class restart_policy {
  permanent,  // always started again
  transient,  // started again unless it ended normally
  temporary,  // never started again
};

// Which others go down with a child that failed. `rest` is right where later children hold handles of earlier ones: all that
// was started after it is stopped in reverse order and started again in order, from its factory, with clean state.
enum class restart_scope { one, rest };

struct child_plan {
  std::string name;
  restart_policy restart = restart_policy::permanent;
  std::chrono::nanoseconds stop_limit = std::chrono::seconds(5);  // asked to stop -> killed
  std::chrono::nanoseconds kill_limit = std::chrono::seconds(2);  // killed -> given up
};

struct restart_limits {
  std::size_t at_most = 5;  // failures of all children together ...
  std::chrono::nanoseconds within = std::chrono::minutes(1);  // ... in this time; one more escalates
  std::chrono::nanoseconds first_back_off = std::chrono::milliseconds(100);  // doubles with each failure of that child
  std::chrono::nanoseconds longest_back_off = std::chrono::seconds(10);
};

struct supervisor_plan {
  std::string name;
  restart_limits limits{};
  restart_scope scope = restart_scope::one;
};

enum class child_phase {
  down,      // to be started when its back-off is over
  starting,  // its factory runs
  running,
  stopping,  // asked to stop
  killing,   // killed, not seen dead
  ended,     // will not be started again
  given_up,  // killed and never seen dead (a thread that hangs in a foreign call)
};
std::string_view name_of(child_phase phase);

struct start_child {
  std::size_t index;
  bool operator==(const start_child&) const = default;
};
struct stop_child {
  std::size_t index;
  bool operator==(const stop_child&) const = default;
};
struct kill_child {
  std::size_t index;
  bool operator==(const kill_child&) const = default;
};
// The supervisor's own end, always the last effect. An empty failure: it was asked to stop.
struct end_supervisor {
  std::string failure;
  bool operator==(const end_supervisor&) const = default;
};
using supervisor_effect = std::variant<start_child, stop_child, kill_child, end_supervisor>;
using supervisor_effects = std::vector<supervisor_effect>;

class supervisor_logic {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  supervisor_logic(supervisor_plan plan, std::vector<child_plan> children);

  // Events. A start_child is answered by child_started, or by child_down if the factory failed.
  supervisor_effects begin(time_point now);
  supervisor_effects child_started(std::size_t index, time_point now);
  supervisor_effects child_down(std::size_t index, bool normally, std::string_view why, time_point now);
  supervisor_effects tick(time_point now);
  // Children stop in reverse order, each within its own limits.
  supervisor_effects stop(time_point now);

  // When tick() has something to do next.
  std::optional<time_point> next_deadline() const;

  child_phase phase(std::size_t index) const { return children_[index].phase; }
  const child_plan& plan(std::size_t index) const { return children_[index].plan; }
  std::size_t size() const { return children_.size(); }
  std::size_t starts(std::size_t index) const { return children_[index].starts; }

 private:
  struct child {
    child_plan plan;
    child_phase phase = child_phase::down;
    bool recycled = false;      // goes down because an earlier one failed
    time_point deadline{};      // down: start not before; stopping, killing: until
    std::size_t starts = 0;
  };
  struct failure {
    time_point at;
    std::size_t index;
  };

  bool is_up(const child& one) const;
  bool must_go(const child& one) const;
  void failed(std::size_t index, std::string_view why, time_point now);
  void escalate(std::string why);
  std::chrono::nanoseconds back_off(std::size_t index) const;
  void overdue(time_point now, supervisor_effects& effects);
  bool something_must_go() const;
  supervisor_effects settle(time_point now);

  supervisor_plan plan_;
  std::vector<child> children_;
  std::deque<failure> failures_;
  bool ending_ = false;
  bool ended_ = false;
  std::string failure_;
};

}  // namespace busbar::core
