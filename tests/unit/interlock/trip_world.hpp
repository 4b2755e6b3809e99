// A rack around trip_logic on a virtual clock, drawn by a seed: leaks, sensor faults, deaf and slow devices,
// a restart, an operation that runs meanwhile: a bring-up that turns hosts on, one request of which may land
// after the trip; a firmware update that restarts a BMC; a validation. run() tells the first invariant that
// broke, or nothing.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "daemon/interlock/trip_logic.hpp"

namespace busbar::interlock::test {

class trip_world {
 public:
  explicit trip_world(std::uint64_t seed);
  std::optional<std::string> run();
  bool leaked() const { return leak_kind_ != 0; }
  bool restarted() const { return restarts_ > 0; }
  bool faulted() const { return !fault_.empty(); }
  bool operated() const { return operation_ != operation::none; }
  bool operation_stopped() const { return operation_stopped_; }

 private:
  struct body {  // what a device truly is
    bool on = true;
    std::int64_t off_at_ns = 0;     // 0: no change under way
    int ignores = 0;                // so many commands have no effect
    bool says_already = false;      // answers 400 while it is off
    std::int64_t deaf_from_ns = 0;  // no answer at all
    std::int64_t deaf_until_ns = 0;
    std::int64_t came_on_ns = 0;
    double open = 100;
    std::int64_t closing_since_ns = 0;
  };
  enum class operation { none, bring_up, firmware, validation };
  struct power_on_due {
    std::int64_t at_ns = 0;
    std::string tray;
  };
  struct answer_due {
    std::int64_t at_ns = 0;
    command what;
  };

  std::int64_t pick(std::int64_t least, std::int64_t most);
  bool chance(int percent) { return pick(1, 100) <= percent; }
  void draw();
  void draw_sensors();
  void draw_operation();
  void run_operation();
  bool fed() const;
  bool answers(const std::string& device) const;
  reading seen(const std::string& device, const std::string& detector);
  bool truly_wet(const std::string& device, const std::string& detector) const;
  void move_bodies();
  void poll(const std::string& device);
  void feed(const trip_event& what);
  void take(const std::vector<trip_effect>& effects);
  void obey(const command& what);
  void check_command(const command& what);
  void check_state();
  void check_end();
  void restart();
  void fail(const std::string& what);

  std::uint64_t seed_;
  std::mt19937_64 random_;
  trips of_;
  std::int64_t now_ns_ = 1'000 * s_in_ns;
  std::int64_t start_ns_ = now_ns_;
  std::map<std::string, body> bodies_;
  std::map<std::string, std::int64_t> poll_at_ns_;
  std::vector<answer_due> answers_;
  std::vector<Latch> file_;
  std::optional<std::string> broken_;

  unsigned stroke_ms_ = 5'000;
  int confirm_ms_ = 0;
  int leak_kind_ = 0;  // 0 none, 1 one tray, 2 two trays, 3 rope
  std::map<std::pair<std::string, std::string>, std::int64_t> wet_from_ns_;
  std::map<std::pair<std::string, std::string>, int>
      fault_;  // 1 unknown for ever, 2 flaps, 3 unknown at times
  std::int64_t dries_after_ns_ = 3'600 * s_in_ns;
  bool flickers_ = false;
  std::map<std::string, int> wet_readings_;  // by device
  std::int64_t restart_at_ns_ = 0;
  operation operation_ = operation::none;
  std::int64_t operation_at_ns_ = 0;  // of its next act
  std::size_t operation_tray_ = 0;
  bool operation_stopped_ = false;  // by a trip
  std::vector<power_on_due> power_ons_;
  std::int64_t bypass_at_ns_ = 0;
  std::pair<std::string, std::string> bypassed_;
  std::int64_t bypass_until_ns_ = 0;
  int restarts_ = 0;
  std::set<std::uint64_t> known_trips_;
  std::map<std::uint64_t, std::int64_t> opened_ns_;
  std::map<std::uint64_t, std::int64_t> cut_ns_;
  bool any_alarm_ = false;
  std::map<std::string, int> commands_;
  std::map<std::string, std::int64_t> last_command_ns_;
};

}  // namespace busbar::interlock::test
