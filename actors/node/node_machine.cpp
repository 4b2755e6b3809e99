#include "actors/node/node_machine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace busbar::node {
namespace {

constexpr core::duration first_backoff = std::chrono::milliseconds(250);
constexpr core::duration longest_backoff = std::chrono::seconds(5);

std::string intent_id(const journal::Node& node, std::string_view verb, std::string_view argument) {
  return argument.empty() ? fmt::format("{}/{}", node.name(), verb)
                          : fmt::format("{}/{}/{}", node.name(), verb, argument);
}

}  // namespace

std::string_view name_of(call_op op) {
  static constexpr std::array names = {"bind",
                                       "probe",
                                       "login_factory",
                                       "login_own",
                                       "login_breakglass",
                                       "delete_session",
                                       "identify",
                                       "list_accounts",
                                       "create_own_account",
                                       "create_interlock_account",
                                       "set_factory_password",
                                       "restore_factory_password",
                                       "delete_interlock_account",
                                       "delete_own_account",
                                       "read_power",
                                       "reset",
                                       "set_boot_once",
                                       "read_boot_once",
                                       "read_detectors",
                                       "read_inventory",
                                       "read_firmware",
                                       "check_image",
                                       "push_firmware",
                                       "find_update",
                                       "find_unnamed_update",
                                       "read_task",
                                       "reset_manager",
                                       "read_bios",
                                       "write_bios",
                                       "read_device",
                                       "write_device",
                                       "read_nvlink"};
  return names[static_cast<std::size_t>(op)];
}

std::string_view machine::kind_key() const {
  const journal::MemberKind kind = node().spec().kind();
  if (kind == journal::COMPUTE_TRAY) return "compute_tray";
  if (kind == journal::SWITCH_TRAY) return "switch_tray";
  if (kind == journal::POWER_SHELF) return "power_shelf";
  if (kind == journal::RACK_CONTROLLER) return "rack_controller";
  return "unspecified";
}

outcome machine::ask(call_op op) {
  call wanted;
  wanted.op = op;
  return ask(std::move(wanted));
}

outcome machine::ask(call wanted) {
  wanted.id = run().next_call++;
  run().call_user = run().own_session ? own_account(rack_uid()) : std::string();
  run().open_call = wanted.id;
  out_.effects.emplace_back(std::move(wanted));
  return outcome::wait();
}

void machine::open_intent(std::string_view verb, std::string_view argument) {
  if (intent_is_open(verb, argument)) return;
  journal::Intent intent;
  intent.set_id(intent_id(node(), verb, argument));
  intent.set_object(node().name());
  intent.set_verb(std::string(verb));
  if (!argument.empty()) (*intent.mutable_arguments())["of"] = std::string(argument);
  intent.set_operation_id(node().operation_id());
  *change().add_intents() = intent;
  out_.intents_opened.push_back(intent);
  tell("intent_opened", fmt::format("about to {}{}{}", verb, argument.empty() ? "" : " ", argument));
}

void machine::close_intent(std::string_view verb, std::string_view argument) {
  const std::string id = intent_id(node(), verb, argument);
  auto& intents = *change().mutable_intents();
  for (int i = intents.size() - 1; i >= 0; --i) {
    if (intents[i].id() != id) continue;
    intents.DeleteSubrange(i, 1);
    out_.intents_closed.push_back(id);
  }
}

bool machine::intent_is_open(std::string_view verb, std::string_view argument) const {
  const std::string id = intent_id(node(), verb, argument);
  const auto& intents = node().intents();
  return std::any_of(intents.begin(), intents.end(),
                     [&id](const journal::Intent& intent) { return intent.id() == id; });
}

journal::Event& machine::tell(std::string_view type, std::string message, std::string_view severity) {
  out_.durable = true;
  journal::Event& event = out_.events.emplace_back();
  event.set_object(node().name());
  event.set_kind(is_shelf() ? "shelf" : is_controller() ? "controller" : "node");
  event.set_type(std::string(type));
  event.set_severity(std::string(severity));
  event.set_message(std::move(message));
  event.set_operation_id(node().operation_id());
  return event;
}

const call_done* machine::result_of(const node_event& event) const {
  const auto* done = std::get_if<call_done>(&event);
  if (done == nullptr || state_.run.open_call == 0 || done->id != state_.run.open_call) return nullptr;
  return done;
}

bool is_transient(const absl::Status& status) {
  const auto fault = core::fault_of(status);
  if (fault.has_value()) {
    return *fault == core::fault::BMC_UNREACHABLE || *fault == core::fault::BMC_SLOW ||
           *fault == core::fault::SESSION_LIMIT || *fault == core::fault::BMC_BAD_DATA ||
           *fault == core::fault::STORE_READ_ONLY;
  }
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) || absl::IsAborted(status) ||
         absl::IsResourceExhausted(status) || absl::IsInternal(status) || absl::IsDataLoss(status);
}

outcome machine::on_error(const absl::Status& status) {
  run().last_error = status;
  if (is_transient(status)) {
    const auto doublings = std::min(run().attempts, 5U);
    return outcome::again(std::min(longest_backoff, first_backoff * (1U << doublings)));
  }
  return outcome::fail(core::fault_of(status).value_or(core::fault::BMC_BAD_DATA),
                       std::string(status.message()), core::expected_of(status), core::seen_of(status));
}

std::int64_t machine::deadline_of(std::string_view key, std::int64_t default_s) const {
  constexpr std::int64_t ns_per_s = 1'000'000'000;
  const auto& deadlines = state_.spec->baseline().deadlines();
  const auto found = deadlines.find(std::string(key));
  if (found == deadlines.end()) return default_s * ns_per_s;
  return found->second.seconds() * ns_per_s + found->second.nanos();
}

}  // namespace busbar::node
