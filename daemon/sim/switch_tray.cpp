#include "daemon/sim/switch_tray.hpp"

#include <utility>

namespace busbar::sim {

namespace {
constexpr double standby_kw = 0.15;
constexpr double on_kw = 0.9;
constexpr int link_gbps = 800;
constexpr double clean_bit_error_rate = 1e-15;
}  // namespace

switch_tray::switch_tray(device_identity identity, environment& around,
                         std::shared_ptr<const resource_tree> shared, bool starts_old,
                         const std::string& factory_password)
    : tray(std::move(identity), around, std::move(shared), starts_old, factory_password,
           around.sku().switch_detectors, "/redfish/v1/Systems/System_0",
           "/redfish/v1/Chassis/MGX_NVSwitch_0/ThermalSubsystem/LeakDetection/LeakDetectors") {}

double switch_tray::power_kw() const {
  return !has_standby_power() ? 0 : host_powered() ? on_kw : standby_kw;
}

bool switch_tray::port_up(int asic, int port, instant now) const {
  int gpu = 0;
  int link = 0;
  return around().port_carries(identity().ordinal, asic, port, gpu, link) &&
         around().link_up(identity().rack, gpu, link, now);
}

json switch_tray::value(const value_name& name, instant now) const {
  const int asic = name.arguments.empty() ? 0 : as_number(name.arguments[0]).value_or(0);
  const int port = name.arguments.size() < 2 ? 0 : as_number(name.arguments[1]).value_or(0);
  const bool active = around().fabric_active(identity().rack);
  const bool primary = identity().ordinal == 1;
  if (name.name == "port") {
    return port_up(asic, port, now) ? "LinkUp" : "LinkDown";
  }
  if (name.name == "port_speed") {
    return port_up(asic, port, now) ? link_gbps : 0;
  }
  if (name.name == "port_ber") {
    return port_up(asic, port, now) ? clean_bit_error_rate : 0;
  }
  if (name.name == "switch_bandwidth") {
    int up = 0;
    for (int each = 0; each < around().sku().ports_per_asic; ++each) {
      up += port_up(asic, each, now) ? 1 : 0;
    }
    return static_cast<double>(up * link_gbps);
  }
  if (name.name == "fabric_state") {
    return !active ? "Offline" : primary ? "Active" : "Standby";
  }
  if (name.name == "fabric_primary") {
    return active && primary;
  }
  if (name.name == "clique" || name.name == "partition") {
    return active ? json(name.name == "clique" ? "1" : "default") : json(nullptr);
  }
  return tray::value(name, now);
}

}  // namespace busbar::sim
