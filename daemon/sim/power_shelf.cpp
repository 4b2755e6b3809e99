#include "daemon/sim/power_shelf.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "daemon/sim/redfish_reply.hpp"

namespace busbar::sim {

namespace {

constexpr double no_load_volts = 50.5;
constexpr double droop_volts = 0.5;  // from no load to full load
constexpr double line_volts = 277.0;
constexpr double own_w = 40.0;  // controller and fans
constexpr double share_spread = 0.05;
constexpr double trip_s = 4.0;  // I squared t: it trips after this over (load / capacity)^2 - 1
constexpr double quickest_trip_s = 0.05;
constexpr std::string_view actions_path = "/redfish/v1/Chassis/PowerShelf_0/Actions/Chassis.";

// Of one supply, by its share of its rating.
double efficiency(double load) {
  return load < 0.5 ? 0.92 + (load - 0.1) * 0.045 / 0.4 : 0.965 - (load - 0.5) * 0.01 / 0.5;
}

}  // namespace

power_shelf::power_shelf(device_identity identity, environment& around,
                         std::shared_ptr<const resource_tree> tree, const std::string& factory_password)
    : device(std::move(identity), around, std::move(tree), false, factory_password) {}

bool power_shelf::fed(int psu) const {
  return psu < around().sku().psus / 2 ? feeds_[0] : feeds_[1];
}

bool power_shelf::failed(int psu, instant now) const {
  return !fed(psu) || find_fault(fault_kind::psu, "psu" + std::to_string(psu), "psu0", now) != nullptr;
}

int power_shelf::working(instant now) const {
  int count = 0;
  for (int psu = 0; psu < around().sku().psus; ++psu) {
    count += failed(psu, now) ? 0 : 1;
  }
  return count;
}

double power_shelf::capacity_w(instant now) const {
  return working(now) * static_cast<double>(around().sku().psu_watts);
}

double power_shelf::output_volts(instant now) const {
  const double capacity = capacity_w(now);
  const double load = capacity > 0 ? around().shelf_output_w(*this) / capacity : 0.0;
  return no_load_volts - droop_volts * load;
}

double power_shelf::input_w(bool feed_a, instant now) const {
  if (!feeds_[feed_a ? 0 : 1]) {
    return 0.0;
  }
  int here = 0;
  for (int psu = 0; psu < around().sku().psus; ++psu) {
    const bool on_a = psu < around().sku().psus / 2;
    here += on_a == feed_a && !failed(psu, now) ? 1 : 0;
  }
  const double own = own_w / (feeds_[0] && feeds_[1] ? 2.0 : 1.0);
  const int all = working(now);
  if (!output_on_ || all == 0) {
    return own;
  }
  const double each = around().shelf_output_w(*this) / all;
  return own + here * each / std::max(0.5, efficiency(each / around().sku().psu_watts));
}

void power_shelf::feeds(bool a, bool b, instant now) {
  feeds_ = {a, b};
  standby_power(a || b, now);
}

void power_shelf::standby_lost(instant now) {
  ++generation_;
  changing_ = false;
  says_off_ = false;
  if (output_on_) {
    output_on_ = false;
    around().power_changed(*this, now);
  }
}

void power_shelf::loaded(double watts, instant now) {
  const double capacity = capacity_w(now);
  const bool too_much = output_on_ && watts > capacity;
  if (too_much == overloaded_) {
    return;
  }
  overloaded_ = too_much;
  const std::uint64_t generation = ++overload_;
  if (!too_much) {
    return;
  }
  const double ratio = capacity > 0 ? watts / capacity : 1e3;
  const double after_s = std::max(quickest_trip_s, trip_s / (ratio * ratio - 1.0));
  const auto after =
      std::chrono::duration_cast<instant>(std::chrono::duration<double>(std::min(after_s, 600.0)));
  around().schedule().at(now + after, [this, generation](instant when) {
    if (generation != overload_ || !output_on_) {
      return;
    }
    ++generation_;
    changing_ = false;
    tripped_ = true;
    output_on_ = false;
    overloaded_ = false;
    around().power_changed(*this, when);
    around().event(*this, "Environmental.1.0.PowerSupplyFailed", "The shelf tripped on overload.",
                   "/redfish/v1/Chassis/PowerShelf_0");
  });
}

json power_shelf::psu_value(std::string_view name, int psu, instant now) const {
  const bool bad = failed(psu, now);
  const std::string point = std::string(name) + std::to_string(psu);
  const int alive = working(now);
  // Supplies share within a few per cent, each its own way.
  const double own = 1.0 + share_spread * (2.0 * physics::uniform(physics::hash_of(
                                                     identity().serial, static_cast<std::uint64_t>(psu))) -
                                           1.0);
  const double share =
      bad || alive == 0 ? 0.0 : around().shelf_output_w(*this) / alive * (alive > 1 ? own : 1.0);
  if (name == "psu_health") {
    return bad ? "Critical" : "OK";
  }
  if (name == "psu_input") {
    return bad ? "LossOfInput" : "Normal";
  }
  if (name == "psu_output") {
    return output_on_ && !bad ? noisy(share, 3.0, point, now) : 0.0;
  }
  if (name == "psu_volts") {
    return output_on_ && !bad ? noisy(output_volts(now), 0.02, point, now) : 0.0;
  }
  if (name == "psu_line") {
    return bad ? 0.0 : noisy(line_volts, 0.4, point, now);
  }
  if (name == "psu_temperature") {
    return noisy(34.0 + share / 250.0, 0.2, point, now);
  }
  return nullptr;
}

json power_shelf::value(const value_name& name, instant now) const {
  if (name.name.starts_with("psu_") && !name.arguments.empty()) {
    return psu_value(name.name, as_number(name.arguments[0]).value_or(0), now);
  }
  if (name.name == "psu_watts") {
    return around().sku().psu_watts;
  }
  if (name.name == "shelf_watts") {
    return around().sku().psu_watts * around().sku().psus;
  }
  if (name.name == "shelf_health") {
    return working(now) == around().sku().psus && !tripped_ ? "OK" : "Critical";
  }
  if (name.name == "shelf_output") {
    return output_on_ ? noisy(around().shelf_output_w(*this), 10.0, "output", now) : 0.0;
  }
  if (name.name == "shelf_volts") {
    return output_on_ ? noisy(output_volts(now), 0.02, "volts", now) : 0.0;
  }
  if (name.name == "power_state") {
    return changing_ ? (output_on_ ? "PoweringOff" : "PoweringOn") : (says_on() ? "On" : "Off");
  }
  if (name.name == "reset_types") {
    return std::vector<std::string>{"On", "ForceOff"};
  }
  return device::value(name, now);
}

device::action_reply power_shelf::post(const std::string& path, const json& body, instant now,
                                       request_note& note) {
  if (!path.starts_with(actions_path)) {
    return std::nullopt;
  }
  std::string type = path.substr(actions_path.size());
  if (type == "Reset") {
    const auto wanted = body.find("ResetType");
    type = wanted != body.end() && wanted->is_string() ? wanted->get<std::string>() : "";
  }
  note.act = "reset";
  note.argument = type;
  return reset(type, now);
}

http_reply power_shelf::reset(const std::string& type, instant now) {
  const fault* const missing = find_fault(fault_kind::reset_not_offered, now);
  const bool refused = missing != nullptr && (missing->value.empty() ? "On" : missing->value) == type;
  if (refused || (type != "On" && type != "ForceOff")) {
    return error_reply(400, "ActionParameterNotSupported", "The ResetType " + type + " is not supported.");
  }
  const bool wanted = type == "On";
  if (wanted == says_on() && !changing_) {
    return faulty(fault_kind::already_400, now)
               ? error_reply(400, "PropertyValueConflict",
                             "The shelf is in the requested power state already.")
               : empty_reply(204);
  }
  if (wanted) {
    tripped_ = false;
    says_off_ = false;
  }
  const std::uint64_t generation = ++generation_;
  changing_ = wanted != output_on_;
  instant delay = around().timings().shelf_on;
  if (!wanted && faulty(fault_kind::off_ignored, now)) {
    delay += around().timings().off_ignored;
    changing_ = false;
  }
  around().schedule().at(now + delay, [this, generation, wanted](instant when) {
    if (generation != generation_) {
      return;
    }
    changing_ = false;
    if (!wanted && faulty(fault_kind::shelf_output_stays_on, when)) {
      says_off_ = true;
      return;
    }
    output_on_ = wanted;
    around().power_changed(*this, when);
  });
  return empty_reply(204);
}

json power_shelf::truth(instant now) const {
  json result = device::truth(now);
  result["output_on"] = output_on_;
  result["output_w"] = around().shelf_output_w(*this);
  result["working_psus"] = working(now);
  result["feeds"] = {{"a", feeds_[0]}, {"b", feeds_[1]}};
  result["input_w"] = {{"a", input_w(true, now)}, {"b", input_w(false, now)}};
  result["tripped"] = tripped_;
  return result;
}

json power_shelf::save() const {
  json saved = device::save();
  saved["output_on"] = output_on_;
  return saved;
}

void power_shelf::load(const json& saved) {
  device::load(saved);
  saved.at("output_on").get_to(output_on_);
}

}  // namespace busbar::sim
