// A CDU in memory, under the same contract as the drivers: a controller of its own that moves supply and
// pressure towards its set-points, pumps, detectors, and the ways in which real ones misbehave. Owner: the
// test, on one thread; answers come inline, or when the test lets them.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "actors/devices/cdu.hpp"

namespace busbar::devices {

class cdu_fake : public cdu {
 public:
  cdu_fake();

  void read(answer<cdu_facts> reply) override;
  void write(cdu_value what, double value, done reply) override;

  // Lets its own controller work for so long.
  void pass(std::chrono::milliseconds time);

  struct behaviour {
    bool silent = false;        // answers UNAVAILABLE
    bool ignores = false;       // takes writes and keeps what it had
    bool loses_answer = false;  // carries a write out and answers DEADLINE_EXCEEDED
    bool refuses = false;       // answers FAILED_PRECONDITION, as with a key switch at "local"
    bool hides_set_points = false;
    std::optional<double> watchdog_s;  // absent: it takes no duties
  };
  behaviour how;
  // Where answers go; empty: inline.
  std::function<void(std::function<void()>)> later;

  struct write_seen {
    cdu_value what;
    double value;
  };
  std::vector<write_seen> writes;  // carried out or not
  cdu_facts truth;                 // tests change it
  double least_supply_c = 15, most_supply_c = 50, least_dp_kpa = 10, most_dp_kpa = 250;

 private:
  void give(std::function<void()> call);
  double since_duty_s_ = 0;
};

}  // namespace busbar::devices
