// What an agent has been told to run: a queue, one test in progress, a lease a run. Pure: the time is passed
// in; what is to be done comes back as steps in order. The session does them on its loop.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "busbar/agent/agent.pb.h"

namespace busbar::agent_client {

class run_board {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  struct start_test {
    agent::Run run;
  };
  struct cancel_test {};
  struct report_done {
    agent::TestDone done;
  };
  using step = std::variant<start_test, cancel_test, report_done>;
  using steps = std::vector<step>;

  // A test that is known already only renews its run's lease. A test of another run ends the older run: the
  // newest order of the rack daemon is the one that holds.
  steps accept(const agent::Run& run, time_point now);
  steps cancel(const std::string& run_id, const std::string& why, time_point now);
  void renew(const std::string& run_id, time_point now);
  // The engine called done for the test in progress.
  steps finished(bool ok, const std::string& error, time_point now);
  // Leases and deadlines that are due.
  steps tick(time_point now);
  // Ends everything (the agent stops).
  steps end_all(const std::string& why, time_point now);

  std::optional<time_point> next_due() const;
  bool busy() const { return current_.has_value(); }
  const agent::Run* current() const { return current_ ? &current_->run : nullptr; }

 private:
  struct in_progress {
    agent::Run run;
    time_point deadline;
    std::string ended_because;  // empty: not cancelled
  };
  struct lease {
    std::chrono::nanoseconds length;
    time_point until;
  };

  void start_next(steps& out, time_point now);
  void drop_queued(const std::string& run_id, bool all_but, const std::string& why, steps& out);
  void end_current(const std::string& why, steps& out);
  void forget_idle_leases();

  std::deque<agent::Run> queue_;
  std::optional<in_progress> current_;
  std::map<std::string, lease> leases_;  // by run id, of runs with a test queued or in progress
};

}  // namespace busbar::agent_client
