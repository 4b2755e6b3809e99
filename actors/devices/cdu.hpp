// What the plant asks of a coolant distribution unit, whatever protocol it speaks. Plain classes: no CAF.
//
// A value that the unit did not give is absent: never zero, never the last one. One CDU has one driver in the
// plant's daemon; racks and interlocks read it by connections of their own.
#pragma once

#include <absl/status/statusor.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/devices/bmc.hpp"

namespace busbar::devices {

struct pump_facts {
  std::string id;
  std::optional<bool> running;
  std::optional<double> speed_percent;
  std::string health;  // OK, Warning, Critical; empty: not given
};

// A pair of connectors towards one consumer; one that the unit does not divide has the Id of the whole.
struct connector_facts {
  std::string id;
  std::optional<double> flow_lpm, dp_kpa, supply_c, return_c, heat_kw;
};

struct set_point_facts {
  std::optional<double> value;        // as the unit holds it
  std::optional<double> least, most;  // what the unit itself allows
  std::optional<bool> writable;
};

struct cdu_facts {
  std::optional<double> supply_c, return_c, flow_lpm, dp_kpa;
  std::optional<double> system_kpa, level_percent;
  std::optional<double> facility_supply_c, facility_return_c, facility_flow_lpm, facility_valve_percent;
  std::optional<double> air_c, humidity_percent;
  std::vector<connector_facts> connectors;
  std::vector<pump_facts> pumps;
  std::vector<detector_facts> detectors;  // Id as the unit gives it: r01_rope
  set_point_facts supply_set_point, dp_set_point;
  // Its own controller holds the set-points; false: a duty is taken from it. Absent: it does not say.
  std::optional<bool> own_control;
  // A duty that is not given again within this time goes back to its own controller. Absent: it has no such
  // watchdog, so it must not be given duties.
  std::optional<double> watchdog_s;
  std::string health;  // OK, Warning, Critical; empty: not given
  std::string source;
};

// The unit's own values out of its connectors' where it gives none of its own: flow is the sum, if all are
// known; supply the warmest, pressure the smallest of those known; return weighted by flow.
void take_connectors(cdu_facts& facts);

enum class cdu_value {
  supply_set_point,  // °C
  dp_set_point,      // kPa
  pump_duty,         // percent, every pump: takes it from the unit's own controller, and renews
  valve_duty,        // percent, of the facility valve: the same
  own_control        // every duty is given back, whatever the value
};
std::string_view name_of(cdu_value what);

class cdu {
 public:
  virtual ~cdu() = default;
  // Everything in one batch. Fails only when the unit itself cannot be read.
  virtual void read(answer<cdu_facts> reply) = 0;
  // Asks only: what the unit then holds is what read() shows. UNIMPLEMENTED: it has no such thing.
  // INVALID_ARGUMENT: it refuses the value, with its limits in the message.
  virtual void write(cdu_value what, double value, done reply) = 0;
};

// Makes drivers by what a CDU's declaration says.
class cdu_factory {
 public:
  virtual ~cdu_factory() = default;
  // INVALID_ARGUMENT: no such protocol or map.
  virtual absl::StatusOr<std::shared_ptr<cdu>> make(const std::string& protocol, const std::string& address,
                                                    const std::string& map, credentials login) = 0;
};

}  // namespace busbar::devices
