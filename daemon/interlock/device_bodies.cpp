#include "daemon/interlock/device_bodies.hpp"

#include <algorithm>
#include <utility>

#include "daemon/interlock/detector_decode.hpp"

namespace busbar::interlock {
namespace {

using devices::redfish::action_facts;
using devices::redfish::json_document;
using devices::redfish::json_view;

constexpr std::size_t event_line_max = 64U * 1024U;

std::optional<json_document> parse(std::string_view body) {
  if (body.size() > body_max) return std::nullopt;
  auto document = json_document::parse(body);
  if (!document.has_value() || !document->root().is_object()) return std::nullopt;
  return document;
}

// A reading within the range that is physically possible; a resource that is not Enabled reads nothing.
std::optional<double> reading_at(json_view body, std::string_view key, double least, double most) {
  const std::string state = devices::redfish::decode_status(body).state;
  if (!state.empty() && state != "Enabled") return std::nullopt;
  const auto value = devices::redfish::decode_excerpt(body[key]);
  return value && *value >= least && *value <= most ? value : std::nullopt;
}

std::string plain(const std::optional<std::string>& path) {
  return path.has_value() && is_plain_path(*path) ? *path : std::string();
}

}  // namespace

std::optional<service_root> decode_root(std::string_view body) {
  const auto document = parse(body);
  if (!document.has_value()) return std::nullopt;
  const json_view root = document->root();
  service_root found;
  found.sessions = plain(root["Links"]["Sessions"].link());
  found.chassis = plain(root["Chassis"].link());
  found.systems = plain(root["Systems"].link());
  found.thermal = plain(root["ThermalEquipment"].link());
  found.events = plain(root["EventService"].link());
  const json_view expand = root["ProtocolFeaturesSupported"]["ExpandQuery"];
  found.expands =
      expand["NoLinks"].boolean().value_or(false) || expand["ExpandAll"].boolean().value_or(false);
  if (found.sessions.empty()) return std::nullopt;
  return found;
}

std::optional<reset_place> decode_reset(std::string_view uri, std::string_view body, const char* action) {
  const auto document = parse(body);
  if (!document.has_value()) return std::nullopt;
  const action_facts facts = devices::redfish::decode_action(document->root(), action, "ResetType");
  reset_place place;
  place.uri = uri;
  place.target = plain(facts.target);
  place.offered = facts.values;
  place.info = plain(facts.info_uri);
  if (place.target.empty()) return std::nullopt;
  return place;
}

std::vector<std::string> decode_reset_types(std::string_view body) {
  const auto document = parse(body);
  return document.has_value() ? devices::redfish::decode_action_info(document->root(), "ResetType")
                              : std::vector<std::string>{};
}

bool is_shelf_chassis(std::string_view body) {
  const auto document = parse(body);
  return document.has_value() && document->root()["ChassisType"].text() == "Shelf";
}

std::string_view off_type(const std::vector<std::string>& offered) {
  if (offered.empty()) return "ForceOff";  // the device does not say: the one it must have
  for (const std::string_view type : {"ForceOff", "GracefulShutdown"}) {
    if (std::find(offered.begin(), offered.end(), type) != offered.end()) return type;
  }
  return {};
}

power_seen decode_power(std::string_view body) {
  const auto document = parse(body);
  if (!document.has_value()) return power_seen::unknown;
  const auto word = document->root()["PowerState"].text();
  if (word == "Off") return power_seen::off;
  // On its way is not there: it counts as on until it is off.
  if (word == "On" || word == "PoweringOn" || word == "PoweringOff") return power_seen::on;
  return power_seen::unknown;
}

valve_place decode_valve(std::string_view body) {
  const auto document = parse(body);
  valve_place place;
  if (!document.has_value()) return place;
  const json_view root = document->root();
  place.target =
      plain(devices::redfish::decode_action(root, "CoolantConnector.ValveControl", "ValveState").target);
  // The connector of a closed valve calls itself Disabled: its position counts all the same.
  const auto position = devices::redfish::decode_excerpt(root["ValvePositionPercent"]);
  if (position && *position >= 0 && *position <= 100) place.open_percent = position;
  return place;
}

void decode_connector(std::string_view body, coolant_read* into) {
  const auto document = parse(body);
  if (!document.has_value()) return;
  const json_view root = document->root();
  into->flow_lpm = reading_at(root, "FlowLitersPerMinute", 0, 10'000);
  into->supply_c = reading_at(root, "SupplyTemperatureCelsius", -20, 120);
  into->pressure_kpa = reading_at(root, "SupplyPressurekPa", 0, 2'000);
}

void decode_reservoir(std::string_view body, coolant_read* into) {
  const auto document = parse(body);
  if (document.has_value()) into->level_percent = reading_at(document->root(), "FluidLevelPercent", 0, 100);
}

std::string stream_in(std::string_view body) {
  const auto document = parse(body);
  return document.has_value() ? plain(document->root()["ServerSentEventUri"].text()) : std::string();
}

std::size_t each_member(std::string_view body,
                        const std::function<void(const std::string&, json_view)>& take) {
  std::size_t found = 0;
  const auto document = parse(body);
  if (!document.has_value()) return found;
  for (const json_view member : document->root()["Members"].items()) {
    if (found >= members_max) break;
    const auto uri = member.link();
    if (!uri.has_value() || member.size() < 2) continue;
    ++found;
    take(*uri, member);
  }
  return found;
}

event_cutter::outcome event_cutter::feed(std::string_view bytes) {
  outcome found;
  for (const char each : bytes) {
    if (each != '\n') {
      if (line_.size() < event_line_max)
        line_.push_back(each);
      else
        found.gap = true;
      continue;
    }
    if (!line_.empty() && line_.back() == '\r') line_.pop_back();
    if (line_.empty()) {
      found.events += std::exchange(has_data_, false) ? 1 : 0;
    } else if (line_.rfind("data:", 0) == 0) {
      has_data_ = true;
      found.leak = found.leak || line_.find("Leak") != std::string::npos;
    } else if (line_.rfind("id:", 0) == 0) {
      std::string_view text = std::string_view(line_).substr(3);
      while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
      const auto id = devices::redfish::parse_number(text);
      if (id && last_id_ && static_cast<long long>(*id) != *last_id_ + 1) found.gap = true;
      if (id) last_id_ = static_cast<long long>(*id);
    }
    line_.clear();
  }
  return found;
}

}  // namespace busbar::interlock
