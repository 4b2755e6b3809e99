// The moving parts of step(): opens trips, commands targets, repeats, reads back, closes. Private to
// trip_logic.
#pragma once

#include <string>
#include <vector>

#include "daemon/interlock/trip_logic.hpp"

namespace busbar::interlock {

inline constexpr long rack_leak_trays = 2;           // from so many leaking trays on it is a leak of the rack
inline constexpr double valve_closed_percent = 1.0;  // open
inline constexpr double stroke_at_cut = 0.4;         // of a valve's stroke, at most, when the shelves are cut

class engine {
 public:
  engine(trips& of, std::int64_t now_ns) : of_(of), now_ns_(now_ns) {}

  trips& of() { return of_; }
  std::int64_t now() const { return now_ns_; }

  void adopt(const trip_plan& plan);
  void open(const std::string& scope, Cause cause, const std::string& detail);
  void restore(const std::vector<Latch>& lines, std::int64_t wall_ns);
  void reached(const std::string& key);     // read to be off or closed
  void seen_on(const std::string& device);  // a tray
  void command_ended(const std::string& key, int http);
  void hazard_seen(Cause cause, bool beyond, const std::string& detail);
  void bypass_ended(const std::string& device, const std::string& detector, const std::string& why);
  // Targets that no unreset trip holds are free again.
  void release_unheld();
  void advance();

  void write(Latch line);
  void say(bool alarm, std::string text) { rest_.push_back(tell{alarm, std::move(text)}); }
  std::vector<trip_effect> take();

 private:
  target_state* find(const std::string& key);
  void want(target_state& target);
  void command_now(target_state& target);
  void move_rack_trip(trip_state& trip);
  void move_target(target_state& target);
  void watch_held();
  void confirm_due();
  void judge_hazards();
  void expire_bypasses();
  void close_finished();
  bool all_final(const trip_state& trip) const;

  trips& of_;
  std::int64_t now_ns_;
  std::vector<trip_effect> commands_;
  std::vector<trip_effect> rest_;
};

// Whether an unreset trip holds the tray off, which has been read off or was so before a restart.
bool watches(const trips& of, const target_state& target);
bool holds(const trips& of, const trip_state& trip, const trip_target& target);

}  // namespace busbar::interlock
