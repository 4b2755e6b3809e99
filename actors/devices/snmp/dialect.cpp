#include "actors/devices/snmp/dialect.hpp"

#include <algorithm>

#include "actors/devices/strict_json.hpp"

namespace busbar::devices::snmp {
namespace {

using redfish::json_view;

bool is_oid(std::string_view text) {
  if (text.empty() || text.front() == '.' || text.back() == '.') return false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const bool digit = text[at] >= '0' && text[at] <= '9';
    if (!digit && !(text[at] == '.' && text[at - 1] != '.')) return false;
  }
  return text.find('.') != std::string_view::npos;
}

void read_oid(strict_json& in, json_view from, const std::string& path, std::string& to, bool required) {
  in.text(from, path, to, required);
  if (!to.empty() && !is_oid(to)) in.wrong(path, "an OID like 1.3.6.1.4.1.318 is wanted");
}

void read_codes(strict_json& in, json_view from, const std::string& path, std::vector<std::int64_t>& to) {
  for (const json_view one : from.items()) {
    std::int64_t code = 0;
    in.whole(one, path, -2147483648LL, 2147483647LL, code, true);
    to.push_back(code);
  }
  if (to.empty()) in.wrong(path, "at least one code is wanted");
}

std::optional<measured> read_measured(strict_json& in, json_view from, const std::string& path) {
  if (from.missing()) return std::nullopt;
  measured to;
  in.only(from, path, {"oid", "scale", "digits_oid"});
  read_oid(in, from["oid"], path + ".oid", to.oid, true);
  in.number(from["scale"], path + ".scale", to.scale);
  read_oid(in, from["digits_oid"], path + ".digits_oid", to.digits_oid, false);
  if (to.scale <= 0) in.wrong(path + ".scale", "a number above 0 is wanted");
  return to;
}

void check_codes(strict_json& in, const dialect& to) {
  if (to.control_on == to.control_off) in.wrong("control", "on and off are the same code");
  for (const std::int64_t code : to.state_on) {
    if (std::find(to.state_off.begin(), to.state_off.end(), code) != to.state_off.end()) {
      in.wrong("state", fmt::format("code {} means on and off", code));
    }
  }
  if (to.index.find("{outlet}") == std::string::npos) in.wrong("index", "{outlet} is missing");
}

}  // namespace

absl::StatusOr<dialect> parse_dialect(std::string_view json, std::string_view source) {
  strict_json in(source);
  const auto document = redfish::json_document::parse(json);
  if (!document.has_value() || !document->root().is_object()) {
    return absl::InvalidArgumentError(fmt::format("{}: is no JSON object", std::string(source)));
  }
  const json_view root = document->root();
  dialect to;
  in.only(root, "",
          {"name", "about", "system_oid", "index", "control", "state", "name_oid", "current_a", "power_w"});
  in.text(root["name"], "name", to.name, true);
  read_oid(in, root["system_oid"], "system_oid", to.system_oid, false);
  in.text(root["index"], "index", to.index, false);
  const json_view control = root["control"];
  in.only(control, "control", {"oid", "on", "off"});
  read_oid(in, control["oid"], "control.oid", to.control_oid, true);
  in.whole(control["on"], "control.on", -2147483648LL, 2147483647LL, to.control_on, true);
  in.whole(control["off"], "control.off", -2147483648LL, 2147483647LL, to.control_off, true);
  const json_view state = root["state"];
  in.only(state, "state", {"oid", "on", "off"});
  read_oid(in, state["oid"], "state.oid", to.state_oid, true);
  read_codes(in, state["on"], "state.on", to.state_on);
  read_codes(in, state["off"], "state.off", to.state_off);
  read_oid(in, root["name_oid"], "name_oid", to.name_oid, false);
  to.current_a = read_measured(in, root["current_a"], "current_a");
  to.power_w = read_measured(in, root["power_w"], "power_w");
  check_codes(in, to);
  if (const absl::Status wrong = in.status(); !wrong.ok()) return wrong;
  return to;
}

std::string oid_of(const dialect& spoken, const std::string& column, int pdu, int outlet) {
  std::string index = spoken.index;
  const auto put = [&index](std::string_view word, int number) {
    if (const std::size_t at = index.find(word); at != std::string::npos) {
      index.replace(at, word.size(), std::to_string(number));
    }
  };
  put("{pdu}", pdu);
  put("{outlet}", outlet);
  return column + "." + index;
}

outlet_state state_of(const dialect& spoken, std::int64_t code) {
  const auto knows = [code](const std::vector<std::int64_t>& codes) {
    return std::find(codes.begin(), codes.end(), code) != codes.end();
  };
  if (knows(spoken.state_on)) return outlet_state::on;
  return knows(spoken.state_off) ? outlet_state::off : outlet_state::unknown;
}

}  // namespace busbar::devices::snmp
