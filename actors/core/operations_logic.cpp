#include "actors/core/operations_logic.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "actors/core/errors.hpp"
#include "actors/core/operations_report.hpp"

namespace busbar::core {
namespace {

constexpr std::string_view id_prefix = "operations/";
constexpr std::size_t cancels_remembered = 64;
constexpr const char* running_state = "RUNNING";
constexpr const char* pending_state = "PENDING";
constexpr const char* succeeded_state = "SUCCEEDED";
constexpr const char* failed_state = "FAILED";
constexpr const char* cancelled_state = "CANCELLED";

std::uint64_t number_of(std::string_view id) {
  if (!id.starts_with(id_prefix)) return 0;
  id.remove_prefix(id_prefix.size());
  std::uint64_t number = 0;
  std::from_chars(id.data(), id.data() + id.size(), number);
  return number;
}

enum class target_kind { rack, new_rack, node, bmc, valve, pdu, cap, cdu, new_plant, operation, unknown_verb };

target_kind kind_of(std::string_view verb) {
  if (verb == "rack_bringup" || verb == "rack_shutdown") return target_kind::rack;
  if (verb == "manifest_apply") return target_kind::new_rack;
  if (verb == "node_retry" || verb == "node_trust") return target_kind::node;
  if (verb == "bmc_release" || verb == "bmc_unlock") return target_kind::bmc;
  if (verb == "valve_set" || verb == "valve_release") return target_kind::valve;
  if (verb == "outlet_switch") return target_kind::pdu;
  if (verb == "power_cap") return target_kind::cap;
  if (verb == "cdu_set" || verb == "cdu_release") return target_kind::cdu;
  if (verb == "plant_apply") return target_kind::new_plant;
  if (verb == "operation_cancel") return target_kind::operation;
  return target_kind::unknown_verb;
}

// A valve may be turned back in mid-stroke, outlets of a PDU are apart, a holder may ask its CDU anew: their owners say what is in
// the way.
bool owner_decides(std::string_view verb) { return verb == "valve_set" || verb == "outlet_switch" || verb == "power_cap" || verb == "cdu_set"; }

absl::Status unknown_target(std::string_view name) {
  return make_fault(fault::UNKNOWN_TARGET, fmt::format("{}: this daemon holds no such thing; nothing was done", name));
}

bool is_live_node(const snapshot& state, std::string_view name) {
  const auto node = state.node(name);
  return node != nullptr && !node->retired();
}

std::vector<std::string> declared_members(const command& what) {
  std::vector<std::string> members;
  const auto given = what.arguments.find("members");
  if (given == what.arguments.end()) return members;
  std::string_view rest = given->second;
  while (!rest.empty()) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    if (comma > 0) members.emplace_back(rest.substr(0, comma));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return members;
}

absl::Status check_target(const command& what, const snapshot& state) {
  switch (kind_of(what.verb)) {
    case target_kind::rack:
      if (state.rack(what.target) == nullptr) return unknown_target(what.target);
      for (const std::string& member : declared_members(what)) {
        if (!member.starts_with(what.target + "/") || !is_live_node(state, member)) return unknown_target(member);
      }
      return absl::OkStatus();
    case target_kind::new_rack:
      if (what.spec == nullptr) return absl::InvalidArgumentError("manifest_apply without a spec");
      return absl::OkStatus();
    case target_kind::node:
      return is_live_node(state, what.target) ? absl::OkStatus() : unknown_target(what.target);
    case target_kind::bmc:
      if (is_live_node(state, what.target) || state.endpoint(what.target) != nullptr) return absl::OkStatus();
      return unknown_target(what.target);
    case target_kind::valve: return state.valve(what.target) != nullptr ? absl::OkStatus() : unknown_target(what.target);
    case target_kind::pdu: return state.pdu(what.target) != nullptr ? absl::OkStatus() : unknown_target(what.target);
    case target_kind::cdu: return state.cdu(what.target) != nullptr ? absl::OkStatus() : unknown_target(what.target);
    case target_kind::new_plant:
      return what.plant != nullptr ? absl::OkStatus() : absl::InvalidArgumentError("plant_apply without a plant");
    case target_kind::cap:
      return state.rack(what.target) != nullptr || is_live_node(state, what.target) ? absl::OkStatus() : unknown_target(what.target);
    case target_kind::operation: return absl::OkStatus();
    case target_kind::unknown_verb: break;
  }
  return absl::InvalidArgumentError(fmt::format("no verb {}", what.verb));
}

// A rack's run declares its switch trays and shelves, and the compute trays that the command names (none named: all).
std::vector<std::string> components_of(const command& what, const snapshot& state) {
  if (kind_of(what.verb) != target_kind::rack) return {what.target};
  const std::vector<std::string> named = declared_members(what);
  const std::set<std::string> chosen(named.begin(), named.end());
  const std::string prefix = what.target + "/";
  std::vector<std::string> members;
  for (auto node = state.nodes->lower_bound(prefix); node != state.nodes->end() && node->first.starts_with(prefix); ++node) {
    const journal::Node& each = *node->second.object;
    if (each.retired()) continue;
    const bool is_compute = each.spec().kind() == journal::COMPUTE_TRAY;
    if (is_compute && !chosen.empty() && !chosen.contains(node->first)) continue;
    members.push_back(node->first);
  }
  if (members.empty()) members.push_back(what.target);
  return members;
}

journal::Operation make_operation(const command& what, std::string id, const snapshot& state, const instant& now,
                                  std::chrono::seconds deadline) {
  journal::Operation made;
  made.set_id(std::move(id));
  made.set_verb(what.verb);
  made.set_target(what.target);
  made.set_state(running_state);
  made.set_reason(what.reason);
  *made.mutable_principal() = what.principal;
  made.set_created_wall_ns(now.wall_ns);
  made.set_deadline_wall_ns(now.wall_ns + std::chrono::nanoseconds(deadline).count());
  made.set_request_id(what.request_id);
  made.set_request_digest(what.request_digest);
  for (const auto& [key, value] : what.arguments) (*made.mutable_arguments())[key] = value;
  for (std::string& target : components_of(what, state)) {
    journal::ComponentResult& row = *made.add_components();
    row.set_target(std::move(target));
    row.set_state(pending_state);
  }
  return made;
}

journal::Event event_of(const journal::Operation& operation, std::string_view type, std::string_view severity) {
  journal::Event event;
  *event.mutable_principal() = operation.principal();
  event.set_operation_id(operation.id());
  event.set_request_id(operation.request_id());
  event.set_object(operation.target());
  event.set_kind("operation");
  event.set_type(std::string(type));
  event.set_severity(std::string(severity));
  event.set_fault(operation.fault());
  (*event.mutable_details())["verb"] = operation.verb();
  (*event.mutable_details())["state"] = operation.state();
  return event;
}

std::string count_text(const journal::Operation& operation) {
  const auto done = std::count_if(operation.components().begin(), operation.components().end(),
                                  [](const journal::ComponentResult& row) { return row.state() == succeeded_state; });
  return fmt::format("{} of {} succeeded", done, operation.components_size());
}

void append_end(journal_batch& batch, const journal::Operation& operation) {
  journal::Event event = event_of(operation, "operation_ended", operation.state() == failed_state ? "error" : "info");
  event.set_message(fmt::format("{} of {} ended {}: {}", operation.verb(), operation.target(), operation.state(),
                                operation.message().empty() ? count_text(operation) : operation.message()));
  batch.events.push_back(std::move(event));
}

// An id is the daemon's; the CLI puts the rack before it.
std::string short_name(std::string_view target, std::string_view id) {
  const std::string_view rack = target.substr(0, target.find('/'));
  return rack.empty() ? std::string(id) : fmt::format("{}/{}", rack, id);
}

bool is_end(std::string_view state) {
  return state == succeeded_state || state == failed_state || state == cancelled_state;
}

}  // namespace

bool has_ended(const journal::Operation& operation) { return is_end(operation.state()); }

std::string running_words(std::string_view target, std::string_view id) {
  const std::string name = short_name(target, id);
  return fmt::format("{}; wait for it, or stop it: busbar ops cancel {}", name, name);
}

journal_batch creation_batch(const journal::Operation& operation) {
  journal_batch batch;
  batch.put(std::make_shared<const journal::Operation>(operation));
  journal::Event event = event_of(operation, "operation_started", "info");
  event.set_message(fmt::format("{} of {} began", operation.verb(), operation.target()));
  batch.events.push_back(std::move(event));
  if (!operation.request_id().empty()) {
    batch.requests.push_back({operation.request_id(), operation.request_digest(), operation.id()});
  }
  return batch;
}

absl::Status answer_of(const journal::Operation& operation) {
  if (operation.state() != failed_state || operation.components_size() > 0) return absl::OkStatus();
  const std::optional<fault> code = fault_named(operation.fault());
  if (code.has_value()) return make_fault(*code, operation.message());
  return absl::UnavailableError(operation.message());
}

operations_logic::operations_logic(operations_config config, const snapshot& state, const instant& now)
    : config_(std::move(config)) {
  for (const auto& [id, held] : *state.operations) {
    next_id_ = std::max(next_id_, number_of(id) + 1);
    if (has_ended(*held.object)) continue;
    live one;
    one.operation = *held.object;
    one.begun = true;
    // Whatever the wall clock did meanwhile: at least nothing, at most the verb's whole time.
    const std::int64_t whole = std::chrono::nanoseconds(deadline_of(held.object->verb())).count();
    const std::int64_t left = std::clamp<std::int64_t>(held.object->deadline_wall_ns() - now.wall_ns, 0, whole);
    one.deadline_ns = now.monotonic_ns + left;
    live_.emplace(id, std::move(one));
  }
}

std::chrono::seconds operations_logic::deadline_of(std::string_view verb) const {
  const auto found = config_.deadlines.find(std::string(verb));
  return found == config_.deadlines.end() ? config_.deadline : found->second;
}

std::optional<operation_decision> operations_logic::repeated(const command& what, const snapshot& state,
                                                             const instant& now) const {
  if (what.request_id.empty()) return std::nullopt;
  const auto judge = [&what](const journal::Operation& known, bool begun) {
    operation_decision decision;
    decision.operation_id = known.id();
    if (known.request_digest() != what.request_digest) {
      decision.status = make_fault(fault::REQUEST_ID_REUSED,
                                   fmt::format("request id {} began {} with another body", known.request_id(), known.id()));
      return decision;
    }
    decision.status = answer_of(known);
    if (decision.status.ok()) decision.what = begun || has_ended(known) ? operation_decision::act::answer : operation_decision::act::join;
    return decision;
  };
  for (const auto& [id, one] : live_) {
    if (one.operation.request_id() == what.request_id) return judge(one.operation, one.begun);
  }
  const std::int64_t oldest = now.wall_ns - std::chrono::nanoseconds(config_.request_age).count();
  for (const auto& [id, held] : *state.operations) {
    if (held.object->request_id() != what.request_id || held.object->created_wall_ns() < oldest) continue;
    return judge(*held.object, true);
  }
  return std::nullopt;
}

operation_decision operations_logic::decide_cancel(const command& what, const snapshot& state) {
  operation_decision decision;
  decision.operation_id = what.target;
  const auto one = live_.find(what.target);
  if (one == live_.end() && state.operation(what.target) == nullptr) {
    decision.status = unknown_target(what.target);
    return decision;
  }
  // The request that stopped it, sent again, is answered as it was the first time.
  const bool repeated = !what.request_id.empty() &&
                        std::find(cancels_.begin(), cancels_.end(), std::pair(what.request_id, what.target)) != cancels_.end();
  if (repeated) {
    decision.what = operation_decision::act::answer;
    return decision;
  }
  const journal::Operation& known = one != live_.end() ? one->second.operation : *state.operation(what.target);
  if (has_ended(known)) {
    decision.status = make_fault(
        fault::OPERATION_ENDED,
        fmt::format("{} ({} of {}) ended {}{}{}: nothing is left to cancel", short_name(known.target(), known.id()),
                    known.verb(), known.target(), known.state(), known.message().empty() ? "" : ", ", known.message()));
    return decision;
  }
  decision.what = what.validate_only ? operation_decision::act::answer : operation_decision::act::cancel;
  if (what.validate_only || what.request_id.empty()) return decision;
  cancels_.emplace_back(what.request_id, what.target);
  if (cancels_.size() > cancels_remembered) cancels_.pop_front();
  return decision;
}

operation_decision operations_logic::decide(const command& what, const snapshot& state, const instant& now) {
  operation_decision decision;
  decision.status = check_target(what, state);
  if (!decision.status.ok()) return decision;
  if (kind_of(what.verb) == target_kind::operation) return decide_cancel(what, state);
  if (what.validate_only) {
    decision.what = operation_decision::act::validate;
    return decision;
  }
  if (auto known = repeated(what, state, now); known.has_value()) return *std::move(known);
  for (const auto& [id, one] : live_) {
    if (owner_decides(what.verb) || one.operation.verb() != what.verb || one.operation.target() != what.target ||
        has_ended(one.operation))
      continue;
    decision.status = make_fault(fault::OPERATION_CONFLICT, fmt::format("{} of {} is running as {}", what.verb, what.target, running_words(what.target, id)));
    return decision;
  }
  live one;
  const std::chrono::seconds deadline = deadline_of(what.verb);
  one.operation = make_operation(what, fmt::format("{}{}", id_prefix, next_id_++), state, now, deadline);
  one.deadline_ns = after(now, deadline);
  one.writing = true;  // by the caller, as creation_batch()
  decision.what = operation_decision::act::create;
  decision.operation_id = one.operation.id();
  decision.created = std::make_shared<const journal::Operation>(one.operation);
  live_.emplace(decision.operation_id, std::move(one));
  return decision;
}

void operations_logic::forget(const std::string& id) { live_.erase(id); }

void operations_logic::accepted(const std::string& id) {
  if (const auto one = live_.find(id); one != live_.end()) one->second.begun = true;
}

bool operations_logic::refused(const std::string& id, const absl::Status& why, const instant& now) {
  const auto one = live_.find(id);
  if (one == live_.end() || has_ended(one->second.operation)) return false;
  const std::optional<fault> code = fault_of(why);
  one->second.operation.clear_components();
  end(one->second, failed_state, code.has_value() ? name_of(*code) : std::string_view(), std::string(why.message()), now);
  return true;
}

bool operations_logic::report(const component_update& update) {
  const auto one = live_.find(update.operation_id);
  if (one == live_.end() || has_ended(one->second.operation)) {
    ++ignored_reports_;
    return false;
  }
  for (journal::ComponentResult& row : *one->second.operation.mutable_components()) {
    if (row.target() != update.target) continue;
    const journal::ComponentResult before = row;
    row.set_state(update.state);
    if (!update.step.empty()) row.set_step(update.step);
    if (!update.message.empty()) row.set_message(update.message);
    const bool clears = update.state == succeeded_state || update.state == running_state;
    if (clears || !update.fault.empty()) row.set_fault(update.fault);
    const bool changed = before.SerializeAsString() != row.SerializeAsString();
    one->second.dirty = one->second.dirty || changed;
    return changed;
  }
  ++ignored_reports_;
  return false;
}

bool operations_logic::report(const operation_end& ended, const instant& now) {
  const auto one = live_.find(ended.operation_id);
  if (one == live_.end() || has_ended(one->second.operation) || !is_end(ended.state)) {
    ++ignored_reports_;
    return false;
  }
  end(one->second, ended.state, ended.fault, ended.message, now);
  return true;
}

void operations_logic::end(live& one, std::string_view state, std::string_view fault_name, std::string_view message,
                           const instant& now) {
  journal::Operation& operation = one.operation;
  bool whole = true;
  for (journal::ComponentResult& row : *operation.mutable_components()) {
    if (!is_end(row.state())) {
      row.set_state(state == cancelled_state ? cancelled_state : failed_state);
      if (row.message().empty()) row.set_message("no result when the operation ended");
      // Of several members the fault is one's; the others are short of a result, not guilty of it.
      const bool alone = operation.components_size() == 1;
      if (row.fault().empty() && state == failed_state && alone) row.set_fault(std::string(fault_name));
    }
    whole = whole && row.state() == succeeded_state;
  }
  const bool short_of_all = state == succeeded_state && !whole;
  operation.set_state(short_of_all ? failed_state : std::string(state));
  operation.set_fault(std::string(fault_name));
  operation.set_message(short_of_all || message.empty() ? count_text(operation) : std::string(message));
  if (short_of_all && operation.fault().empty()) {
    const auto first = std::find_if(operation.components().begin(), operation.components().end(),
                                    [](const journal::ComponentResult& row) { return !row.fault().empty(); });
    if (first != operation.components().end()) operation.set_fault(first->fault());
  }
  operation.set_ended_wall_ns(now.wall_ns);
  one.dirty = true;
}

std::vector<std::string> operations_logic::expire(const instant& now) {
  std::vector<std::string> expired;
  for (auto& [id, one] : live_) {
    if (has_ended(one.operation) || one.deadline_ns > now.monotonic_ns) continue;
    end(one, failed_state, name_of(fault::DEADLINE),
        fmt::format("not done in the {} s that {} has", deadline_of(one.operation.verb()).count(), one.operation.verb()), now);
    expired.push_back(id);
  }
  return expired;
}

void operations_logic::retire_old(journal_batch& batch, const snapshot& state, const instant& now) const {
  if (state.operations->size() <= config_.kept_count) return;
  const std::int64_t oldest = now.wall_ns - std::chrono::nanoseconds(config_.kept_age).count();
  std::size_t spare = state.operations->size() - config_.kept_count;
  std::vector<std::pair<std::uint64_t, const std::string*>> by_age;
  for (const auto& [id, held] : *state.operations) {
    if (has_ended(*held.object) && held.object->ended_wall_ns() < oldest) by_age.emplace_back(number_of(id), &id);
  }
  std::sort(by_age.begin(), by_age.end());
  for (const auto& [number, id] : by_age) {
    if (spare == 0) return;
    --spare;
    batch.erase(object_kind::operation, *id);
  }
}

std::optional<journal_batch> operations_logic::take_commit(const std::string& id, const snapshot& state, const instant& now) {
  const auto found = live_.find(id);
  if (found == live_.end() || !found->second.dirty || found->second.writing) return std::nullopt;
  live& one = found->second;
  one.dirty = false;
  one.writing = true;
  journal_batch batch;
  batch.put(std::make_shared<const journal::Operation>(one.operation));
  if (has_ended(one.operation)) {
    append_end(batch, one.operation);
    retire_old(batch, state, now);
  }
  return batch;
}

void operations_logic::committed(const std::string& id, bool ok) {
  const auto found = live_.find(id);
  if (found == live_.end()) return;
  live& one = found->second;
  one.writing = false;
  if (!ok) one.dirty = true;
  if (!one.dirty && has_ended(one.operation)) live_.erase(found);
}

std::vector<std::string> operations_logic::unwritten() const {
  std::vector<std::string> ids;
  for (const auto& [id, one] : live_) {
    if (one.dirty && !one.writing) ids.push_back(id);
  }
  return ids;
}

std::vector<std::shared_ptr<const journal::Operation>> operations_logic::running() const {
  std::vector<std::shared_ptr<const journal::Operation>> found;
  for (const auto& [id, one] : live_) {
    if (one.begun && !has_ended(one.operation)) found.push_back(std::make_shared<const journal::Operation>(one.operation));
  }
  return found;
}

std::shared_ptr<const journal::Operation> operations_logic::find(const std::string& id) const {
  const auto one = live_.find(id);
  return one == live_.end() ? nullptr : std::make_shared<const journal::Operation>(one->second.operation);
}

}  // namespace busbar::core
