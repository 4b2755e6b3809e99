// A rack PDU: outlets with relays, one feed of each power shelf a PDU. It shows itself over Redfish as other
// devices do, and over SNMP in the terms of its family (an object tree that the SNMP face walks).
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "daemon/sim/device.hpp"

namespace busbar::sim {

using oid_path = std::vector<std::uint32_t>;

struct mib_gauge {
  std::uint32_t value = 0;
};
using mib_value = std::variant<std::int32_t, mib_gauge, std::string, oid_path>;

enum class pdu_family { raritan_pdu2, apc_rpdu2 };
constexpr pdu_family family_of_pdu(int ordinal) {  // u01, u02
  return ordinal % 2 == 1 ? pdu_family::raritan_pdu2 : pdu_family::apc_rpdu2;
}
const char* name_of(pdu_family family);  // as the dialects of the SNMP driver are called

class rack_pdu : public device {
 public:
  rack_pdu(device_identity identity, environment& around, std::shared_ptr<const resource_tree> tree,
           const std::string& factory_password, pdu_family family);

  pdu_family family() const { return family_; }
  int outlet_count() const { return static_cast<int>(outlets_.size()); }
  bool outlet_on(int outlet) const { return outlets_.at(static_cast<std::size_t>(outlet - 1)).on; }
  std::vector<std::string> outlets() const override;

  // The whole object tree at this moment, in the order of a walk.
  std::map<oid_path, mib_value> objects(instant now) const;
  // An SNMP SET of an INTEGER. NOT_FOUND: no such object or not writable; INVALID_ARGUMENT: no such code.
  absl::Status set_object(const oid_path& object, std::int64_t value, instant now, std::string& act);

  json truth(instant now) const override;
  json save() const override;
  void load(const json& saved) override;

 protected:
  json value(const value_name& name, instant now) const override;
  action_reply post(const std::string& path, const json& body, instant now, request_note& note) override;

 private:
  struct relay {
    bool on = true;
    bool moving = false;
    std::uint64_t generation = 0;  // a planned change of an earlier generation is void
  };
  enum class wish { on, off, cycle };

  void ask(int outlet, wish what, instant now);
  void move(int outlet, bool on, instant now);
  double watts(int outlet) const;
  void add_raritan(std::map<oid_path, mib_value>& to) const;
  void add_apc(std::map<oid_path, mib_value>& to) const;

  pdu_family family_;
  std::vector<relay> outlets_;
};

}  // namespace busbar::sim
