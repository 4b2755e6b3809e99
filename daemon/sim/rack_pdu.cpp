#include "daemon/sim/rack_pdu.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "daemon/sim/redfish_reply.hpp"

namespace busbar::sim {

namespace {

constexpr int least_outlets = 8;
constexpr auto relay_time = std::chrono::milliseconds(50);
constexpr auto cycle_time = std::chrono::seconds(2);
constexpr double line_volts = 277.0;
constexpr double phases = 3.0;
constexpr std::string_view outlets_path = "/redfish/v1/PowerEquipment/RackPDUs/1/Outlets/";
constexpr std::string_view action = "/Actions/Outlet.PowerControl";

const oid_path enterprises = {1, 3, 6, 1, 4, 1};
const oid_path system_group = {1, 3, 6, 1, 2, 1, 1};
// PDU2-MIB and PowerNet-MIB (rPDU2), from the vendors' files.
const oid_path raritan = {13742, 6};
const oid_path apc = {318, 1, 1, 26};
constexpr std::uint32_t raritan_current = 1;  // sensor types
constexpr std::uint32_t raritan_power = 5;
constexpr std::int32_t raritan_digits = 1;  // of an outlet's current

oid_path join(oid_path first, const oid_path& second, std::initializer_list<std::uint32_t> rest = {}) {
  first.insert(first.end(), second.begin(), second.end());
  first.insert(first.end(), rest.begin(), rest.end());
  return first;
}

oid_path of_raritan(std::initializer_list<std::uint32_t> column, std::initializer_list<std::uint32_t> index) {
  return join(join(join(enterprises, raritan), oid_path(column)), oid_path(index));
}

oid_path of_apc(std::initializer_list<std::uint32_t> column, std::initializer_list<std::uint32_t> index) {
  return join(join(join(enterprises, apc), oid_path(column)), oid_path(index));
}

std::string label(int outlet) {
  return "Outlet " + std::to_string(outlet);
}

}  // namespace

const char* name_of(pdu_family family) {
  return family == pdu_family::raritan_pdu2 ? "raritan_pdu2" : "apc_rpdu2";
}

rack_pdu::rack_pdu(device_identity identity, environment& around, std::shared_ptr<const resource_tree> tree,
                   const std::string& factory_password, pdu_family family)
    : device(std::move(identity), around, std::move(tree), false, factory_password),
      family_(family),
      outlets_(static_cast<std::size_t>(std::max(least_outlets, around.sku().shelves))) {}

std::vector<std::string> rack_pdu::outlets() const {
  std::vector<std::string> names;
  for (int outlet = 1; outlet <= outlet_count(); ++outlet) names.push_back("outlet" + std::to_string(outlet));
  return names;
}

void rack_pdu::ask(int outlet, wish what, instant now) {
  auto& of = outlets_.at(static_cast<std::size_t>(outlet - 1));
  const std::uint64_t generation = ++of.generation;
  const fault* const slow = find_fault(fault_kind::pdu_slow, now);
  const instant late =
      slow == nullptr ? instant{0}
                      : std::chrono::duration_cast<instant>(std::chrono::duration<double>(slow->severity));
  of.moving = true;
  around().schedule().at(now + relay_time + late, [this, outlet, what, generation](instant when) {
    auto& moved = outlets_.at(static_cast<std::size_t>(outlet - 1));
    if (moved.generation != generation) {
      return;
    }
    move(outlet, what == wish::on, when);
    if (what != wish::cycle) {
      moved.moving = false;
      return;
    }
    around().schedule().at(when + cycle_time, [this, outlet, generation](instant later) {
      auto& back = outlets_.at(static_cast<std::size_t>(outlet - 1));
      if (back.generation == generation) {
        back.moving = false;
        move(outlet, true, later);
      }
    });
  });
}

void rack_pdu::move(int outlet, bool on, instant now) {
  if (find_fault(fault_kind::pdu_stuck, "outlet" + std::to_string(outlet), "outlet1", now) != nullptr) {
    return;
  }
  outlets_.at(static_cast<std::size_t>(outlet - 1)).on = on;
  around().power_changed(*this, now);
}

double rack_pdu::watts(int outlet) const {
  return outlet_on(outlet) ? around().feed_w(*this, outlet) : 0.0;
}

// ---- SNMP

void rack_pdu::add_raritan(std::map<oid_path, mib_value>& to) const {
  to[of_raritan({3, 1}, {0})] = 1;  // PDUs behind this agent
  to[of_raritan({3, 2, 2, 1, 4}, {1})] = mib_gauge{static_cast<std::uint32_t>(outlet_count())};
  for (int each = 1; each <= outlet_count(); ++each) {
    const auto outlet = static_cast<std::uint32_t>(each);
    const double power = watts(each);
    to[of_raritan({3, 5, 3, 1, 3}, {1, outlet})] = label(each);
    to[of_raritan({4, 1, 2, 1, 2}, {1, outlet})] = outlet_on(each) ? 1 : 0;
    to[of_raritan({4, 1, 2, 1, 3}, {1, outlet})] = outlet_on(each) ? 7 : 8;
    to[of_raritan({3, 5, 4, 1, 7}, {1, outlet, raritan_current})] = mib_gauge{raritan_digits};
    to[of_raritan({3, 5, 4, 1, 7}, {1, outlet, raritan_power})] = mib_gauge{0};
    to[of_raritan({5, 4, 3, 1, 4}, {1, outlet, raritan_current})] =
        mib_gauge{static_cast<std::uint32_t>(std::lround(10.0 * power / line_volts / phases))};
    to[of_raritan({5, 4, 3, 1, 4}, {1, outlet, raritan_power})] =
        mib_gauge{static_cast<std::uint32_t>(std::lround(power))};
  }
}

void rack_pdu::add_apc(std::map<oid_path, mib_value>& to) const {
  for (int each = 1; each <= outlet_count(); ++each) {
    const auto outlet = static_cast<std::uint32_t>(each);
    to[of_apc({9, 2, 3, 1, 3}, {outlet})] = label(each);
    to[of_apc({9, 2, 3, 1, 5}, {outlet})] = outlet_on(each) ? 1 : 2;
    to[of_apc({9, 2, 4, 1, 5}, {outlet})] = outlet_on(each) ? 1 : 2;
  }
}

std::map<oid_path, mib_value> rack_pdu::objects(instant now) const {
  std::map<oid_path, mib_value> all;
  const bool is_raritan = family_ == pdu_family::raritan_pdu2;
  all[join(system_group, {1, 0})] =
      std::string(is_raritan ? "PX3 rack PDU (simulated)" : "rPDU2 rack PDU (simulated)");
  all[join(system_group, {2, 0})] = join(enterprises, is_raritan ? raritan : apc);
  all[join(system_group, {3, 0})] =
      mib_gauge{static_cast<std::uint32_t>(now / std::chrono::milliseconds(10))};
  all[join(system_group, {5, 0})] = identity().member;
  is_raritan ? add_raritan(all) : add_apc(all);
  return all;
}

absl::Status rack_pdu::set_object(const oid_path& object, std::int64_t value, instant now, std::string& act) {
  const bool is_raritan = family_ == pdu_family::raritan_pdu2;
  const oid_path column = is_raritan ? of_raritan({4, 1, 2, 1, 2}, {1}) : of_apc({9, 2, 4, 1, 5}, {});
  if (object.size() != column.size() + 1 || !std::equal(column.begin(), column.end(), object.begin()) ||
      object.back() < 1 || object.back() > static_cast<std::uint32_t>(outlet_count())) {
    return absl::NotFoundError("not writable");
  }
  std::optional<wish> what;
  if (is_raritan) {
    what = value == 0 ? std::optional(wish::off) : value == 1 ? std::optional(wish::on) : std::nullopt;
    if (value == 2) what = wish::cycle;
  } else {
    what = value == 1 ? std::optional(wish::on) : value == 2 ? std::optional(wish::off) : std::nullopt;
    if (value == 3) what = wish::cycle;
  }
  if (!what) {
    return absl::InvalidArgumentError("no such code");
  }
  const int outlet = static_cast<int>(object.back());
  act = std::to_string(outlet) + (*what == wish::on ? " on" : *what == wish::off ? " off" : " cycle");
  ask(outlet, *what, now);
  return absl::OkStatus();
}

// ---- Redfish

json rack_pdu::value(const value_name& name, instant now) const {
  const int outlet = name.arguments.empty() ? 0 : as_number(name.arguments[0]).value_or(0);
  if (!name.name.starts_with("outlet_") || outlet < 1 || outlet > outlet_count()) {
    return device::value(name, now);
  }
  const std::string point = "outlet" + std::to_string(outlet);
  if (name.name == "outlet_state") {
    return outlet_on(outlet) ? "On" : "Off";
  }
  if (name.name == "outlet_moves") {
    return outlets_.at(static_cast<std::size_t>(outlet - 1)).moving;
  }
  if (name.name == "outlet_watts") {
    return outlet_on(outlet) ? noisy(watts(outlet), 2.0, point, now) : 0.0;
  }
  if (name.name == "outlet_amps") {
    return outlet_on(outlet) ? noisy(watts(outlet) / line_volts / phases, 0.01, point, now) : 0.0;
  }
  return nullptr;
}

device::action_reply rack_pdu::post(const std::string& path, const json& body, instant now,
                                    request_note& note) {
  if (!path.starts_with(outlets_path) || !path.ends_with(action)) {
    return std::nullopt;
  }
  const auto outlet = as_number(
      std::string_view(path).substr(outlets_path.size(), path.size() - outlets_path.size() - action.size()));
  if (!outlet || *outlet < 1 || *outlet > outlet_count()) {
    return not_found(path);
  }
  const auto state = body.find("PowerState");
  const std::string wanted = state != body.end() && state->is_string() ? state->get<std::string>() : "";
  if (wanted != "On" && wanted != "Off" && wanted != "PowerCycle") {
    return error_reply(400, "ActionParameterValueNotInList", "PowerState is On, Off or PowerCycle.");
  }
  note.act = "outlet";
  note.argument = std::to_string(*outlet) + " " + wanted;
  ask(*outlet, wanted == "On" ? wish::on : wanted == "Off" ? wish::off : wish::cycle, now);
  return empty_reply(204);
}

json rack_pdu::truth(instant now) const {
  json result = device::truth(now);
  result["family"] = name_of(family_);
  for (int outlet = 1; outlet <= outlet_count(); ++outlet) {
    result["outlets"][std::to_string(outlet)] = {{"on", outlet_on(outlet)}, {"watts", watts(outlet)}};
  }
  return result;
}

json rack_pdu::save() const {
  json saved = device::save();
  for (const relay& each : outlets_) saved["outlets"].push_back(each.on);
  return saved;
}

void rack_pdu::load(const json& saved) {
  device::load(saved);
  for (std::size_t outlet = 0; outlet < outlets_.size(); ++outlet)
    saved.at("outlets").at(outlet).get_to(outlets_[outlet].on);
}

}  // namespace busbar::sim
