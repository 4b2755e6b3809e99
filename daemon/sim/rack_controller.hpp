// A rack's controller: isolation valves on supply and return and the control valve between them, which act on
// the site's coolant. Fed from the grid side, like a CDU: it answers while the rack's shelves are cut.
#pragma once

#include <array>
#include <string>

#include "daemon/sim/device.hpp"

namespace busbar::sim {

class rack_controller : public device {
 public:
  rack_controller(device_identity identity, environment& around, std::shared_ptr<const resource_tree> tree,
                  const std::string& factory_password);

  json truth(instant now) const override;
  json save() const override;
  void load(const json& saved) override;
  json valves_truth() const;

 protected:
  json value(const value_name& name, instant now) const override;
  action_reply post(const std::string& path, const json& body, instant now, request_note& note) override;
  action_reply patch(const std::string& path, const json& body, instant now, request_note& note) override;

 private:
  std::size_t rack() const { return static_cast<std::size_t>(identity().rack - 1); }
  json valve_value(std::string_view name, std::string_view valve) const;

  std::array<std::string, 3> reasons_ = {"Normal", "Normal", "Normal"};  // supply, return, flow
};

}  // namespace busbar::sim
