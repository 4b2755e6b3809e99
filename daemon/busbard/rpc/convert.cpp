#include "daemon/busbard/rpc/convert.hpp"

#include <fmt/format.h>
#include <google/protobuf/util/time_util.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "actors/core/errors.hpp"
#include "daemon/busbard/rpc/names.hpp"

namespace busbar::rpc {
namespace {

using google::protobuf::util::TimeUtil;

// Enumerations that exist in both packages have the same numbers (a test holds them together); a number that this release does
// not know is unknown.
template <class To, class From>
To same_number(From value, bool (*valid)(int)) {
  const int number = static_cast<int>(value);
  return valid(number) ? static_cast<To>(number) : static_cast<To>(0);
}

// Zero in these counts means that the device did not say.
template <class Message>
void put_count(Message* to, void (Message::*set)(std::uint32_t), std::uint32_t count) {
  if (count != 0) (to->*set)(count);
}

template <class Message>
void put_time(Message* to, google::protobuf::Timestamp* (Message::*field)(), std::int64_t wall_ns) {
  if (wall_ns > 0) *(to->*field)() = TimeUtil::NanosecondsToTimestamp(wall_ns);
}

std::string next_step_of(const std::string& fault) {
  const std::optional<core::fault> code = core::fault_named(fault);
  return code.has_value() ? std::string(core::text_of(*code).next_step) : std::string();
}

void fill(v1::Failure* to, const journal::Failure& from) {
  if (from.step() != journal::NODE_STEP_UNSPECIFIED) to->set_step(journal::NodeStep_Name(from.step()));
  to->set_fault(from.fault());
  to->set_message(from.message());
  to->set_expected(from.expected());
  to->set_seen(from.seen());
  to->set_next_step(next_step_of(from.fault()));
  put_time(to, &v1::Failure::mutable_time, from.wall_time_ns());
}

void fill(v1::Condition* to, const journal::Condition& from) {
  to->set_type(from.type());
  to->set_health(same_number<v1::Health>(from.health(), &v1::Health_IsValid));
  to->set_message(from.message());
  put_time(to, &v1::Condition::mutable_since, from.since_wall_ns());
}

void fill(v1::MemberSpec* to, const journal::Member& from) {
  to->set_slot(from.slot());
  to->set_kind(same_number<v1::MemberKind>(from.kind(), &v1::MemberKind_IsValid));
  to->set_bmc_mac(from.bmc_mac());
  to->set_serial(from.serial());
  to->set_address(from.address());
}

void fill(v1::Identity* to, const journal::Identity& from) {
  if (!from.bmc_mac().empty()) to->set_bmc_mac(from.bmc_mac());
  if (!from.address().empty()) to->set_address(from.address());
  if (!from.pin_sha256().empty()) to->set_pin_sha256(from.pin_sha256());
  if (!from.serial().empty()) to->set_serial(from.serial());
  if (!from.slot().empty()) to->set_slot(from.slot());
  if (!from.model().empty()) to->set_model(from.model());
  to->set_source(from.source());
}

void fill(v1::Access* to, const journal::Access& from) {
  to->set_account(from.account());
  to->set_account_created(from.account_created());
  to->set_factory_password_changed(from.factory_password_changed());
  to->set_interlock_account_created(from.interlock_account_created());
  to->set_interlock_armed(from.interlock_armed());
  to->set_login_failures(from.login_failures());
}

void fill(v1::Power* to, const journal::NodePower& from) {
  to->set_observed(same_number<v1::Power::State>(from.observed(), &v1::Power::State_IsValid));
  to->set_wanted(same_number<v1::Power::State>(from.wanted(), &v1::Power::State_IsValid));
  put_time(to, &v1::Power::mutable_observed_time, from.observed_wall_ns());
}

void fill(v1::Part* to, const journal::Part& from) {
  to->set_kind(from.kind());
  to->set_id(from.id());
  if (!from.model().empty()) to->set_model(from.model());
  if (!from.serial().empty()) to->set_serial(from.serial());
  to->set_health(same_number<v1::Health>(from.health(), &v1::Health_IsValid));
  put_count(to, &v1::Part::set_memory_gib, from.memory_gib());
  put_count(to, &v1::Part::set_cores, from.cores());
  put_count(to, &v1::Part::set_gbps, from.gbps());
  put_count(to, &v1::Part::set_pcie_generation, from.pcie_generation());
  put_count(to, &v1::Part::set_pcie_width, from.pcie_width());
  put_count(to, &v1::Part::set_links_up, from.links_up());
}

void fill(v1::MetricFailure* to, const journal::MetricResult& from) {
  to->set_member(from.member());
  to->set_test(from.test());
  to->set_metric(from.metric());
  to->set_gpu(from.gpu());
  if (from.has_value()) to->set_value(from.value());
  to->set_text(from.text());
  to->set_unit(from.unit());
  to->set_limit(from.limit());
}

void fill(v1::Suite* to, const journal::SuiteResult& from) {
  to->set_suite(from.suite());
  to->set_run_id(from.run_id());
  to->set_verdict(same_number<v1::Suite::Verdict>(from.verdict(), &v1::Suite::Verdict_IsValid));
  to->set_evidence(from.evidence());
  to->set_results(from.results());
  to->set_expected(from.expected());
  *to->mutable_members() = from.members();
  for (const auto& failure : from.failures()) fill(to->add_failures(), failure);
}

void fill_lists(v1::MemberStatus* to, const journal::Node& from) {
  for (const auto& detector : from.detectors()) {
    auto* added = to->add_detectors();
    added->set_name(detector.name());
    added->set_verdict(same_number<v1::Detector::Verdict>(detector.verdict(), &v1::Detector::Verdict_IsValid));
    added->set_detail(detector.detail());
  }
  for (const auto& row : from.firmware()) {
    auto* added = to->add_firmware();
    added->set_component(row.component());
    added->set_wanted(row.wanted());
    if (!row.seen().empty()) added->set_seen(row.seen());
    added->set_state(same_number<v1::FirmwareComponent::State>(row.state(), &v1::FirmwareComponent::State_IsValid));
  }
  for (const auto& drift : from.drift()) {
    auto* added = to->add_drift();
    added->set_attribute(drift.attribute());
    added->set_expected(drift.expected());
    if (!drift.seen().empty()) added->set_seen(drift.seen());
  }
  for (const auto& part : from.parts()) fill(to->add_parts(), part);
}

void fill(v1::MemberStatus* to, const journal::Node& from) {
  to->set_step(same_number<v1::NodeStep::Value>(from.step(), &v1::NodeStep::Value_IsValid));
  to->set_goal(same_number<v1::NodeStep::Value>(from.goal(), &v1::NodeStep::Value_IsValid));
  to->set_waits_for(from.waits_for());
  put_time(to, &v1::MemberStatus::mutable_step_entered_time, from.step_entered_wall_ns());
  to->set_health(same_number<v1::Health>(from.health(), &v1::Health_IsValid));
  if (from.has_failure()) fill(to->mutable_failure(), from.failure());
  to->set_emergency_off(from.leak_latched());
  to->set_retired(from.retired());
  if (from.has_identity()) fill(to->mutable_identity(), from.identity());
  if (from.has_access()) fill(to->mutable_access(), from.access());
  if (from.has_power()) fill(to->mutable_power(), from.power());
  if (from.has_boot()) {
    to->set_agent_connected(from.boot().agent_connected());
    if (!from.boot().boot_id().empty()) to->set_boot_id(from.boot().boot_id());
  }
  fill_lists(to, from);
  if (from.has_suite()) fill(to->mutable_suite(), from.suite());
  *to->mutable_facts() = from.facts();
}

std::string rack_part(std::string_view name) { return std::string(name.substr(0, name.find('/'))); }

// Node and Shelf have the same fields; the shelf leaves empty what it does not have.
template <class Resource>
Resource member_to_v1(const journal::Node& node, std::uint64_t revision) {
  Resource out;
  const std::string rack = rack_part(node.name());
  out.set_name(public_name(node.name(), rack));
  out.set_uid(node.uid());
  out.set_etag(etag_of(revision));
  out.set_generation(node.generation());
  out.set_revision(revision);
  if (node.has_spec()) fill(out.mutable_spec(), node.spec());
  fill(out.mutable_status(), node);
  if (!node.operation_id().empty()) out.mutable_status()->set_operation(public_name(node.operation_id(), rack));
  for (const auto& condition : node.conditions()) fill(out.add_conditions(), condition);
  return out;
}

v1::Gate::State gate_state(const std::string& text) {
  if (text == "passed") return v1::Gate::PASSED;
  if (text == "failed") return v1::Gate::FAILED;
  if (text == "NOT_REQUIRED") return v1::Gate::NOT_REQUIRED;
  return v1::Gate::PENDING;
}

void count_members(v1::RackStatus* to, std::span<const journal::Node* const> members) {
  std::map<journal::MemberKind, v1::MemberCount> counts;
  std::uint32_t gpus = 0;
  bool inspected = false;
  for (const journal::Node* member : members) {
    v1::MemberCount& count = counts[member->spec().kind()];
    count.set_declared(count.declared() + 1);
    if (member->has_failure()) count.set_failed(count.failed() + 1);
    if (member->step() == journal::PRODUCTION) count.set_production(count.production() + 1);
    for (const auto& part : member->parts()) {
      if (part.kind() != "gpu") continue;
      inspected = true;
      if (member->step() == journal::PRODUCTION) ++gpus;
    }
  }
  for (auto& [kind, count] : counts) {
    count.set_kind(same_number<v1::MemberKind>(kind, &v1::MemberKind_IsValid));
    *to->add_members() = count;
  }
  if (inspected) to->set_gpus(gpus);
}

// Good only when the rack is where it should be and no member is known otherwise; bad when something stopped.
v1::Health rack_health(const journal::Rack& rack, std::span<const journal::Node* const> members) {
  bool all_good = !members.empty() && rack.step() == journal::RACK_PRODUCTION;
  bool bad = rack.has_failure();
  for (const auto& condition : rack.conditions()) bad = bad || condition.health() == journal::HEALTH_BAD;
  for (const journal::Node* member : members) {
    bad = bad || member->has_failure() || member->health() == journal::HEALTH_BAD;
    all_good = all_good && member->health() == journal::HEALTH_GOOD;
  }
  if (bad) return v1::HEALTH_BAD;
  return all_good ? v1::HEALTH_GOOD : v1::HEALTH_UNKNOWN;
}

void fill(v1::RackStatus* to, const journal::Rack& from, std::span<const journal::Node* const> members) {
  to->set_step(same_number<v1::RackStep::Value>(from.step(), &v1::RackStep::Value_IsValid));
  to->set_goal(same_number<v1::RackStep::Value>(from.goal(), &v1::RackStep::Value_IsValid));
  to->set_state(from.state());
  to->set_ceiling(from.ceiling());
  to->set_waits_for(from.waits_for());
  put_time(to, &v1::RackStatus::mutable_step_entered_time, from.step_entered_wall_ns());
  to->set_health(rack_health(from, members));
  if (from.has_failure()) fill(to->mutable_failure(), from.failure());
  if (!from.operation_id().empty()) to->set_operation(public_name(from.operation_id(), from.name()));
  to->set_shutting_down(from.shutting_down());
  for (const char* name : {"node", "rack", "fabric"}) {
    const auto gate = from.gates().find(name);
    if (gate == from.gates().end()) continue;
    auto* added = to->add_gates();
    added->set_name(name);
    added->set_state(gate_state(gate->second));
  }
  count_members(to, members);
  if (from.has_suite()) fill(to->mutable_suite(), from.suite());
  const auto armed = from.facts().find("interlock_armed");
  if (armed != from.facts().end()) to->set_interlock_armed(armed->second == "true");
  *to->mutable_facts() = from.facts();
}

v1::ComponentResult::State component_state(const std::string& text) {
  v1::ComponentResult::State state = v1::ComponentResult::PENDING;
  v1::ComponentResult::State_Parse(text, &state);
  return state;
}

v1::Endpoint::State endpoint_state(const std::string& text) {
  if (text == "matched") return v1::Endpoint::MATCHED;
  if (text == "wrong_rack") return v1::Endpoint::WRONG_RACK;
  if (text == "duplicate") return v1::Endpoint::DUPLICATE;
  if (text == "owned_elsewhere") return v1::Endpoint::OWNED_ELSEWHERE;
  if (text == "unreachable") return v1::Endpoint::UNREACHABLE;
  return v1::Endpoint::UNMATCHED;
}

}  // namespace

bool is_shelf(const journal::Node& node) { return node.spec().kind() == journal::POWER_SHELF; }
bool is_controller(const journal::Node& node) { return node.spec().kind() == journal::RACK_CONTROLLER; }
bool is_node(const journal::Node& node) { return !is_shelf(node) && !is_controller(node); }

namespace {

v1::LeakDetector detector_to_v1(const std::string& rack, const std::string& device, const journal::Detector& from,
                                std::uint64_t revision) {
  v1::LeakDetector out;
  out.set_name(fmt::format("racks/{}/detectors/{}.{}", rack, device.substr(device.find('/') + 1), from.name()));
  out.set_member(device);
  out.set_verdict(same_number<v1::Detector::Verdict>(from.verdict(), &v1::Detector::Verdict_IsValid));
  out.set_detail(from.detail());
  out.set_reaction(from.reaction());
  out.set_revision(revision);
  return out;
}

void put_bypass(v1::LeakDetector* to, const journal::Rack& rack, const std::string& device, const std::string& detector) {
  for (const journal::Bypass& row : rack.bypasses()) {
    if (row.device() != device || row.detector() != detector) continue;
    to->set_bypass(fmt::format("{}: {}", row.owner(), row.reason()));
    put_time(to, &v1::LeakDetector::mutable_bypass_until, row.until_wall_ns());
  }
}

}  // namespace

std::vector<v1::LeakDetector> detectors_to_v1(const journal::Node& node, const journal::Rack* rack, std::uint64_t revision) {
  std::vector<v1::LeakDetector> found;
  const auto& rows = node.detectors();
  const bool known_which =
      std::any_of(rows.begin(), rows.end(), [](const auto& row) { return row.verdict() == journal::Detector::LEAK; });
  for (const journal::Detector& row : rows) {
    v1::LeakDetector& added = found.emplace_back(detector_to_v1(rack_part(node.name()), node.name(), row, revision));
    // The latch is the tray's; where it is not known which of them saw it, all are shown so.
    added.set_latched(node.leak_latched() && (!known_which || row.verdict() == journal::Detector::LEAK));
    if (rack != nullptr) put_bypass(&added, *rack, node.name(), row.name());
  }
  return found;
}

std::vector<v1::LeakDetector> detectors_to_v1(const journal::Rack& rack, std::uint64_t revision) {
  std::vector<v1::LeakDetector> found;
  const std::string& cdu = rack.spec().manifest().cooling().cdu();
  const auto latched = rack.facts().find("latched:" + cdu);
  for (const journal::Detector& row : rack.detectors()) {
    v1::LeakDetector& added = found.emplace_back(detector_to_v1(rack.name(), cdu, row, revision));
    const std::string full = rack.name() + "_" + row.name();  // as the CDU and the interlock call it
    added.set_latched(latched != rack.facts().end() && (latched->second == full || latched->second == row.name()));
    put_bypass(&added, rack, cdu, full);
    put_bypass(&added, rack, cdu, row.name());
  }
  return found;
}

std::string etag_of(std::uint64_t revision) { return std::to_string(revision); }

v1::Node node_to_v1(const journal::Node& node, std::uint64_t revision) { return member_to_v1<v1::Node>(node, revision); }

v1::Shelf shelf_to_v1(const journal::Node& node, std::uint64_t revision) { return member_to_v1<v1::Shelf>(node, revision); }

v1::Rack rack_to_v1(const journal::Rack& rack, std::span<const journal::Node* const> members, std::uint64_t revision) {
  v1::Rack out;
  out.set_name(public_name(rack.name(), rack.name()));
  out.set_uid(rack.uid());
  out.set_etag(rack.spec().digest());
  out.set_generation(rack.generation());
  out.set_revision(revision);
  if (rack.has_spec()) {
    v1::RackDeclaration& spec = *out.mutable_spec();
    const journal::Manifest& manifest = rack.spec().manifest();
    spec.set_site(manifest.site());
    spec.set_sku(manifest.sku());
    spec.set_baseline(manifest.baseline());
    *spec.mutable_gates() = manifest.gates();
    spec.set_digest(rack.spec().digest());
    spec.set_members(static_cast<std::uint32_t>(manifest.members_size()));
  }
  fill(out.mutable_status(), rack, members);
  for (const auto& condition : rack.conditions()) fill(out.add_conditions(), condition);
  return out;
}

v1::Endpoint endpoint_to_v1(const journal::Endpoint& endpoint, std::uint64_t revision) {
  v1::Endpoint out;
  out.set_name(public_name(endpoint.name(), rack_part(endpoint.name())));
  out.set_address(endpoint.address());
  if (!endpoint.mac().empty()) out.set_mac(endpoint.mac());
  out.set_source(endpoint.source());
  if (!endpoint.pin_sha256().empty()) out.set_pin_sha256(endpoint.pin_sha256());
  out.set_state(endpoint_state(endpoint.state()));
  out.set_expected(endpoint.expected());
  out.set_seen(endpoint.seen());
  out.set_member(endpoint.member());
  out.set_revision(revision);
  return out;
}

v1::Operation operation_to_v1(const journal::Operation& operation, std::string_view instance, std::uint64_t revision) {
  v1::Operation out;
  out.set_name(public_name(operation.id(), instance));
  out.set_verb(operation.verb());
  out.set_target(public_name(operation.target(), instance));
  v1::Operation::State state = v1::Operation::STATE_UNSPECIFIED;
  v1::Operation::State_Parse(operation.state(), &state);
  out.set_state(state);
  const bool ended = state == v1::Operation::SUCCEEDED || state == v1::Operation::FAILED || state == v1::Operation::CANCELLED;
  out.set_done(ended);
  if (ended && state != v1::Operation::SUCCEEDED) {
    v1::ErrorInfo& error = *out.mutable_error();
    error.set_fault(operation.fault());
    error.set_target(out.target());
    error.set_message(operation.message());
    error.set_next_step(next_step_of(operation.fault()));
  }
  out.set_message(operation.message());
  for (const auto& component : operation.components()) {
    auto* added = out.add_components();
    added->set_target(public_name(component.target(), instance));
    added->set_state(component_state(component.state()));
    added->set_step(component.step());
    added->set_fault(component.fault());
    added->set_message(component.message());
  }
  out.set_principal(operation.principal().name());
  out.set_reason(operation.reason());
  out.set_request_id(operation.request_id());
  put_time(&out, &v1::Operation::mutable_create_time, operation.created_wall_ns());
  put_time(&out, &v1::Operation::mutable_end_time, operation.ended_wall_ns());
  put_time(&out, &v1::Operation::mutable_deadline, operation.deadline_wall_ns());
  *out.mutable_arguments() = operation.arguments();
  out.set_revision(revision);
  return out;
}

v1::Event event_to_v1(const journal::Event& event, std::string_view instance) {
  v1::Event out;
  *out.mutable_position() = position_to_v1(event.position());
  out.set_index(event.index_in_batch());
  put_time(&out, &v1::Event::mutable_time, event.wall_time_ns());
  out.set_boot_id(event.boot_id());
  out.set_monotonic_ns(event.monotonic_ns());
  out.set_principal(event.principal().name());
  out.set_operation(public_name(event.operation_id(), instance));
  out.set_request_id(event.request_id());
  out.set_causing_revision(event.causing_revision());
  out.set_schema_version(event.schema_version());
  out.set_object(public_name(event.object(), instance));
  out.set_type(event.type());
  out.set_severity(event.severity());
  out.set_fault(event.fault());
  out.set_message(event.message());
  *out.mutable_details() = event.details();
  return out;
}

v1::Position position_to_v1(const journal::Position& position) {
  v1::Position out;
  out.set_journal_id(position.journal_id());
  out.set_revision(position.revision());
  return out;
}

}  // namespace busbar::rpc
