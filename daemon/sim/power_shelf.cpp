#include "daemon/sim/power_shelf.hpp"

#include <utility>

#include "daemon/sim/redfish_reply.hpp"

namespace busbar::sim {

namespace {
constexpr double output_volts = 50.0;
constexpr double line_volts = 277.0;
constexpr std::string_view actions_path = "/redfish/v1/Chassis/PowerShelf_0/Actions/Chassis.";
}  // namespace

power_shelf::power_shelf(device_identity identity, environment& around,
                         std::shared_ptr<const resource_tree> tree, const std::string& factory_password)
    : device(std::move(identity), around, std::move(tree), false, factory_password) {}

bool power_shelf::failed(int psu, instant now) const {
  return find_fault(fault_kind::psu, "psu" + std::to_string(psu), "psu0", now) != nullptr;
}

int power_shelf::working(instant now) const {
  int count = 0;
  for (int psu = 0; psu < around().sku().psus; ++psu) {
    count += failed(psu, now) ? 0 : 1;
  }
  return count;
}

json power_shelf::psu_value(std::string_view name, int psu, instant now) const {
  const bool bad = failed(psu, now);
  const std::string point = std::string(name) + std::to_string(psu);
  const int alive = working(now);
  const double share = bad || alive == 0 ? 0.0 : around().shelf_output_w(*this) / alive;
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
    return output_on_ && !bad ? noisy(output_volts, 0.02, point, now) : 0.0;
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
    return working(now) == around().sku().psus ? "OK" : "Critical";
  }
  if (name.name == "shelf_output") {
    return output_on_ ? noisy(around().shelf_output_w(*this), 10.0, "output", now) : 0.0;
  }
  if (name.name == "shelf_volts") {
    return output_on_ ? noisy(output_volts, 0.02, "volts", now) : 0.0;
  }
  if (name.name == "power_state") {
    return changing_ ? (output_on_ ? "PoweringOff" : "PoweringOn") : (output_on_ ? "On" : "Off");
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
  if (wanted == output_on_ && !changing_) {
    return faulty(fault_kind::already_400, now)
               ? error_reply(400, "PropertyValueConflict",
                             "The shelf is in the requested power state already.")
               : empty_reply(204);
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
