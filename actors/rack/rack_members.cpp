#include "actors/rack/rack_members.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <utility>

#include "actors/node/detector_logic.hpp"
#include "actors/node/node_logic.hpp"
#include "actors/rack/rack_changes.hpp"

namespace busbar::rack {
namespace {

std::uint64_t number_in(const journal::Rack& rack, std::string_view fact) {
  const auto known = rack.facts().find(std::string(fact));
  std::uint64_t number = 0;
  if (known != rack.facts().end())
    std::from_chars(known->second.data(), known->second.data() + known->second.size(), number);
  return number;
}

}  // namespace

applied_spec apply_spec(const journal::RackSpec& spec, const journal::Rack* before, const member_map& members,
                        const std::function<std::string()>& new_uuid) {
  applied_spec out;
  const std::string& rack_name = spec.manifest().rack();
  auto rack = std::make_shared<journal::Rack>();
  if (before != nullptr) *rack = *before;
  rack->set_name(rack_name);
  if (rack->uid().empty()) rack->set_uid(new_uuid());
  if (rack->step() == journal::RACK_STEP_UNSPECIFIED) {
    rack->set_step(journal::PLANNED);
    rack->set_goal(journal::PLANNED);
    rack->set_state("planned");
  }
  rack->set_generation(rack->generation() + 1);
  *rack->mutable_spec() = spec;
  out.rack = rack;
  std::set<std::string> declared;
  for (const journal::Member& row : spec.manifest().members()) {
    const std::string name = fmt::format("{}/{}", rack_name, row.slot());
    declared.insert(name);
    const auto found = members.find(name);
    auto member = std::make_shared<journal::Node>();
    if (found != members.end() && is_same_member(found->second->spec(), row)) {
      *member = *found->second;
    } else {
      member->set_step(journal::DECLARED);
      member->set_goal(journal::DECLARED);
      member->set_uid(new_uuid());
    }
    member->set_name(name);
    *member->mutable_spec() = row;
    member->set_generation(member->generation() + 1);
    member->set_spec_digest(spec.digest());
    out.members.push_back(member);
  }
  for (const auto& [name, member] : members) {
    if (!declared.contains(name)) out.removed.push_back(name);
  }
  return out;
}

std::uint64_t armed_generation(const journal::Rack& rack) {
  return number_in(rack, generation_fact);
}

// What was imported has been seen too: racks of before the fact have that alone.
std::uint64_t known_latch_number(const journal::Rack& rack) {
  return std::max(number_in(rack, latch_number_fact), number_in(rack, "latches_imported"));
}

bool arming_queue::begin() {
  if (!now_.empty() || next_.empty()) return false;
  now_ = std::exchange(next_, {});
  sent_.insert(now_.begin(), now_.end());
  return true;
}

std::set<std::string> arming_queue::end() {
  return std::exchange(now_, {});
}

std::optional<std::string> known_cdu_pin(const journal::Rack& rack) {
  const auto pin = rack.facts().find(std::string(cdu_pin_fact));
  const auto address = rack.facts().find(std::string(cdu_address_fact));
  const bool known = pin != rack.facts().end() && address != rack.facts().end() &&
                     address->second == rack.spec().manifest().cooling().address();
  return known ? std::optional(pin->second) : std::nullopt;
}

namespace {

std::string_view record_kind(journal::MemberKind kind) {
  if (kind == journal::COMPUTE_TRAY) return "compute_tray";
  if (kind == journal::SWITCH_TRAY) return "switch_tray";
  if (kind == journal::POWER_SHELF) return "power_shelf";
  return "rack_controller";
}

// Isolation valves behind this controller. What a control valve does is no trip's business: it has a loop.
void add_valves(const journal::Manifest& manifest, const journal::Node& member,
                interlock::ArmedDevice& device) {
  for (const journal::ValveSpec& spec : manifest.valves()) {
    if (spec.member() != member.spec().slot() || spec.kind() != "isolation") continue;
    interlock::Valve& valve = *device.add_valves();
    valve.set_name(spec.connector().empty() ? spec.name() : spec.connector());
    valve.set_stroke_ms(
        static_cast<std::uint32_t>(spec.stroke().seconds() * 1000 + spec.stroke().nanos() / 1'000'000));
  }
}

// The interlock asks no name server.
bool is_numeric(std::string_view address) {
  const std::string_view host = address.substr(0, address.rfind(':'));
  return address.rfind(':') != std::string_view::npos && !host.empty() &&
         (host.front() == '[' || host.find_first_not_of("0123456789.") == std::string_view::npos);
}

void add_cdu(const journal::Rack& rack, const devices::credentials& login, interlock::ArmingRecord& record) {
  const journal::CoolingSpec& cooling = rack.spec().manifest().cooling();
  const auto pin = known_cdu_pin(rack);
  if (!pin.has_value() || !is_numeric(cooling.address()) || login.user.empty() || login.password.empty())
    return;
  interlock::ArmedDevice& device = *record.add_devices();
  device.set_name(cooling.cdu());
  device.set_kind("cdu");
  device.set_address(cooling.address());
  device.set_pin_sha256(*pin);
  device.set_account(login.user);
  device.set_password(login.password);
  *device.mutable_detectors() = cooling.detectors();
  device.set_connector(cooling.connector().empty() ? rack.name() : cooling.connector());
  interlock::CoolantLimits& limits = *record.mutable_coolant();
  limits.set_flow_min_lpm(cooling.flow_min_lpm());
  if (cooling.supply_max_c() > 0) limits.set_supply_max_c(cooling.supply_max_c());
  if (cooling.pressure_max_kpa() > 0) limits.set_pressure_max_kpa(cooling.pressure_max_kpa());
}

}  // namespace

interlock::ArmingRecord arming_record(const journal::Rack& rack, const member_map& members,
                                      const std::set<std::string>& joining, std::uint64_t generation,
                                      const std::function<std::string(const journal::Node&)>& password_of,
                                      const std::optional<devices::credentials>& cdu_login) {
  interlock::ArmingRecord record;
  record.set_rack(rack.name());
  record.set_generation(generation);
  for (const auto& [name, member] : members) {
    // One that was handed back stays as it is: a record without it is for a person to hand over.
    const journal::Access& access = member->access();
    if (!access.interlock_account_created() && !access.interlock_armed() && !joining.contains(name)) continue;
    interlock::ArmedDevice device;
    device.set_name(name);
    device.set_kind(std::string(record_kind(member->spec().kind())));
    device.set_address(member->identity().address());
    const auto before = member->facts().find("interlock_pin");
    const bool handed_back = member->identity().pin_sha256().empty() && before != member->facts().end();
    device.set_pin_sha256(handed_back ? before->second : member->identity().pin_sha256());
    device.set_account(node::interlock_account(rack.uid()));
    for (const std::string& detector : node::needed_detectors(rack.spec().sku(), member->spec().kind()))
      device.add_detectors(detector);
    if (!node::is_switched(*member)) add_valves(rack.spec().manifest(), *member, device);
    const bool nothing_to_do = !node::is_switched(*member) && device.valves().empty();
    if (nothing_to_do) continue;
    device.set_password(password_of(*member));
    if (device.password().empty()) continue;
    *record.add_devices() = std::move(device);
    record.add_order(name);
  }
  if (cdu_login.has_value()) add_cdu(rack, *cdu_login, record);
  return record;
}

std::map<std::string, std::string> shape_of(const interlock::ArmingRecord& record) {
  std::map<std::string, std::string> shape;
  for (interlock::ArmedDevice device : record.devices()) {
    device.clear_password();
    shape[device.name()] = device.SerializeAsString();
  }
  if (record.has_coolant()) shape["coolant"] = record.coolant().SerializeAsString();
  return shape;
}

std::map<std::string, std::string> record_shape(const journal::Rack& rack, const member_map& members) {
  member_map armed;
  for (const auto& [name, member] : members) {
    if (member->access().interlock_armed()) armed.emplace(name, member);
  }
  const journal::CoolingSpec& cooling = rack.spec().manifest().cooling();
  const std::string& user =
      cooling.has_interlock_login() ? cooling.interlock_login().user() : cooling.login().user();
  return shape_of(arming_record(
      rack, armed, {}, 0, [](const journal::Node&) { return std::string("."); },
      devices::credentials{user, "."}));
}

}  // namespace busbar::rack
