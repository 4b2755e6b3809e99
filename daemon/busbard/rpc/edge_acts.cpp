#include <fmt/format.h>
#include <google/protobuf/util/time_util.h>
#include <openssl/rand.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <utility>

#include "actors/core/digest.hpp"
#include "actors/core/errors.hpp"
#include "actors/manifest/spec_diff.hpp"
#include "actors/manifest/spec_reader.hpp"
#include "actors/plant/plant_record.hpp"
#include "daemon/busbard/rpc/edge_service.hpp"

namespace busbar::rpc {
namespace {

std::string fresh_request_id() {
  std::array<unsigned char, 16> random{};
  if (RAND_bytes(random.data(), static_cast<int>(random.size())) != 1) return {};
  return core::to_hex({reinterpret_cast<const char*>(random.data()), random.size()});
}

template <class Request>
std::string body_of(std::string_view verb, Request request) {
  request.clear_request_id();
  return fmt::format("{}\n{}", verb, request.SerializeAsString());
}

template <class Request>
std::string body_of_act(std::string_view verb, Request request) {
  request.mutable_act()->clear_request_id();
  return fmt::format("{}\n{}", verb, request.SerializeAsString());
}

journal::Principal principal_of(const caller& who) {
  journal::Principal principal;
  principal.set_name(who.name);
  principal.set_role(std::string(name_of(who.rights)));
  return principal;
}

// What is stored of a plant; empty where nothing is.
journal::PlantSpec stored_plant(const core::snapshot& state) {
  journal::PlantSpec stored;
  if (const auto bytes = state.record(plant::spec_record)) stored.ParseFromString(*bytes);
  return stored;
}

// Of what the caller saw when deciding: the spec's digest of a rack, the revision of a tray.
absl::Status check_etag(const core::snapshot& state, const std::string& target, const std::string& etag) {
  if (etag.empty()) return absl::OkStatus();
  std::string now;
  if (const auto rack = state.rack(target); rack != nullptr) now = rack->spec().digest();
  if (const auto plant = stored_plant(state); plant.plant() == target) now = plant.digest();
  if (const auto node = state.nodes->find(target); node != state.nodes->end()) now = etag_of(node->second.revision);
  if (const auto valve = state.valves->find(target); valve != state.valves->end()) now = etag_of(valve->second.revision);
  if (const auto pdu = state.pdus->find(target); pdu != state.pdus->end()) now = etag_of(pdu->second.revision);
  if (const auto cdu = state.cdus->find(target); cdu != state.cdus->end()) now = etag_of(cdu->second.revision);
  if (now == etag) return absl::OkStatus();
  return absl::AbortedError(fmt::format("{} is not as it was (etag {}, now {}); read it again", target, etag, now));
}

// Answers an act with its operation as the state has it by now.
class operation_answer final : public core::command_answer {
 public:
  operation_answer(std::shared_ptr<pending_call> call, v1::Operation* response, std::shared_ptr<core::snapshot_hub> hub,
                   std::string instance, std::string target)
      : call_(std::move(call)), response_(response), hub_(std::move(hub)), instance_(std::move(instance)),
        target_(std::move(target)) {}

  void finish(absl::StatusOr<core::command_result> result) const override {
    if (!call_->claim()) return;
    if (result.ok()) fill_operation(*response_, *result, *hub_->read(), instance_, target_);
    call_->end(result.status(), public_name(target_, instance_));
  }

  static void fill_operation(v1::Operation& to, const core::command_result& result, const core::snapshot& state,
                             const std::string& instance, const std::string& target) {
    const auto held = state.operations->find(result.operation_id);
    if (held != state.operations->end()) {
      to = operation_to_v1(*held->second.object, instance, held->second.revision);
      return;
    }
    // Nothing was started: it was only checked, or was done at once.
    to.set_name(public_name(result.operation_id, instance));
    to.set_target(public_name(target, instance));
    to.set_done(result.operation_id.empty());
    to.set_state(result.operation_id.empty() ? v1::Operation::SUCCEEDED : v1::Operation::RUNNING);
    to.set_message(result.message);
  }

 private:
  const std::shared_ptr<pending_call> call_;
  v1::Operation* const response_;
  const std::shared_ptr<core::snapshot_hub> hub_;
  const std::string instance_;
  const std::string target_;
};

// The same for ApplyManifest, whose other fields are filled before.
class apply_answer final : public core::command_answer {
 public:
  apply_answer(std::shared_ptr<pending_call> call, v1::ApplyManifestResponse* response, v1::ApplyManifestResponse prepared,
               std::shared_ptr<core::snapshot_hub> hub, std::string instance)
      : call_(std::move(call)), response_(response), prepared_(std::move(prepared)), hub_(std::move(hub)),
        instance_(std::move(instance)) {}

  void finish(absl::StatusOr<core::command_result> result) const override {
    if (!call_->claim()) return;
    if (result.ok()) {
      *response_ = prepared_;
      operation_answer::fill_operation(*response_->mutable_operation(), *result, *hub_->read(), instance_, instance_);
    }
    call_->end(result.status(), public_name(instance_, instance_));
  }

 private:
  const std::shared_ptr<pending_call> call_;
  v1::ApplyManifestResponse* const response_;
  const v1::ApplyManifestResponse prepared_;
  const std::shared_ptr<core::snapshot_hub> hub_;
  const std::string instance_;
};

struct read_files {
  std::vector<journal::RackSpec> own;     // at most one
  std::vector<journal::PlantSpec> plant;  // this daemon's, at most one
  std::vector<std::string> others;
  std::vector<manifest::spec_error> errors;
};

template <class Files>
read_files read_specs(const Files& files, const std::string& instance) {
  std::vector<manifest::source_file> sources;
  for (const auto& file : files) sources.push_back({file.path(), file.content()});
  manifest::read_result read = manifest::read_spec(sources);
  read_files found;
  found.errors = std::move(read.errors);
  for (journal::RackSpec& spec : read.racks) {
    if (spec.manifest().rack() == instance) found.own.push_back(std::move(spec));
    else found.others.push_back(spec.manifest().rack());
  }
  for (journal::PlantSpec& spec : read.plants) {
    if (spec.plant() == instance) found.plant.push_back(std::move(spec));
    else found.others.push_back(spec.plant());
  }
  return found;
}

void fail_spec(pending_call& call, const std::vector<manifest::spec_error>& errors) {
  if (!call.claim()) return;
  v1::SpecErrors details;
  std::string text;
  for (const manifest::spec_error& error : errors) {
    auto* added = details.add_errors();
    added->set_file(error.file);
    added->set_key_path(error.key_path);
    added->set_message(error.message);
    if (text.size() < 2000) text += (text.empty() ? "" : "\n") + manifest::to_text(error);
  }
  // Metadata is bounded on the client's side (8 KiB by default): what does not fit is counted in the text.
  while (details.ByteSizeLong() > 6000 && details.errors_size() > 1) details.mutable_errors()->RemoveLast();
  call.context().AddTrailingMetadata(spec_errors_key, details.SerializeAsString());
  call.end(core::make_fault(core::fault::SPEC_INVALID, fmt::format("{} errors:\n{}", errors.size(), text)));
}

template <class Response>
void add_changes(Response& to, const std::vector<manifest::spec_change>& changes, const std::string& instance) {
  to.add_racks(public_name(instance, instance));
  for (const manifest::spec_change& change : changes) {
    auto* added = to.add_changes();
    added->set_rack(public_name(instance, instance));
    added->set_key_path(change.key_path);
    added->set_stored(change.before);
    added->set_declared(change.after);
  }
}

template <class Response>
void fill_changes(Response& to, const read_files& files, const core::snapshot& state, const std::string& instance) {
  for (const std::string& other : files.others) to.add_other_racks(public_name(other, other));
  for (const journal::RackSpec& spec : files.own) {
    const auto stored = state.rack(instance);
    add_changes(to, manifest::changes(stored == nullptr ? journal::RackSpec() : stored->spec(), spec), instance);
  }
  for (const journal::PlantSpec& spec : files.plant) add_changes(to, manifest::changes(stored_plant(state), spec), instance);
}

bool is_hex_digest(const std::string& text) {
  return text.size() == 64 && std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isxdigit(c) != 0; });
}

std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

}  // namespace

edge_service::unary* edge_service::act(context* of, std::string_view verb, const v1::ActRequest& request,
                                       std::map<std::string, std::string> arguments, const std::string& body,
                                       v1::Operation* response) {
  absl::StatusOr<entry> in = gate_.enter(*of, role::op, call_class::act);
  if (!in.ok()) return finish_now(of, in.status());
  const std::string target = short_name(request.name());
  if (target.empty()) return finish_now(of, absl::InvalidArgumentError("the request names no target"));
  if (absl::Status status = check_etag(*deps_.hub->read(), target, request.etag()); !status.ok()) {
    return finish_now(of, status, request.name());
  }
  auto what = std::make_shared<core::command>();
  what->verb = std::string(verb);
  what->target = target;
  what->arguments = std::move(arguments);
  what->principal = principal_of(in->who);
  what->request_id = request.request_id().empty() ? fresh_request_id() : request.request_id();
  what->request_digest = core::sha256(body);
  what->reason = request.reason();
  what->validate_only = request.validate_only();
  unary* reactor = of->DefaultReactor();
  auto call = std::make_shared<pending_call>(of, reactor, std::move(in->place));
  acts_.add(call);
  deps_.submit(std::move(what), std::make_shared<operation_answer>(std::move(call), response, deps_.hub, deps_.instance, target));
  return reactor;
}

edge_service::unary* edge_service::CancelOperation(context* of, const v1::ActRequest* in, v1::Operation* out) {
  return act(of, "operation_cancel", *in, {}, body_of("operation_cancel", *in), out);
}

edge_service::unary* edge_service::ShutdownRack(context* of, const v1::ActRequest* in, v1::Operation* out) {
  return act(of, "rack_shutdown", *in, {}, body_of("rack_shutdown", *in), out);
}

edge_service::unary* edge_service::ReleaseBmc(context* of, const v1::ActRequest* in, v1::Operation* out) {
  return act(of, "bmc_release", *in, {}, body_of("bmc_release", *in), out);
}

edge_service::unary* edge_service::UnlockBmc(context* of, const v1::ActRequest* in, v1::Operation* out) {
  return act(of, "bmc_unlock", *in, {}, body_of("bmc_unlock", *in), out);
}

edge_service::unary* edge_service::BringupRack(context* of, const v1::BringupRackRequest* in, v1::Operation* out) {
  std::map<std::string, std::string> arguments;
  std::string members;
  const std::string rack = short_name(in->act().name());
  for (const std::string& given : in->members()) {
    std::string member = short_name(given);
    if (member.find('/') == std::string::npos) member = rack + "/" + member;
    members += (members.empty() ? "" : ",") + member;
  }
  if (!members.empty()) arguments["members"] = members;
  return act(of, "rack_bringup", in->act(), std::move(arguments), body_of_act("rack_bringup", *in), out);
}

edge_service::unary* edge_service::RetryNode(context* of, const v1::RetryNodeRequest* in, v1::Operation* out) {
  std::map<std::string, std::string> arguments;
  if (!in->from_step().empty()) {
    v1::NodeStep::Value step = v1::NodeStep::STEP_UNSPECIFIED;
    if (!v1::NodeStep::Value_Parse(upper(in->from_step()), &step) || step == v1::NodeStep::STEP_UNSPECIFIED) {
      return finish_now(of, absl::InvalidArgumentError(fmt::format("no step {}", in->from_step())), in->act().name());
    }
    arguments["from"] = lower(in->from_step());
  }
  return act(of, "node_retry", in->act(), std::move(arguments), body_of_act("node_retry", *in), out);
}

edge_service::unary* edge_service::TrustNode(context* of, const v1::TrustNodeRequest* in, v1::Operation* out) {
  if (!is_hex_digest(in->pin())) {
    return finish_now(of, absl::InvalidArgumentError("pin is not a SHA-256 in hex"), in->act().name());
  }
  return act(of, "node_trust", in->act(), {{"pin", lower(in->pin())}}, body_of_act("node_trust", *in), out);
}

edge_service::unary* edge_service::SetValve(context* of, const v1::SetValveRequest* in, v1::Operation* out) {
  std::map<std::string, std::string> arguments{{"opening_percent", fmt::format("{}", in->opening_percent())}};
  if (in->has_lease()) {
    const auto lease_ns = google::protobuf::util::TimeUtil::DurationToNanoseconds(in->lease());
    arguments["lease_s"] = fmt::format("{}", static_cast<double>(lease_ns) / 1e9);
  }
  return act(of, "valve_set", in->act(), std::move(arguments), body_of_act("valve_set", *in), out);
}

edge_service::unary* edge_service::SetPowerCap(context* of, const v1::SetPowerCapRequest* in, v1::Operation* out) {
  std::map<std::string, std::string> arguments;
  if (in->has_gpu_watts()) arguments["gpu_watts"] = fmt::format("{}", in->gpu_watts());
  if (in->has_lease()) {
    const auto lease_ns = google::protobuf::util::TimeUtil::DurationToNanoseconds(in->lease());
    arguments["lease_s"] = fmt::format("{}", static_cast<double>(lease_ns) / 1e9);
  }
  return act(of, "power_cap", in->act(), std::move(arguments), body_of_act("power_cap", *in), out);
}

edge_service::unary* edge_service::ReleaseValve(context* of, const v1::ActRequest* in, v1::Operation* out) {
  return act(of, "valve_release", *in, {}, body_of("valve_release", *in), out);
}

edge_service::unary* edge_service::SwitchOutlet(context* of, const v1::SwitchOutletRequest* in, v1::Operation* out) {
  if (in->outlet().empty()) return finish_now(of, absl::InvalidArgumentError("the request names no outlet"), in->act().name());
  if (in->wish() != "on" && in->wish() != "off" && in->wish() != "cycle") {
    return finish_now(of, absl::InvalidArgumentError(fmt::format("'{}' is no wish: on, off or cycle", in->wish())), in->act().name());
  }
  return act(of, "outlet_switch", in->act(), {{"outlet", in->outlet()}, {"wish", in->wish()}}, body_of_act("outlet_switch", *in), out);
}

edge_service::unary* edge_service::ApplyManifest(context* of, const v1::ApplyManifestRequest* request,
                                                 v1::ApplyManifestResponse* response) {
  absl::StatusOr<entry> in = gate_.enter(*of, role::op, call_class::act);
  if (!in.ok()) return finish_now(of, in.status());
  unary* reactor = of->DefaultReactor();
  auto call = std::make_shared<pending_call>(of, reactor, std::move(in->place));
  acts_.add(call);
  const bool taken = reader_.post([this, call, who = in->who, wanted = *request, response] {
    apply(entry{who, {}}, wanted, call, response);
  });
  if (!taken) call->fail(absl::ResourceExhaustedError("too many requests read files; try again in a moment"));
  return reactor;
}

void edge_service::apply(entry&& who, const v1::ApplyManifestRequest& request, const std::shared_ptr<pending_call>& call,
                         v1::ApplyManifestResponse* response) {
  const read_files files = read_specs(request.files(), deps_.instance);
  if (!files.errors.empty()) return fail_spec(*call, files.errors);
  const auto state = deps_.hub->read();
  v1::ApplyManifestResponse prepared;
  fill_changes(prepared, files, *state, deps_.instance);
  const auto done = [&call, response](const v1::ApplyManifestResponse& with) {
    if (!call->claim()) return;
    *response = with;
    call->end(absl::OkStatus());
  };
  if (files.own.empty() && files.plant.empty()) return done(prepared);
  auto what = std::make_shared<core::command>();
  what->target = deps_.instance;
  what->principal = principal_of(who.who);
  what->request_id = request.request_id().empty() ? fresh_request_id() : request.request_id();
  what->reason = request.reason();
  what->validate_only = request.validate_only();
  std::string stored_digest, digest;
  if (files.own.empty()) {
    what->verb = "plant_apply";
    what->plant = std::make_shared<const journal::PlantSpec>(files.plant.front());
    digest = what->plant->digest();
    stored_digest = stored_plant(*state).digest();
  } else {
    what->verb = "manifest_apply";
    what->spec = std::make_shared<const journal::RackSpec>(files.own.front());
    digest = what->spec->digest();
    if (const auto stored = state->rack(deps_.instance); stored != nullptr) stored_digest = stored->spec().digest();
  }
  what->request_digest = core::sha256(body_of(what->verb, request));
  if (absl::Status status = check_etag(*state, deps_.instance, request.etag()); !status.ok()) return call->fail(status);
  prepared.set_etag(digest);
  if (stored_digest == digest) {
    operation_answer::fill_operation(*prepared.mutable_operation(), {"", "nothing to change", {}}, *state, deps_.instance,
                                     deps_.instance);
    return done(prepared);
  }
  deps_.submit(std::move(what), std::make_shared<apply_answer>(call, response, std::move(prepared), deps_.hub, deps_.instance));
}

edge_service::unary* edge_service::DiffManifest(context* of, const v1::DiffManifestRequest* request,
                                                v1::DiffManifestResponse* response) {
  absl::StatusOr<entry> in = gate_.enter(*of, role::viewer, call_class::read);
  if (!in.ok()) return finish_now(of, in.status());
  unary* reactor = of->DefaultReactor();
  auto call = std::make_shared<pending_call>(of, reactor, std::move(in->place));
  const bool taken = reader_.post([this, call, wanted = *request, response] {
    const read_files files = read_specs(wanted.files(), deps_.instance);
    if (!files.errors.empty()) return fail_spec(*call, files.errors);
    if (!call->claim()) return;
    fill_changes(*response, files, *deps_.hub->read(), deps_.instance);
    call->end(absl::OkStatus());
  });
  if (!taken) call->fail(absl::ResourceExhaustedError("too many requests read files; try again in a moment"));
  return reactor;
}

}  // namespace busbar::rpc
