#include "actors/rack/rack_equipment.hpp"

#include <fmt/format.h>
#include <google/protobuf/util/message_differencer.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "actors/core/errors.hpp"

namespace busbar::rack {
namespace {

using google::protobuf::util::MessageDifferencer;

template <class Message, class Spec>
bool is_same(const Message& stored, const Spec& declared) {
  return MessageDifferencer::Equals(stored.spec(), declared);
}

bool is_under(const std::string& name, const std::string& rack) {
  return name.size() > rack.size() && name.starts_with(rack) && name[rack.size()] == '/';
}

template <class Message>
bool has_open_command(const Message& stored) {
  return stored.intents_size() > 0;
}

// Adds to `refused` what is changed or dropped with an open command.
template <class Message, class Specs>
void look_for_changes(const core::object_map<Message>& stored, const Specs& declared, const std::string& rack,
                      std::string& refused) {
  for (const auto& [name, held] : stored) {
    if (!is_under(name, rack) || !has_open_command(*held.object)) continue;
    bool same = false;
    for (const auto& row : declared)
      same = same || (rack + "/" + row.name() == name && is_same(*held.object, row));
    if (same) continue;
    refused += fmt::format("{}{} has a command that is not read back yet", refused.empty() ? "" : "; ", name);
  }
}

}  // namespace

void apply_equipment(const journal::RackSpec& spec, const core::snapshot& state,
                     const std::function<std::string()>& new_uuid, core::journal_batch& batch) {
  const std::string& rack = spec.manifest().rack();
  std::set<std::string> declared;
  for (const journal::ValveSpec& row : spec.manifest().valves()) {
    const std::string name = rack + "/" + row.name();
    declared.insert(name);
    const auto before = state.valve(name);
    if (before != nullptr && is_same(*before, row)) continue;
    auto valve = std::make_shared<journal::Valve>(
        before != nullptr ? *before : valve::declared_valve(rack, row, new_uuid()));
    *valve->mutable_spec() = row;
    if (before != nullptr) valve->set_generation(valve->generation() + 1);
    batch.put(std::shared_ptr<const journal::Valve>(std::move(valve)));
  }
  for (const auto& [name, held] : *state.valves) {
    if (is_under(name, rack) && !declared.contains(name)) batch.erase(core::object_kind::valve, name);
  }
  declared.clear();
  for (const journal::PduSpec& row : spec.manifest().pdus()) {
    const std::string name = rack + "/" + row.name();
    declared.insert(name);
    const auto before = state.pdu(name);
    if (before != nullptr && is_same(*before, row)) continue;
    auto pdu = std::make_shared<journal::Pdu>(before != nullptr ? *before
                                                                : pdu::declared_pdu(rack, row, new_uuid()));
    *pdu->mutable_spec() = row;
    pdu::declare_outlets(*pdu);
    if (before != nullptr) pdu->set_generation(pdu->generation() + 1);
    batch.put(std::shared_ptr<const journal::Pdu>(std::move(pdu)));
  }
  for (const auto& [name, held] : *state.pdus) {
    if (is_under(name, rack) && !declared.contains(name)) batch.erase(core::object_kind::pdu, name);
  }
}

absl::Status refuse_equipment_changes(const journal::RackSpec& next, const core::snapshot& state) {
  const std::string& rack = next.manifest().rack();
  std::string refused;
  look_for_changes(*state.valves, next.manifest().valves(), rack, refused);
  look_for_changes(*state.pdus, next.manifest().pdus(), rack, refused);
  if (refused.empty()) return absl::OkStatus();
  return core::make_fault(core::fault::MEMBER_IN_USE,
                          refused + "; nothing was stored; apply again when it has ended (busbar ops)");
}

std::vector<std::string> hosts_not_off(const std::string& rack, const core::snapshot& state) {
  std::vector<std::string> hosts;
  for (const auto& [name, held] : *state.nodes) {
    const journal::Node& node = *held.object;
    const journal::MemberKind kind = node.spec().kind();
    const bool has_host = kind == journal::COMPUTE_TRAY || kind == journal::SWITCH_TRAY;
    if (!is_under(name, rack) || node.retired() || !has_host) continue;
    const bool off =
        node.power().observed() == journal::POWER_OFF && node.power().wanted() != journal::POWER_ON;
    if (!off) hosts.push_back(name);
  }
  return hosts;
}

namespace {

const journal::Outlet* outlet_of(const journal::Pdu& pdu, const std::string& id) {
  for (const journal::Outlet& row : pdu.outlets()) {
    if (row.id() == id) return &row;
  }
  return nullptr;
}

bool has_other_feed(const std::string& rack, const core::snapshot& state, const std::string& pdu,
                    const journal::Outlet& asked) {
  for (const auto& [name, held] : *state.pdus) {
    if (!is_under(name, rack) || held.object->health() != journal::HEALTH_GOOD) continue;
    for (const journal::Outlet& row : held.object->outlets()) {
      const bool itself = name == pdu && row.id() == asked.id();
      if (!itself && row.feeds() == asked.feeds() && row.state() == journal::Outlet::ON) return true;
    }
  }
  return false;
}

// Without this shelf the others still carry what is on.
bool others_carry(const std::string& shelf, const journal::Rack& rack, const core::snapshot& state,
                  const std::vector<std::string>& hosts) {
  const auto& of = rack.spec().sku().power_shelf();
  double given_kw = 0;
  double drawn_kw = 0;
  for (const auto& [name, held] : *state.nodes) {
    const journal::Node& node = *held.object;
    const bool counts = is_under(name, rack.name()) && name != shelf &&
                        node.spec().kind() == journal::POWER_SHELF &&
                        node.power().observed() == journal::POWER_ON && !is_failed(node);
    if (counts) given_kw += of.psus() * of.psu_watts() / 1000.0;
  }
  for (const std::string& host : hosts) {
    const auto node = state.node(host);
    const bool compute = node != nullptr && node->spec().kind() == journal::COMPUTE_TRAY;
    drawn_kw += compute ? compute_tray_peak_kw : switch_tray_peak_kw;
  }
  return drawn_kw <= given_kw;
}

}  // namespace

std::vector<std::string> what_needs(const std::string& rack, const core::snapshot& state,
                                    const std::string& pdu, const std::string& outlet) {
  const auto strip = state.pdu(pdu);
  const journal::Outlet* const asked = strip == nullptr ? nullptr : outlet_of(*strip, outlet);
  const auto of_rack = state.rack(rack);
  if (asked == nullptr || asked->feeds().empty() || of_rack == nullptr) return {};
  const std::string fed = rack + "/" + asked->feeds();
  const auto member = state.node(fed);
  if (member == nullptr || has_other_feed(rack, state, pdu, *asked)) return {};
  std::vector<std::string> hosts = hosts_not_off(rack, state);
  if (member->spec().kind() != journal::POWER_SHELF) {
    const bool needed = std::find(hosts.begin(), hosts.end(), fed) != hosts.end();
    return needed ? std::vector<std::string>{fed} : std::vector<std::string>{};
  }
  if (hosts.empty() || others_carry(fed, *of_rack, state, hosts)) return {};
  return hosts;
}

valve::surroundings surroundings_of(const std::string& rack, const core::snapshot& state,
                                    const interlock_view* heard) {
  valve::surroundings around;
  around.hosts = hosts_not_off(rack, state);
  for (const auto& [name, held] : *state.nodes) {
    if (is_under(name, rack) && held.object->leak_latched() && around.no_opening.empty())
      around.no_opening = fmt::format("a leak is latched on {}", name);
  }
  // What was heard last stays true of an interlock that fell silent: its trips are not over for that.
  if (heard == nullptr || heard->status == nullptr) return around;
  for (const interlock::Latch& latch : heard->status->latches())
    around.no_opening = fmt::format("the interlock holds a latch of {}: {}", latch.device(), latch.detail());
  for (const interlock::TripStatus& trip : heard->status->open_trips()) {
    const std::string text =
        fmt::format("the interlock's trip {} of {}: {}", trip.number(), trip.scope(), trip.detail());
    around.no_opening = text;
    if (trip.scope() == rack && around.trip.empty()) around.trip = text;
  }
  return around;
}

bool is_equipment_verb(std::string_view verb) {
  return verb == "valve_set" || verb == "valve_release" || verb == "outlet_switch" ||
         verb == "power_cap";
}

bool may_shut(const core::command& what, const journal::Valve& valve) {
  if (what.verb != "valve_set" || what.validate_only) return false;
  const auto asked = what.arguments.find("opening_percent");
  double percent = 0;
  if (asked != what.arguments.end())
    std::from_chars(asked->second.data(), asked->second.data() + asked->second.size(), percent);
  journal::Valve after = valve;
  after.set_commanded_percent(percent);
  return valve::shuts_off(after);
}

}  // namespace busbar::rack
