#include "tests/sim/rack_watch.hpp"

#include <google/protobuf/util/message_differencer.h>

#include <algorithm>
#include <cstdlib>

#include "actors/node/detector_logic.hpp"
#include "actors/node/node_logic.hpp"
#include "actors/rack/rack_rules.hpp"
#include "daemon/sim/json.hpp"

namespace busbar::test_support {
namespace {

using namespace std::chrono_literals;

// Wrong logins in a row at which a BMC met in the field locks an account.
constexpr std::uint64_t lowest_lockout = 5;
bool ok(const sim::journal_record& record) {
  return record.status >= 200 && record.status < 300;
}
bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

journal::MemberKind kind_of(sim::device_kind kind) {
  return kind == sim::device_kind::compute_tray ? journal::COMPUTE_TRAY : journal::SWITCH_TRAY;
}

std::string step_word(journal::NodeStep step) {
  return journal::NodeStep_Name(step);
}

}  // namespace

rack_watch::rack_watch(sim::site& site, const site_agents& agents, const journal::RackSpec& spec)
    : site_(site), physics_(dynamic_cast<const sim::environment&>(site)), agents_(agents), spec_(spec) {
  for (const sim::device_identity& each : site.devices()) {
    seen_device& made = devices_[each.address];
    made.member = each.member;
    made.kind = each.kind;
  }
}

void rack_watch::see_with(snapshot_source acknowledged, gate_source gate_open) {
  acknowledged_ = std::move(acknowledged);
  gate_open_ = std::move(gate_open);
  last_.reset();
}

void rack_watch::report(std::string what) {
  if (!broken_.has_value()) broken_ = std::move(what);
}

rack_watch::seen_device* rack_watch::at(const std::string& address) {
  const auto found = devices_.find(address);
  return found == devices_.end() ? nullptr : &found->second;
}

bool rack_watch::fault_on(sim::fault_kind kind, const std::string& member) const {
  return site_.fault_active(kind, member, now_);
}

std::uint64_t rack_watch::count(const std::string& member, const std::string& act) const {
  const auto found = counts_.find(member);
  if (found == counts_.end()) return 0;
  const auto row = found->second.find(act);
  return row == found->second.end() ? 0 : row->second;
}

detector_truth rack_watch::truth_of(const std::string& member, const std::string& detector,
                                    sim::instant now) const {
  detector_truth result = detector_truth::dry;
  for (const sim::fault_row& row : site_.faults(now)) {
    if (!row.in_force || row.what.member != member || row.what.part != detector) continue;
    if (row.what.kind == sim::fault_kind::leak) return detector_truth::wet;
    if (row.what.kind == sim::fault_kind::detector_fault) result = detector_truth::unknown;
  }
  return result;
}

bool rack_watch::is_powered(const std::string& member) const {
  const auto text = site_.truth(member + "/power", now_);
  return text.ok() && *text != "\"Off\"";
}

void rack_watch::sample(sim::instant now) {
  now_ = now;
  const sim::rack_coolant coolant = physics_.coolant(1);
  const journal::CoolingSpec& limits = spec_.manifest().cooling();
  const bool good = coolant.flow_lpm >= limits.flow_min_lpm() && coolant.dp_kpa >= limits.dp_min_kpa() &&
                    coolant.dp_kpa <= limits.dp_max_kpa();
  if (good) {
    flow_bad_since_.reset();
    if (!flow_good_since_) flow_good_since_ = now;
  } else if (!flow_bad_since_) {
    good_before_bad_ = flow_good_since_ ? now - *flow_good_since_ : sim::instant{0};
    flow_good_since_.reset();
    flow_bad_since_ = now;
  }
  for (auto& [address, each] : devices_) {
    if (gate_open_ != nullptr && gate_open_(each.member)) {
      each.gate_closed_since.reset();
    } else if (!each.gate_closed_since) {
      each.gate_closed_since = now;
    }
  }
}

// ---- on the wire
// -----------------------------------------------------------------------------------------------------------------

void rack_watch::on_sent(const std::string& address, const std::string& method, const std::string& path,
                         const std::string& body) {
  const seen_device* const device = at(address);
  if (device == nullptr || method == "GET") return;
  if (has(path, "/Sessions")) {
    if (method == "POST" && fault_on(sim::fault_kind::certificate_changed, device->member))
      report(device->member + ": a login was sent to a BMC whose certificate is not the pinned one");
    return;
  }
  no_act_before_its_intent_is_durable(*device, method, path);
  if (!has(path, "ComputerSystem.Reset") && !has(path, "Chassis.Reset")) return;
  for (const char* const act : {"\"On\"", "\"ForceRestart\"", "\"PowerCycle\""}) {
    if (!has(body, act)) continue;
    ++counts_[device->member][std::string("sent ") + act];
    no_energy_past_a_shut_gate(*device, act);
  }
}

void rack_watch::no_act_before_its_intent_is_durable(const seen_device& device, const std::string& method,
                                                     const std::string& path) {
  std::string verb;
  if (method == "POST" && has(path, "/Accounts")) verb = "create_account";
  if (method == "PATCH" && has(path, "/Accounts/")) verb = "set_password";
  if (method == "POST" && has(path, "/UpdateService")) verb = "push_firmware";
  if (has(path, "Manager.Reset")) verb = "reset_manager";
  if (has(path, "ComputerSystem.Reset") || has(path, "Chassis.Reset")) verb = "reset";
  if (verb.empty() || acknowledged_ == nullptr) return;
  const auto node = acknowledged_()->node(device.member);
  if (node == nullptr)
    return report(device.member + ": " + verb + " on the wire, and the member is not stored");
  const auto& intents = node->intents();
  if (std::any_of(intents.begin(), intents.end(),
                  [&verb](const auto& intent) { return intent.verb() == verb; }))
    return;
  report(device.member + ": " + verb + " on the wire before its intent was durable");
}

void rack_watch::on_answer(const std::string& address, const std::string& method, const std::string& path,
                           const std::string& body) {
  seen_device* const device = at(address);
  if (device == nullptr || method != "GET") return;
  static constexpr std::string_view power = "\"PowerState\"";
  for (std::size_t found = body.find(power); found != std::string::npos;
       found = body.find(power, found + 1)) {
    device->off_unread = false;
    const std::size_t value = body.find('"', found + power.size());
    if (value != std::string::npos && body.compare(value, 4, "\"On\"") == 0) device->read_on = true;
  }
  if (!has(path, "LeakDetectors")) return;
  device->detectors_read = now_;
  const bool whole = has(path, "expand");
  for (const std::string& name : node::needed_detectors(spec_.sku(), kind_of(device->kind))) {
    if (whole || has(path, name)) device->last_read[name] = truth_of(device->member, name, now_);
  }
}

void rack_watch::on_record(const sim::journal_record& record) {
  sample(record.received);
  seen_device* const device = at(record.address);
  if (device == nullptr || record.method == "GET") return;
  if (record.act == "login") {
    const std::uint64_t refused = record.status == 401 ? ++counts_[record.device]["login_refused"]
                                                       : (counts_[record.device]["login_refused"] = 0);
    if (refused >= lowest_lockout)
      report(record.device + ": " + std::to_string(refused) + " wrong logins, and it may lock");
  }
  if (!ok(record)) return;
  one_commander(record);
  nothing_dangerous_twice(record);
  if (record.act != "reset") return;
  if (record.argument == "On" || record.argument == "ForceRestart" || record.argument == "PowerCycle") {
    if (record.argument == "On" && device->off_unread)
      report(record.device + ": On after ForceOff without reading its power between");
    no_power_on_unproven(*device, record);
  }
  const bool off = record.argument == "ForceOff" || record.argument == "GracefulShutdown";
  if (off) off_in_reverse_order(*device, record);
  // The interlock's is no command of ours, and may come while an On that was allowed is on its way.
  const auto rack = acknowledged_ == nullptr ? nullptr : acknowledged_()->rack(spec_.manifest().rack());
  const bool of_interlock = rack != nullptr && record.user == node::interlock_account(rack->uid());
  if (record.argument == "ForceOff" && !of_interlock) device->off_unread = true;
  device->read_on = false;
}

void rack_watch::one_commander(const sim::journal_record& record) {
  if (record.act == "login" || record.act == "logout" || record.user.empty()) return;
  if (fault_on(sim::fault_kind::foreign_owner, record.device))
    report(record.device + " belongs to another Busbar and was told " + record.act);
  if (record.user.rfind("busbar-", 0) != 0)
    return;  // the factory's or the break-glass account, before our own
  const auto rack = acknowledged_ == nullptr ? nullptr : acknowledged_()->rack(spec_.manifest().rack());
  // The interlock takes energy away by itself, by an account of its own and by nothing else.
  const bool removes = record.act == "reset" && record.argument == "ForceOff";
  if (rack != nullptr && removes && record.user == node::interlock_account(rack->uid())) return;
  if (rack == nullptr || record.user != node::own_account(rack->uid()))
    report(record.device + " was commanded by " + record.user);
}

void rack_watch::nothing_dangerous_twice(const sim::journal_record& record) {
  const std::uint64_t all = ++counts_[record.device][record.act];
  const std::string one = record.act + " " + record.argument;
  const std::uint64_t same = ++counts_[record.device][one];
  const auto more_than = [this, &record](std::uint64_t seen, std::uint64_t limit, const std::string& what) {
    if (seen > limit) report(record.device + ": " + what + " was done " + std::to_string(seen) + " times");
  };
  if (record.act == "account_create") {
    more_than(same, 1, one);
    more_than(all, 2, record.act);
  }
  const auto limit_of = [this](const std::string& act) {
    return allowed_.contains(act) ? allowed_.at(act) : 1;
  };
  if (record.act == "password_change" || record.act == "manager_reset")
    more_than(all, limit_of(record.act), record.act);
  if (record.act == "update_push") more_than(same, limit_of(record.act), one);
  if (record.act == "reset" && (record.argument == "ForceRestart" || record.argument == "PowerCycle")) {
    more_than(same, limit_of(one), one);
  }
}

// ---- in what is acknowledged
// ------------------------------------------------------------------------------------------------------

void rack_watch::on_state(const std::shared_ptr<const core::snapshot>& state) {
  if (state == last_) return;
  const std::shared_ptr<const core::snapshot> before = last_;
  last_ = state;
  if (before == nullptr || before->nodes != state->nodes) {
    for (const auto& [name, entry] : *state->nodes) {
      const auto old = before == nullptr ? nullptr : before->node(name);
      if (old != entry.object) node_state(*entry.object, old.get());
    }
  }
  if (before == nullptr || before->racks != state->racks) {
    for (const auto& [name, entry] : *state->racks) {
      const auto old = before == nullptr ? nullptr : before->rack(name);
      if (old != entry.object) rack_state(*entry.object, old.get());
    }
  }
  if (before == nullptr || before->operations != state->operations) {
    for (const auto& [name, entry] : *state->operations) {
      const auto old = before == nullptr ? nullptr : before->operation(name);
      if (old != entry.object) operation_state(*entry.object, old.get());
    }
  }
}

void rack_watch::node_state(const journal::Node& node, const journal::Node* before) {
  waits_seen_.insert(node.waits_for());
  if (before == nullptr) return;
  if (before->leak_latched() && !node.leak_latched()) report(node.name() + ": a latched leak was forgotten");
  const auto* const device = at(node.identity().address().substr(0, node.identity().address().find(':')));
  const bool turned_on =
      node.power().observed() == journal::POWER_ON && before->power().observed() != journal::POWER_ON;
  if (turned_on && device != nullptr && !device->read_on)
    report(node.name() + ": taken for On without having been read On");
  if (node.step() == before->step()) return;
  const std::string kind = journal::MemberKind_Name(node.spec().kind()) + " ";
  if (node.step() < before->step())
    arrows_taken_.insert(kind + step_word(before->step()) + " -> " + step_word(node.step()));
  for (int from = before->step(); from < node.step(); ++from) {  // one commit may hold several arrows
    const auto step = static_cast<journal::NodeStep>(from + 1);
    arrows_taken_.insert(kind + step_word(static_cast<journal::NodeStep>(from)) + " -> " + step_word(step));
    step_is_true(node, step);
  }
  const bool went_off = node.step() < journal::STAGED && before->step() >= journal::STAGED;
  // A trip takes it out of what it was doing at once; its power is shown unknown until it is read.
  const bool not_said = node::is_tripped(node) && node.power().observed() == journal::POWER_UNKNOWN;
  if (went_off && !not_said && node.power().wanted() == journal::POWER_OFF &&
      node.spec().kind() != journal::POWER_SHELF && is_powered(node.name())) {
    report(node.name() + ": taken for off, and it is on");
  }
}

// A step that was entered is held against what really is.
void rack_watch::step_is_true(const journal::Node& node, journal::NodeStep step) {
  const auto lies = [this, &node, step](const std::string& why) {
    report(node.name() + " is " + step_word(step) + ", and " + why);
  };
  const std::string& name = node.name();
  const bool compute = node.spec().kind() == journal::COMPUTE_TRAY;
  if (step == journal::IDENTIFIED) {
    if (fault_on(sim::fault_kind::wrong_serial, name)) lies("it shows another serial than the manifest's");
    if (fault_on(sim::fault_kind::foreign_owner, name)) lies("it belongs to another Busbar");
    if (fault_on(sim::fault_kind::wrong_slot, name)) lies("it stands in another slot");
  }
  if (step == journal::STAGED && compute && !agents_.connected(name) && is_powered(name)) {
    if (fault_on(sim::fault_kind::agent_silent, name)) lies("no agent of this boot reported");
  }
  if (step == journal::STAGED && fault_on(sim::fault_kind::wrong_agent_serial, name))
    lies("its agent shows another serial");
  if (step == journal::INSPECTED && fault_on(sim::fault_kind::missing_gpu, name)) lies("a GPU is missing");
  if (step == journal::INSPECTED && fault_on(sim::fault_kind::half_page, name))
    lies("its inventory cannot be read");
  if (step == journal::FIRMWARE_CURRENT || step == journal::CONFIGURED) {
    const auto text = site_.truth(name, now_);
    const sim::json truth = text.ok() ? sim::json::parse(*text, nullptr, false) : sim::json();
    const auto rows = spec_.baseline().firmware().find(compute ? "compute_tray" : "switch_tray");
    const bool has_host = compute || node.spec().kind() == journal::SWITCH_TRAY;
    if (has_host && rows != spec_.baseline().firmware().end()) {
      for (const journal::FirmwareRow& row : rows->second.rows()) {
        const std::string runs = truth.value("firmware", sim::json::object()).value(row.component(), "");
        if (runs != row.version()) lies(row.component() + " runs " + runs);
      }
    }
    if (compute && step == journal::CONFIGURED) {
      for (const auto& [attribute, value] : spec_.baseline().bios().at("compute_tray").values()) {
        const sim::json seen = truth.at("bios").value(attribute, sim::json());
        if ((seen.is_string() ? seen.get<std::string>() : seen.dump()) != value)
          lies("BIOS " + attribute + " is " + seen.dump());
      }
    }
  }
  if (step == journal::READY && compute) {
    const auto rack = last_->rack(spec_.manifest().rack());
    const auto& ran = rack->suite().members();
    if (std::find(ran.begin(), ran.end(), name) == ran.end()) lies("it was not in the rack's run");
  }
  if (step == journal::VALIDATED && compute) suite_is_complete(node.suite(), 1, "node");
}

void rack_watch::suite_is_complete(const journal::SuiteResult& suite, std::size_t members,
                                   std::string_view level) {
  std::size_t metrics = 0;
  for (const journal::SuiteTest& test : spec_.suites().at(std::string(level)).tests())
    metrics += static_cast<std::size_t>(test.metrics_size());
  const std::size_t wanted = metrics * members * spec_.sku().compute_tray().gpus().count();
  const std::size_t given = agents_.rows_of(suite.run_id());
  if (suite.verdict() != journal::SuiteResult::PASS) report(suite.run_id() + " opened a gate without a PASS");
  if (given != wanted)
    report(suite.run_id() + " passed with " + std::to_string(given) + " of " + std::to_string(wanted) +
           " sound results");
  if (suite.evidence().empty()) report(suite.run_id() + " passed without evidence");
}

void rack_watch::rack_state(const journal::Rack& rack, const journal::Rack* before) {
  waits_seen_.insert(rack.waits_for());
  if (before == nullptr) return;
  const bool entered = rack.step() > before->step();
  if (rack.step() < before->step()) {
    arrows_taken_.insert("RACK " + journal::RackStep_Name(before->step()) + " -> " +
                         journal::RackStep_Name(rack.step()));
  }
  for (int from = before->step(); from < rack.step(); ++from) {
    arrows_taken_.insert("RACK " + journal::RackStep_Name(static_cast<journal::RackStep>(from)) + " -> " +
                         journal::RackStep_Name(static_cast<journal::RackStep>(from + 1)));
  }
  if (entered && rack.step() >= journal::NVLINK_READY && before->step() < journal::NVLINK_READY) {
    for (const auto& [name, entry] : *last_->nodes) {
      if (fault_on(sim::fault_kind::link_down, name) && !entry.object->has_failure())
        report("nvlink_ready while a link of " + name + " is down");
    }
  }
  if (entered && rack.step() >= journal::RACK_VALIDATED) {
    if (!rack.gates().contains("rack") || rack.gates().at("rack") != "passed")
      report("the gate rack is not passed, and the rack is " + journal::RackStep_Name(rack.step()));
    suite_is_complete(rack.suite(), static_cast<std::size_t>(rack.suite().members_size()), "rack");
    if (static_cast<std::uint32_t>(rack.suite().members_size()) < spec_.sku().rack().compute_min())
      report("a rack passed with too few trays");
  }
  if (rack.state() != "production") return;
  if (rack.step() != journal::RACK_PRODUCTION)
    report("called production at " + journal::RackStep_Name(rack.step()));
  if (static_cast<std::uint32_t>(rack.suite().members_size()) != spec_.sku().rack().compute())
    report("called production with fewer trays than the SKU has");
}

void rack_watch::operation_state(const journal::Operation& operation, const journal::Operation* before) {
  if (before != nullptr && before->state() != "RUNNING" && before->state() != operation.state()) {
    report(operation.id() + " ended as " + before->state() + " and became " + operation.state());
  }
  if (operation.state() != "SUCCEEDED") return;
  for (const journal::ComponentResult& row : operation.components()) {
    if (row.state() != "SUCCEEDED")
      report(operation.id() + " SUCCEEDED with the row of " + row.target() + " " + row.state());
  }
}

// ---- stored against acknowledged
// ---------------------------------------------------------------------------------------------------

namespace {

template <class Map>
std::optional<std::string> compare(const Map& left, const Map& right) {
  if (left.size() != right.size())
    return std::to_string(left.size()) + " objects against " + std::to_string(right.size());
  for (const auto& [name, entry] : left) {
    const auto other = right.find(name);
    if (other == right.end()) return name + " is missing";
    if (!google::protobuf::util::MessageDifferencer::Equals(*entry.object, *other->second.object))
      return name + " differs";
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> difference_of(const core::snapshot& left, const core::snapshot& right) {
  if (left.position.revision() != right.position.revision()) {
    return "revision " + std::to_string(left.position.revision()) + " against " +
           std::to_string(right.position.revision());
  }
  if (auto what = compare(*left.nodes, *right.nodes)) return what;
  if (auto what = compare(*left.racks, *right.racks)) return what;
  if (auto what = compare(*left.endpoints, *right.endpoints)) return what;
  if (auto what = compare(*left.valves, *right.valves)) return what;
  if (auto what = compare(*left.pdus, *right.pdus)) return what;
  if (auto what = compare(*left.cdus, *right.cdus)) return what;
  return compare(*left.operations, *right.operations);
}

}  // namespace busbar::test_support
