// Power shelf: supplies, and the output that feeds the rack's busbar.
#pragma once

#include <string>

#include "daemon/sim/device.hpp"

namespace busbar::sim {

class power_shelf : public device {
 public:
  power_shelf(device_identity identity, environment& around, std::shared_ptr<const resource_tree> tree,
              const std::string& factory_password);

  bool output_on() const { return output_on_; }
  json truth(instant now) const override;
  json save() const override;
  void load(const json& saved) override;

 protected:
  json value(const value_name& name, instant now) const override;
  action_reply post(const std::string& path, const json& body, instant now, request_note& note) override;

 private:
  http_reply reset(const std::string& type, instant now);
  bool failed(int psu, instant now) const;
  int working(instant now) const;
  json psu_value(std::string_view name, int psu, instant now) const;

  bool output_on_ = false;
  bool changing_ = false;
  std::uint64_t generation_ = 0;
};

}  // namespace busbar::sim
