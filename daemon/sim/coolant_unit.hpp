// The CDU: one controller, one pair of connectors and one detector group a rack.
#pragma once

#include <string>

#include "daemon/sim/device.hpp"

namespace busbar::sim {

class coolant_unit : public device {
 public:
  coolant_unit(device_identity identity, environment& around, std::shared_ptr<const resource_tree> tree,
               const std::string& factory_password, const std::string& reader_password);

  // Pumps that run, after faults.
  double working_pumps(instant now) const;
  json truth(instant now) const override;
  std::vector<std::string> detectors() const override;  // of every rack it feeds

 protected:
  json value(const value_name& name, instant now) const override;

 private:
  json rack_value(std::string_view name, std::string_view rack, instant now) const;
  std::string detector_word(std::string_view detector, instant now) const;
  json groups(instant now) const;
};

}  // namespace busbar::sim
