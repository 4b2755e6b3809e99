#include "actors/devices/redfish/decode.hpp"

#include <algorithm>
#include <array>
#include <cctype>

namespace busbar::devices::redfish {

std::string lower_case(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

status_words decode_status(json_view resource) {
  const json_view status = resource["Status"];
  return {status["State"].text().value_or(""), status["Health"].text().value_or("")};
}

bool is_placeholder(std::string_view text) {
  static constexpr auto fillers = std::to_array<std::string_view>(
      {"na", "n/a", "none", "null", "nil", "unknown", "default string", "not specified", "not available",
       "redacted", "to be filled by o.e.m.", "system serial number", "chassis serial number",
       "cpldserialnumber", "serialnumber", "01234567890123456789ab", "0123456789", "123456789",
       "999999-b21"});
  std::string plain = lower_case(text);
  while (!plain.empty() && (plain.back() == ' ' || plain.back() == '\0')) plain.pop_back();
  plain.erase(
      0, plain.find_first_not_of(' ') == std::string::npos ? plain.size() : plain.find_first_not_of(' '));
  if (std::find(fillers.begin(), fillers.end(), plain) != fillers.end()) return true;
  return plain.find_first_not_of("0x-: .") == std::string::npos;  // empty, zeros, dashes
}

std::optional<std::string> identity_text(json_view value) {
  const auto text = value.text();
  return text && !is_placeholder(*text) ? text : std::nullopt;
}

journal::PowerState decode_power_state(json_view resource) {
  const auto word = resource["PowerState"].text();
  if (!word) return journal::POWER_UNKNOWN;
  if (*word == "On") return journal::POWER_ON;
  if (*word == "Off") return journal::POWER_OFF;
  if (*word == "PoweringOn") return journal::POWERING_ON;
  if (*word == "PoweringOff") return journal::POWERING_OFF;
  return journal::POWER_UNKNOWN;
}

action_facts decode_action(json_view resource, std::string_view name, std::string_view parameter) {
  const json_view action = resource["Actions"]["#" + std::string(name)];
  action_facts facts;
  facts.target = action["target"].text();
  for (const json_view& value : action[std::string(parameter) + "@Redfish.AllowableValues"].items()) {
    if (const auto word = value.text()) facts.values.push_back(*word);
  }
  const json_view info = action["@Redfish.ActionInfo"];
  facts.info_uri = info.text() ? info.text() : info.link();
  return facts;
}

std::vector<std::string> decode_action_info(json_view info, std::string_view parameter) {
  std::vector<std::string> values;
  for (const json_view& item : info["Parameters"].items()) {
    if (item["Name"].text() != std::string(parameter)) continue;
    for (const json_view& value : item["AllowableValues"].items()) {
      if (const auto word = value.text()) values.push_back(*word);
    }
  }
  return values;
}

journal::Health decode_health(const status_words& status, bool identified) {
  if (status.absent()) return journal::HEALTH_UNKNOWN;  // nothing is there that could be bad
  if (status.health == "Critical" || status.health == "Warning") return journal::HEALTH_BAD;
  if (status.health == "OK" && identified && (status.works() || status.state == "Standby"))
    return journal::HEALTH_GOOD;
  return journal::HEALTH_UNKNOWN;
}

reading_facts decode_sensor(json_view sensor) {
  reading_facts facts;
  facts.unit = sensor["ReadingUnits"].text().value_or("");
  facts.type = sensor["ReadingType"].text().value_or("");
  facts.lower_critical = sensor["Thresholds"]["LowerCritical"]["Reading"].number();
  facts.upper_critical = sensor["Thresholds"]["UpperCritical"]["Reading"].number();
  const status_words status = decode_status(sensor);
  const json_view reading = sensor["Reading"];
  const auto value = reading.lenient_number();
  if (!value) {
    const bool said_something =
        !reading.missing() && !reading.is_null() && reading.canonical().value_or("x") != "";
    facts.quality = said_something ? reading_quality::bad_form : reading_quality::no_value;
    if (said_something) facts.raw = reading.raw().substr(0, 60);
    return facts;
  }
  if (!status.state.empty() && !status.works()) {
    facts.quality = reading_quality::not_enabled;
    facts.raw = reading.raw().substr(0, 60);
    return facts;
  }
  facts.quality = reading.number() ? reading_quality::good : reading_quality::bad_form;
  facts.raw = reading.number() ? "" : reading.raw().substr(0, 60);
  facts.value = value;
  return facts;
}

std::optional<double> decode_excerpt(json_view value) {
  return value.is_object() ? value["Reading"].number() : value.number();
}

std::optional<long long> decode_slot_ordinal(json_view chassis) {
  const auto ordinal = chassis["Location"]["PartLocation"]["LocationOrdinalValue"].integer();
  return ordinal && *ordinal > 0 && *ordinal < 1'000 ? ordinal : std::nullopt;
}

account_facts decode_account(json_view body, std::string uri) {
  account_facts facts;
  facts.uri = std::move(uri);
  facts.name = body["UserName"].text().value_or("");
  facts.role = body["RoleId"].text().value_or("");
  facts.enabled = body["Enabled"].boolean();
  facts.locked = body["Locked"].boolean();
  return facts;
}

boot_facts decode_boot(json_view body) {
  const json_view boot = body["Boot"];
  return {boot["BootSourceOverrideEnabled"].text().value_or(""),
          boot["BootSourceOverrideTarget"].text().value_or(""), boot["HttpBootUri"].text().value_or("")};
}

task_facts decode_task(json_view body, int http) {
  task_facts facts;
  const std::string state = body["TaskState"].text().value_or("");
  const std::string status = body["TaskStatus"].text().value_or("");
  const auto percent = body["PercentComplete"].integer();
  if (percent && *percent >= 0 && *percent <= 100) facts.percent = static_cast<int>(*percent);
  facts.message = state;
  for (const json_view& message : body["Messages"].items()) {
    const auto text = message["Message"].text();
    if (text) facts.message += (facts.message.empty() ? "" : "; ") + *text;
  }
  static constexpr auto ended_badly =
      std::to_array<std::string_view>({"Exception", "Killed", "Cancelled", "Cancelling", "Interrupted"});
  if (std::find(ended_badly.begin(), ended_badly.end(), state) != ended_badly.end()) {
    facts.state = task_state::failed;
  } else if (state == "Completed") {
    facts.state = status == "Critical" ? task_state::failed : task_state::completed;
  } else {
    facts.state = task_state::running;  // also a word we do not know: the deadline decides, not a guess
    if (http == 202 && state.empty()) facts.message = "accepted";
  }
  return facts;
}

namespace {

// The name as a whole word: FW_CPLD_1 is not named by FW_CPLD_10.
bool names(const std::string& text, std::string_view component) {
  const auto part_of_name = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-';
  };
  for (auto at = text.find(component); at != std::string::npos; at = text.find(component, at + 1)) {
    const auto end = at + component.size();
    const bool starts = at == 0 || !part_of_name(text[at - 1]);
    const bool stops = end == text.size() || !part_of_name(text[end]);
    if (starts && stops) return true;
  }
  return false;
}

}  // namespace

bool task_is_for(json_view body, std::string_view component) {
  if (component.empty()) return false;
  if (names(body["Payload"].raw(), component)) return true;
  for (const json_view& message : body["Messages"].items()) {
    if (names(message.raw(), component)) return true;
  }
  return false;
}

bool task_may_be_any_update(json_view body, const std::vector<std::string>& components) {
  const auto target = body["Payload"]["TargetUri"].text();
  if (target && target->find("Update") == std::string::npos) return false;
  return std::none_of(components.begin(), components.end(),
                      [&body](const std::string& component) { return task_is_for(body, component); });
}

std::optional<bool> decode_link_up(json_view port) {
  const auto word = port["LinkStatus"].text();
  if (!word) return std::nullopt;
  if (*word == "LinkUp" || *word == "Up") return true;
  static constexpr auto down =
      std::to_array<std::string_view>({"LinkDown", "Down", "NoLink", "Starting", "Training", "Disabled"});
  if (std::find(down.begin(), down.end(), *word) != down.end()) return false;
  return std::nullopt;
}

}  // namespace busbar::devices::redfish
