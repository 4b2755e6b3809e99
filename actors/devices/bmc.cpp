#include "actors/devices/bmc.hpp"

namespace busbar::devices {

std::string_view redfish_name(reset_type type) {
  switch (type) {
    case reset_type::on:
      return "On";
    case reset_type::force_off:
      return "ForceOff";
    case reset_type::graceful_shutdown:
      return "GracefulShutdown";
    case reset_type::force_restart:
      return "ForceRestart";
    case reset_type::power_cycle:
      return "PowerCycle";
  }
  return "?";
}

}  // namespace busbar::devices
