// The CDU as Redfish shows it: one controller, one pair of connectors and one detector group a rack, and the
// controls of its own controller, which anybody with the right may set or take.
#pragma once

#include <set>
#include <string>

#include "daemon/sim/device.hpp"

namespace busbar::sim {

class coolant_unit : public device {
 public:
  coolant_unit(device_identity identity, environment& around, std::shared_ptr<const resource_tree> tree,
               const std::string& factory_password, const std::string& reader_password);

  json truth(instant now) const override;
  json save() const override;
  void load(const json& saved) override;
  void faults_changed(instant now) override;
  std::vector<std::string> detectors() const override;  // of every rack it feeds
  std::vector<std::string> sensors() const override;
  bool wet(std::string_view detector, instant now) const;
  // By the names of actors/devices/modbus/maps/lab_cdu.json; NaN: no such point, or its sensor is dead.
  double register_value(std::string_view point, instant now) const;
  absl::Status set_register(std::string_view point, double value, instant now);

 protected:
  json value(const value_name& name, instant now) const override;
  action_reply post(const std::string& path, const json& body, instant now, request_note& note) override;
  action_reply patch(const std::string& path, const json& body, instant now, request_note& note) override;

 private:
  json rack_value(std::string_view name, std::string_view rack) const;
  json control_value(std::string_view name, std::string_view control, instant now) const;
  json pump_value(std::string_view name, std::size_t pump) const;
  json plant_value(std::string_view name) const;
  std::string detector_word(std::string_view detector, instant now) const;
  json groups(instant now) const;
  double measured_register(std::string_view point) const;
  double alarm_bits(instant now) const;
  double detector_bits(bool leaks, instant now) const;
  http_reply set_control(const std::string& control, const json& body, instant now);

  double announced_pumps_;
  std::set<std::string> announced_wet_;
};

}  // namespace busbar::sim
