#include "actors/devices/redfish/telemetry_names.hpp"

#include <algorithm>
#include <array>
#include <cctype>

namespace busbar::devices::redfish {
namespace {

// {} stands for letters, digits, '_' and '-' of one part; the first that matches counts. In a name {1} is
// what the first {} held. A {} that stands twice for the same thing (GPU number in chassis and sensor) is
// simply not named again.
struct rule {
  std::string_view property;
  std::string_view name;
  std::string_view unit;
  value_form form = value_form::number;
};

constexpr auto number = value_form::number;
constexpr auto link = value_form::link;

constexpr std::array rules = {
    // GPUs of a compute tray
    rule{"Chassis/HGX_GPU_{}/Sensors/HGX_GPU_{}_TEMP_0#/Reading", "gpu{1}/temperature", "Cel", number},
    rule{"Chassis/HGX_GPU_{}/Sensors/HGX_GPU_{}_Power_0#/Reading", "gpu{1}/power", "W", number},
    rule{"Systems/HGX_Baseboard_0/Processors/GPU_{}/ProcessorMetrics#/BandwidthPercent", "gpu{1}/busy", "%",
         number},
    rule{"Systems/HGX_Baseboard_0/Processors/GPU_{}/EnvironmentMetrics#/PowerLimitWatts/SetPoint",
         "gpu{1}/power_limit", "W", number},
    rule{"Systems/HGX_Baseboard_0/Processors/GPU_{}/Ports/NVLink_{}#/LinkStatus", "gpu{1}/nvlink{2}/up", "1",
         link},
    rule{"Systems/HGX_Baseboard_0/Processors/GPU_{}/Ports/NVLink_{}#/CurrentSpeedGbps",
         "gpu{1}/nvlink{2}/speed", "Gbit/s", number},
    rule{"Systems/HGX_Baseboard_0/Processors/GPU_{}/Ports/NVLink_{}/Metrics#/TXBytes",
         "gpu{1}/nvlink{2}/tx_bytes", "By", number},
    rule{"Systems/HGX_Baseboard_0/Processors/GPU_{}/Ports/NVLink_{}/Metrics#/RXBytes",
         "gpu{1}/nvlink{2}/rx_bytes", "By", number},
    rule{"Systems/HGX_Baseboard_0/Processors/GPU_{}/Ports/NVLink_{}/Metrics#/BitErrorRate",
         "gpu{1}/nvlink{2}/bit_error_rate", "1", number},
    rule{"Systems/HGX_Baseboard_0/Processors/GPU_{}/Ports/NVLink_{}/Metrics#/RuntimeError",
         "gpu{1}/nvlink{2}/errors", "1", number},
    // Tray
    rule{"Chassis/Chassis_0/Sensors/Chassis_0_LeakDetector_{}#/Reading", "leak/{1}", "V", number},
    rule{"Chassis/Chassis_0/Sensors/Chassis_0_InletTemp#/Reading", "inlet_temperature", "Cel", number},
    rule{"Chassis/Chassis_0/Sensors/Chassis_0_OutletTemp#/Reading", "outlet_temperature", "Cel", number},
    rule{"Chassis/Chassis_0/Sensors/Chassis_0_TotalPower#/Reading", "power", "W", number},
    rule{"Chassis/Chassis_0/NetworkAdapters/NIC_{}/Ports/1#/CurrentSpeedGbps", "nic{1}/speed", "Gbit/s",
         number},
    // Switch tray
    rule{"Chassis/MGX_NVSwitch_0/Sensors/MGX_NVSwitch_0_Power_0#/Reading", "power", "W", number},
    rule{"Chassis/MGX_NVSwitch_0/Sensors/MGX_NVSwitch_0_TEMP_0#/Reading", "temperature", "Cel", number},
    rule{"Chassis/MGX_NVSwitch_0/Sensors/leakage{}#/Reading", "leak/leakage{1}", "V", number},
    rule{"Fabrics/NVLinkFabric_0/Switches/NVSwitch_{}/Ports/Port_{}#/LinkStatus", "asic{1}/port{2}/up", "1",
         link},
    rule{"Fabrics/NVLinkFabric_0/Switches/NVSwitch_{}/Ports/Port_{}/Metrics#/BitErrorRate",
         "asic{1}/port{2}/bit_error_rate", "1", number},
    rule{"Fabrics/NVLinkFabric_0/Switches/NVSwitch_{}/Ports/Port_{}/Metrics#/TXBytes",
         "asic{1}/port{2}/tx_bytes", "By", number},
    // Power shelf
    rule{"Chassis/PowerShelf_0/Sensors/power_chassis_output#/Reading", "output_power", "W", number},
    rule{"Chassis/PowerShelf_0/Sensors/voltage_chassis_output#/Reading", "output_voltage", "V", number},
    rule{"Chassis/PowerShelf_0/Sensors/power_p{}_pout#/Reading", "psu{1}/output_power", "W", number},
    rule{"Chassis/PowerShelf_0/Sensors/voltage_p{}_vout#/Reading", "psu{1}/output_voltage", "V", number},
    rule{"Chassis/PowerShelf_0/Sensors/voltage_p{}_vin#/Reading", "psu{1}/input_voltage", "V", number},
    rule{"Chassis/PowerShelf_0/Sensors/temperature_p{}_hotspot#/Reading", "psu{1}/temperature", "Cel",
         number},
    // Any other sensor
    rule{"Chassis/{}/Sensors/{}#/Reading", "sensors/{1}/{2}", "", number},
};

bool may_be_captured(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-';
}

using captures = std::array<std::string_view, 3>;

// The shortest capture that lets the rest match: few letters, few captures.
bool matches(std::string_view pattern, std::string_view text, captures& held, std::size_t next) {
  while (!pattern.empty()) {
    if (!pattern.starts_with("{}")) {
      if (text.empty() || text.front() != pattern.front()) return false;
      pattern.remove_prefix(1);
      text.remove_prefix(1);
      continue;
    }
    if (next == held.size()) return false;
    for (std::size_t length = 1; length <= text.size() && may_be_captured(text[length - 1]); ++length) {
      held[next] = text.substr(0, length);
      if (matches(pattern.substr(2), text.substr(length), held, next + 1)) return true;
    }
    return false;
  }
  return text.empty();
}

std::string fill(std::string_view name, const captures& held) {
  std::string made;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name[i] != '{') {
      made += name[i];
      continue;
    }
    made += held[static_cast<std::size_t>(name[i + 1] - '1')];
    i += 2;
  }
  return made;
}

// Letters, digits and a few signs; anything else becomes '_', so that a name is one word to people and tools.
std::string tidy(std::string_view text) {
  std::string made;
  for (const char c : text.substr(0, 160)) made += may_be_captured(c) || c == '/' || c == '.' ? c : '_';
  return made;
}

}  // namespace

std::optional<point_name> name_point(std::string_view property) {
  constexpr std::string_view root = "/redfish/v1/";
  if (property.starts_with(root)) property.remove_prefix(root.size());
  if (property.empty()) return std::nullopt;
  captures held;
  for (const rule& one : rules) {
    if (matches(one.property, property, held, 0))
      return point_name{fill(one.name, held), std::string(one.unit), one.form};
  }
  return point_name{"metrics/" + tidy(property), "", property.ends_with("LinkStatus") ? link : number};
}

std::optional<double> link_value(std::string_view word) {
  if (word == "LinkUp") return 1;
  if (word == "LinkDown" || word == "NoLink" || word == "Starting" || word == "Training") return 0;
  return std::nullopt;
}

}  // namespace busbar::devices::redfish
