// A rack's controller: isolation valves on supply and return, each with a stroke. Fed from the grid side,
// like a CDU: it answers while the rack's shelves are cut.
#pragma once

#include <array>
#include <string>

#include "daemon/sim/device.hpp"

namespace busbar::sim {

class rack_controller : public device {
 public:
  rack_controller(device_identity identity, environment& around, std::shared_ptr<const resource_tree> tree,
                  const std::string& factory_password);

  double open_percent(std::size_t valve, instant now) const;
  json truth(instant now) const override;

 protected:
  json value(const value_name& name, instant now) const override;
  action_reply post(const std::string& path, const json& body, instant now, request_note& note) override;

 private:
  struct isolation_valve {
    double from_percent = 100;  // where the present stroke began
    double to_percent = 100;
    instant since{0};
    std::string reason = "Normal";
  };

  std::array<isolation_valve, 2> valves_;  // supply, return
};

}  // namespace busbar::sim
