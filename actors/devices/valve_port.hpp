// What Busbar asks of one valve behind a rack controller. The controller's BMC driver makes it
// (bmc::valve): it shares that driver's session and its budget of requests. Plain classes: no CAF.
#pragma once

#include <optional>
#include <string>

#include "actors/devices/bmc.hpp"

namespace busbar::devices {

struct valve_facts {
  std::optional<double> position_percent;  // 100: open; absent: the controller gave none
  std::optional<double> flow_lpm;
  std::optional<double> dp_kpa;
  std::string state;   // Enabled, Disabled
  std::string health;  // as the controller says
};

// Thread-safe; answers come exactly once, on the driver's I/O thread.
class valve_port {
 public:
  virtual ~valve_port() = default;
  // UNAVAILABLE while no session is open: nothing was sent.
  virtual void read(answer<valve_facts> reply) = 0;
  // Asks only: an accepted request is no movement. read() shows whether it took. FAILED_PRECONDITION: the
  // valve cannot be put there (it is open or closed, nothing between).
  virtual void write(double percent, done reply) = 0;
};

}  // namespace busbar::devices
