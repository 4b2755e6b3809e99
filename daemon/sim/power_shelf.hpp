// Power shelf: supplies on two feeds, and the output that feeds the rack's busbar.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "daemon/sim/device.hpp"

namespace busbar::sim {

class power_shelf : public device {
 public:
  power_shelf(device_identity identity, environment& around, std::shared_ptr<const resource_tree> tree,
              const std::string& factory_password);

  bool output_on() const { return output_on_; }
  // The first half of its supplies hangs on feed A, the rest on B. Without any feed it is dark; when one
  // comes back its controller starts and its output stays off until it is told.
  void feeds(bool a, bool b, instant now);
  // What it takes from feed A (or B) now.
  double input_w(bool feed_a, instant now) const;
  // What it has to carry now: too much for too long and it trips.
  void loaded(double watts, instant now);

  json truth(instant now) const override;
  json save() const override;
  void load(const json& saved) override;

 protected:
  json value(const value_name& name, instant now) const override;
  action_reply post(const std::string& path, const json& body, instant now, request_note& note) override;
  void standby_lost(instant now) override;

 private:
  http_reply reset(const std::string& type, instant now);
  bool fed(int psu) const;
  bool failed(int psu, instant now) const;
  int working(instant now) const;
  double capacity_w(instant now) const;
  json psu_value(std::string_view name, int psu, instant now) const;
  double output_volts(instant now) const;
  bool says_on() const { return output_on_ && !says_off_; }

  std::array<bool, 2> feeds_ = {true, true};
  bool output_on_ = false;
  bool says_off_ = false;  // by a fault: its word against its output
  bool changing_ = false;
  bool tripped_ = false;
  std::uint64_t generation_ = 0;
  std::uint64_t overload_ = 0;  // its generation: a planned trip of an earlier one is void
  bool overloaded_ = false;
};

}  // namespace busbar::sim
