// The CDU's own controller: it holds a supply temperature with the facility valve and a pressure difference
// with the pumps, whether anybody commands it or not. Set-points are kept until they are changed; a direct
// duty (pump, facility valve) is an override that lapses unless it is renewed. Faces write here and read
// back; the coolant side steps it. No I/O, no clock.
#pragma once

#include <absl/status/status.h>

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/sim/http_message.hpp"
#include "daemon/sim/json.hpp"
#include "daemon/sim/physics/control_valve.hpp"
#include "daemon/sim/physics/heat.hpp"

namespace busbar::sim {

struct cdu_point {
  std::string name;  // supply_temperature, differential_pressure, pump_1, facility_valve
  std::string unit;
  std::string type;  // ControlType of Redfish
  double least = 0;
  double most = 100;
  double usual = 0;     // what it starts with
  bool direct = false;  // a duty: it can be taken, and lapses
  double set = 0;
  std::optional<instant> held_until = std::nullopt;  // of a duty that is taken
  instant changed{0};
};

// What the unit measures for itself.
struct cdu_inputs {
  double dp_kpa = 0;
  double supply_c = 0;
  double hot_c = 0;  // entering the exchanger
  double flow_lpm = 0;
  double facility_c = 0;
  bool any_pump = true;  // one of them can run
};

// The unit's nameplate, for the facility valve's feed-forward.
struct cdu_nameplate {
  physics::exchanger_design exchanger;
  physics::valve_trim valve;
  double facility_kpa = 150;
  double facility_pipe_kpa = 40;
  double shutoff_kpa = 480;
};

class cdu_controller {
 public:
  cdu_controller(std::size_t pumps, cdu_nameplate plate, double speed);

  const std::vector<cdu_point>& points() const { return points_; }
  const cdu_point* find(std::string_view name) const;
  // OUT_OF_RANGE names the limits; FAILED_PRECONDITION: a duty that was not taken; NOT_FOUND.
  absl::Status set(std::string_view name, double value, instant now);
  // A duty at this value, or where it stands; also renews.
  absl::Status take(std::string_view name, std::optional<double> value, instant now);
  absl::Status release(std::string_view name);
  instant override_timeout() const { return override_timeout_; }
  absl::Status set_override_timeout(instant length);

  void enable(bool on) { enabled_ = on; }
  bool enabled() const { return enabled_; }
  void enable_pump(std::size_t pump, bool on) { pump_on_.at(pump) = on; }
  bool pump_enabled(std::size_t pump) const { return enabled_ && pump_on_.at(pump); }
  std::size_t pumps() const { return pump_on_.size(); }

  // One control period. Lapses what is over, then decides.
  void step(const cdu_inputs& seen, double dt_s, instant now);
  double pump_speed(std::size_t pump) const;  // commanded, 0..1
  double facility_opening() const;            // commanded, 0..1

  json save() const;
  void load(const json& saved);

 private:
  cdu_point* look_up(std::string_view name);
  bool held(std::string_view name) const;
  double wanted_opening(const cdu_inputs& seen, double wanted_c) const;

  cdu_nameplate plate_;
  std::vector<cdu_point> points_;
  std::vector<bool> pump_on_;
  bool enabled_ = true;
  instant override_timeout_ = std::chrono::seconds(30);
  double speed_square_;  // of the pumps in its own mode
  double trim_c_ = 0;
  double opening_ = 0;
};

}  // namespace busbar::sim
