// The bodies of a device kind, expanded once from its data file and shared by all devices of that kind.
// Strings that begin with "$" name values that the device fills in at each GET.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/sim/json.hpp"

namespace busbar::sim {

using range_map = std::map<std::string, std::vector<std::string>>;  // "gpus" -> {"0", "1", "2", "3"}

struct firmware_row {
  std::string component;
  std::string version;  // the baseline's
  std::string old_version;
  std::string activation;  // bmc_reset | host_restart
};

struct report_row {
  std::string property;
  std::string value;  // "$gpu_temperature:0"
};

class resource_tree {
 public:
  static std::shared_ptr<const resource_tree> expand(std::string_view kind, range_map ranges);

  const json* find(std::string_view path) const;
  const std::vector<firmware_row>& firmware() const { return firmware_; }
  const std::vector<std::string>& starts_old() const { return starts_old_; }
  const std::string& manager_component() const { return manager_component_; }
  const json& bios() const { return bios_; }
  const std::map<std::string, std::vector<report_row>, std::less<>>& reports() const { return reports_; }

 private:
  void add_resources(const json& list, const range_map& ranges);
  void add_reports(const json& reports, const range_map& ranges);
  void fill_collections();

  std::map<std::string, json, std::less<>> bodies_;
  std::vector<std::string> order_;  // of the data file, which is the order of members
  std::vector<firmware_row> firmware_;
  std::vector<std::string> starts_old_;
  std::string manager_component_;
  json bios_;
  std::map<std::string, std::vector<report_row>, std::less<>> reports_;
};

// Name and arguments of "$gpu_power:0".
struct value_name {
  std::string_view name;
  std::vector<std::string_view> arguments;
};
value_name parse_value_name(std::string_view text);

// Replaces every "$..." string in the body by what `value` gives.
void fill(json& body, const std::function<json(const value_name&)>& value);

}  // namespace busbar::sim
