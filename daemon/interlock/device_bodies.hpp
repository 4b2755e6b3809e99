// What else than detectors the interlock reads in Redfish bodies: the service root, reset actions, power
// states, valves, the CDU's values. Foreign bytes in, never an exception out; what is not plainly there is
// unknown.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "actors/devices/redfish/json.hpp"
#include "daemon/interlock/trip_logic.hpp"

namespace busbar::interlock {

struct service_root {
  std::string sessions;
  std::string chassis;
  std::string systems;
  std::string thermal;  // ThermalEquipment
  std::string events;   // EventService
  bool expands = false;
};
// Nothing: no object, or it links no Sessions.
std::optional<service_root> decode_root(std::string_view body);

struct reset_place {
  std::string uri;                   // of the resource whose PowerState is read back
  std::string target;                // of its Reset action; empty: none
  std::vector<std::string> offered;  // reset types; empty: not said
  std::string info;                  // ActionInfo, where the types stand there
};
// action: "ComputerSystem.Reset" or "Chassis.Reset".
std::optional<reset_place> decode_reset(std::string_view uri, std::string_view body, const char* action);
std::vector<std::string> decode_reset_types(std::string_view body);
bool is_shelf_chassis(std::string_view body);

// The reset type that takes energy away, out of those offered: ForceOff, else GracefulShutdown, else none.
// Nothing that could turn a host on is ever chosen.
std::string_view off_type(const std::vector<std::string>& offered);

power_seen decode_power(std::string_view body);

struct valve_place {
  std::string target;                  // of ValveControl; empty: not offered
  std::optional<double> open_percent;  // ValvePositionPercent
};
valve_place decode_valve(std::string_view body);

// FlowLitersPerMinute, SupplyTemperatureCelsius and SupplyPressurekPa of a connector that is Enabled; each
// that is no number within its physical range is unknown.
void decode_connector(std::string_view body, coolant_read* into);
void decode_reservoir(std::string_view body, coolant_read* into);

// ServerSentEventUri; empty: none.
std::string stream_in(std::string_view body);

// Each member of an expanded collection by its address; their number. 0: it is none, or gives links alone.
std::size_t each_member(std::string_view body,
                        const std::function<void(const std::string&, devices::redfish::json_view)>& take);

// Every line of "data:" of a server-sent event stream is looked at for a leak or a sensor's change; the rest
// of the stream says that it lives. Cuts the stream into events.
class event_cutter {
 public:
  struct outcome {
    int events = 0;
    bool leak = false;  // one of them speaks of a leak
    bool gap = false;   // an id is missing, or an event was longer than 64 KiB
  };
  outcome feed(std::string_view bytes);

 private:
  std::string line_;
  std::optional<long long> last_id_;
  bool has_data_ = false;
};

}  // namespace busbar::interlock
