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

interlock::ArmingRecord arming_record(const journal::Rack& rack, const member_map& members,
                                      const std::set<std::string>& joining, std::uint64_t generation,
                                      const std::function<std::string(const journal::Node&)>& password_of) {
  interlock::ArmingRecord record;
  record.set_rack(rack.name());
  record.set_generation(generation);
  for (const auto& [name, member] : members) {
    if (member->spec().kind() == journal::POWER_SHELF) continue;
    // One that was handed back stays as it is: a record without it is for a person to hand over.
    const journal::Access& access = member->access();
    if (!access.interlock_account_created() && !access.interlock_armed() && !joining.contains(name)) continue;
    const std::string password = password_of(*member);
    if (password.empty()) continue;
    interlock::ArmedDevice& device = *record.add_devices();
    device.set_name(name);
    device.set_kind(member->spec().kind() == journal::COMPUTE_TRAY ? "compute_tray" : "switch_tray");
    device.set_address(member->identity().address());
    const auto before = member->facts().find("interlock_pin");
    const bool handed_back = member->identity().pin_sha256().empty() && before != member->facts().end();
    device.set_pin_sha256(handed_back ? before->second : member->identity().pin_sha256());
    device.set_account(node::interlock_account(rack.uid()));
    device.set_password(password);
    for (const std::string& detector : node::needed_detectors(rack.spec().sku(), member->spec().kind()))
      device.add_detectors(detector);
    record.add_order(name);
  }
  return record;
}

}  // namespace busbar::rack
