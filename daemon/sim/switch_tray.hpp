// NVLink switch tray: ASICs, ports, the fabric manager.
#pragma once

#include <string>

#include "daemon/sim/tray.hpp"

namespace busbar::sim {

class switch_tray : public tray {
 public:
  switch_tray(device_identity identity, environment& around, std::shared_ptr<const resource_tree> tree,
              bool starts_old, const std::string& factory_password);

  double power_kw() const override;

 protected:
  json value(const value_name& name, instant now) const override;

 private:
  bool port_up(int asic, int port, instant now) const;
};

}  // namespace busbar::sim
