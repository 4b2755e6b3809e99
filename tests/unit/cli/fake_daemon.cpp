#include "tests/unit/cli/fake_daemon.hpp"

#include <google/protobuf/util/time_util.h>

#include <cstdlib>
#include <sstream>

#include "foreign/google/rpc/status.pb.h"

namespace busbar::cli::testing {
namespace {

using google::protobuf::util::TimeUtil;

grpc::Status not_here(const std::string& name) {
  v1::ErrorInfo info;
  info.set_fault("UNKNOWN_TARGET");
  info.set_target(name);
  info.set_message("this daemon holds no such thing");
  return fault_status(grpc::StatusCode::NOT_FOUND, info);
}

template <class Item>
grpc::Status get(const std::map<std::string, Item>& items, const std::string& name, Item& out) {
  const auto found = items.find(name);
  if (found == items.end()) return not_here(name);
  out = found->second;
  return grpc::Status::OK;
}

// Pages by number: the token is the place of the next item.
template <class Item, class List>
void list(const std::map<std::string, Item>& items, const v1::ListRequest& request, int page, List& out,
          std::string& token) {
  int place = 0;
  const int start = request.page_token().empty() ? 0 : std::stoi(request.page_token());
  for (const auto& [name, item] : items) {
    if (!request.parent().empty() && !name.starts_with(request.parent() + "/")) continue;
    if (place >= start && place < start + page) *out.Add() = item;
    ++place;
  }
  if (place > start + page) token = std::to_string(start + page);
}

}  // namespace

grpc::Status fault_status(grpc::StatusCode code, const v1::ErrorInfo& info, const v1::SpecErrors& errors) {
  google::rpc::Status details;
  details.set_code(static_cast<int>(code));
  details.set_message(info.message());
  details.add_details()->PackFrom(info);
  if (errors.errors_size() > 0) details.add_details()->PackFrom(errors);
  return {code, info.message(), details.SerializeAsString()};
}

fake_daemon::fake_daemon(const std::filesystem::path& run_dir, const std::string& instance)
    : instance_(instance) {
  std::filesystem::create_directories(run_dir / instance);
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + (run_dir / instance / "busbard.sock").string(),
                           grpc::InsecureServerCredentials());
  builder.RegisterService(this);
  server_ = builder.BuildAndStart();
}

fake_daemon::~fake_daemon() {
  server_->Shutdown(std::chrono::system_clock::now());
}

v1::Position fake_daemon::position() const {
  v1::Position here;
  here.set_journal_id("journal-of-" + instance_);
  here.set_revision(42);
  return here;
}

bool fake_daemon::holds_parent(const std::string& parent) const {
  return parent.empty() || parent == "racks/" + instance_ || racks.contains(parent);
}

grpc::Status fake_daemon::GetStatus(context*, const v1::GetStatusRequest*, v1::DaemonStatus* out) {
  out->set_instance(instance_);
  out->set_role("rack");
  out->set_version("0.1.0");
  *out->mutable_position() = position();
  return grpc::Status::OK;
}

grpc::Status fake_daemon::GetRack(context*, const v1::GetRequest* in, v1::Rack* out) {
  return get(racks, in->name(), *out);
}
grpc::Status fake_daemon::GetNode(context*, const v1::GetRequest* in, v1::Node* out) {
  return get(nodes, in->name(), *out);
}
grpc::Status fake_daemon::GetOperation(context*, const v1::GetRequest* in, v1::Operation* out) {
  return get(operations, in->name(), *out);
}

grpc::Status fake_daemon::ListRacks(context*, const v1::ListRequest* in, v1::ListRacksResponse* out) {
  if (!list_refusal.ok()) return list_refusal;
  if (!holds_parent(in->parent())) return not_here(in->parent());
  list(racks, *in, page, *out->mutable_racks(), *out->mutable_next_page_token());
  *out->mutable_position() = position();
  return grpc::Status::OK;
}

grpc::Status fake_daemon::ListNodes(context*, const v1::ListRequest* in, v1::ListNodesResponse* out) {
  if (!list_refusal.ok()) return list_refusal;
  if (!holds_parent(in->parent())) return not_here(in->parent());
  list(nodes, *in, page, *out->mutable_nodes(), *out->mutable_next_page_token());
  *out->mutable_position() = position();
  return grpc::Status::OK;
}

grpc::Status fake_daemon::ListShelves(context*, const v1::ListRequest* in, v1::ListShelvesResponse* out) {
  if (!list_refusal.ok()) return list_refusal;
  if (!holds_parent(in->parent())) return not_here(in->parent());
  list(shelves, *in, page, *out->mutable_shelves(), *out->mutable_next_page_token());
  *out->mutable_position() = position();
  return grpc::Status::OK;
}

grpc::Status fake_daemon::ListEndpoints(context*, const v1::ListRequest* in, v1::ListEndpointsResponse* out) {
  if (!list_refusal.ok()) return list_refusal;
  if (!holds_parent(in->parent())) return not_here(in->parent());
  list(endpoints, *in, page, *out->mutable_endpoints(), *out->mutable_next_page_token());
  *out->mutable_position() = position();
  return grpc::Status::OK;
}

grpc::Status fake_daemon::ListOperations(context*, const v1::ListRequest* in,
                                         v1::ListOperationsResponse* out) {
  if (!list_refusal.ok()) return list_refusal;
  if (!holds_parent(in->parent())) return not_here(in->parent());
  list(operations, *in, page, *out->mutable_operations(), *out->mutable_next_page_token());
  *out->mutable_position() = position();
  return grpc::Status::OK;
}

grpc::Status fake_daemon::ListEvents(context*, const v1::ListEventsRequest* in, v1::ListEventsResponse* out) {
  if (!list_refusal.ok()) return list_refusal;
  int place = 0;
  const int start = in->page_token().empty() ? 0 : std::stoi(in->page_token());
  const int size = std::min(page, in->page_size());
  for (auto event = events.rbegin(); event != events.rend(); ++event) {
    if (in->object().empty() || event->object() == in->object() ||
        event->object().starts_with(in->object() + "/")) {
      if (place >= start && place < start + size) *out->add_events() = *event;
      ++place;
    }
  }
  if (place > start + size) out->set_next_page_token(std::to_string(start + size));
  *out->mutable_position() = position();
  return grpc::Status::OK;
}

grpc::Status fake_daemon::WaitOperation(context*, const v1::WaitOperationRequest* in, v1::Operation* out) {
  const std::lock_guard lock(mutex_);
  const auto found = operations.find(in->name());
  if (found == operations.end()) return not_here(in->name());
  v1::Operation& operation = found->second;
  if (ends_operations && !operation.done()) {
    operation.set_done(true);
    operation.set_state(v1::Operation::SUCCEEDED);
  }
  *out = operation;
  return grpc::Status::OK;
}

grpc::Status fake_daemon::Watch(context* call, const v1::WatchRequest* in,
                                grpc::ServerWriter<v1::WatchResponse>* out) {
  const auto wanted = [in](const char* kind) {
    return in->kinds().empty() ||
           std::find(in->kinds().begin(), in->kinds().end(), kind) != in->kinds().end();
  };
  const auto send = [this, out](bool initial, auto fill) {
    v1::WatchResponse response;
    *response.mutable_position() = position();
    response.set_initial(initial);
    fill(response);
    out->Write(response);
  };
  if (!in->has_position()) {
    for (const auto& [name, rack] : racks) {
      if (wanted("racks")) send(true, [&rack = rack](auto& response) { *response.mutable_rack() = rack; });
    }
    for (const auto& [name, node] : nodes) {
      if (wanted("nodes")) send(true, [&node = node](auto& response) { *response.mutable_node() = node; });
    }
    send(false, [](auto& response) { response.mutable_bookmark()->set_initial_complete(true); });
    for (const auto& change : changes) out->Write(change);
  }
  if (!watch_end.ok()) return watch_end;
  std::mutex mutex;
  while (!call->IsCancelled()) {  // a stream stays open until its reader goes; bounded by the test's own time
                                  // limit
    std::unique_lock lock(mutex);
    std::condition_variable never;
    never.wait_for(lock, std::chrono::milliseconds(5));
  }
  return grpc::Status::CANCELLED;
}

grpc::Status fake_daemon::ApplyManifest(context*, const v1::ApplyManifestRequest* in,
                                        v1::ApplyManifestResponse* out) {
  if (!refusal.ok()) return refusal;
  files.assign(in->files().begin(), in->files().end());
  (takes_rack ? out->add_racks() : out->add_other_racks())
      ->assign("racks/" + (takes_rack ? instance_ : "r09"));
  out->mutable_changes()->Assign(spec_changes.begin(), spec_changes.end());
  return grpc::Status::OK;
}

grpc::Status fake_daemon::DiffManifest(context*, const v1::DiffManifestRequest*,
                                       v1::DiffManifestResponse* out) {
  out->add_racks("racks/" + instance_);
  out->mutable_changes()->Assign(spec_changes.begin(), spec_changes.end());
  return grpc::Status::OK;
}

grpc::Status fake_daemon::act(const std::string& verb, const v1::ActRequest& request,
                              v1::Operation& operation) {
  const std::lock_guard lock(mutex_);
  if (!refusal.ok()) return refusal;
  if (!racks.contains(request.name()) && !nodes.contains(request.name())) return not_here(request.name());
  acts.push_back(request);
  if (refused_names.contains(request.name()))
    return {grpc::StatusCode::NOT_FOUND, "this daemon holds no such thing"};
  operation.set_verb(verb);
  operation.set_target(request.name());
  if (request.validate_only()) return grpc::Status::OK;
  operation.set_name("racks/" + instance_ + "/operations/" + std::to_string(acts.size()));
  operation.set_state(v1::Operation::RUNNING);
  *operation.mutable_create_time() = sample_time();
  operation.set_principal("uid:0");
  operation.set_reason(request.reason());
  operations[operation.name()] = operation;
  return grpc::Status::OK;
}

grpc::Status fake_daemon::BringupRack(context*, const v1::BringupRackRequest* in, v1::Operation* out) {
  return act("rack_bringup", in->act(), *out);
}
grpc::Status fake_daemon::ShutdownRack(context*, const v1::ActRequest* in, v1::Operation* out) {
  return act("rack_shutdown", *in, *out);
}
grpc::Status fake_daemon::RetryNode(context*, const v1::RetryNodeRequest* in, v1::Operation* out) {
  from_step = in->from_step();
  return act("node_retry", in->act(), *out);
}
grpc::Status fake_daemon::ReleaseBmc(context*, const v1::ActRequest* in, v1::Operation* out) {
  return act("bmc_release", *in, *out);
}

google::protobuf::Timestamp sample_time() {
  return TimeUtil::SecondsToTimestamp(1'790'000'000);
}
std::chrono::system_clock::time_point sample_now() {
  return std::chrono::system_clock::from_time_t(1'790'000'125);
}

v1::Rack sample_rack(const std::string& name) {
  v1::Rack rack;
  rack.set_name("racks/" + name);
  rack.set_uid("4b5f0c9e-0000-4000-8000-000000000001");
  rack.set_etag("d1");
  rack.set_generation(1);
  rack.set_revision(41);
  rack.mutable_spec()->set_sku("vr-4x1");
  rack.mutable_spec()->set_baseline("vr-2026-11");
  rack.mutable_spec()->add_gates("node");
  auto& status = *rack.mutable_status();
  status.set_step(v1::RackStep::COOLED);
  status.set_goal(v1::RackStep::PRODUCTION);
  status.set_state("cooled");
  status.set_ceiling("production");
  status.set_waits_for("3 of 4 compute trays powered");
  *status.mutable_step_entered_time() = sample_time();
  auto& gate = *status.add_gates();
  gate.set_name("node");
  auto& count = *status.add_members();
  count.set_kind(v1::COMPUTE_TRAY);
  count.set_declared(4);
  count.set_failed(1);
  auto& flow = *status.add_readings();
  flow.set_name("flow");
  flow.mutable_reading()->set_value(130.5);
  flow.mutable_reading()->set_unit("L/min");
  flow.mutable_reading()->set_quality(v1::QUALITY_GOOD);
  flow.mutable_reading()->set_source("cdu01");
  auto& pressure = *status.add_readings();
  pressure.set_name("dp");
  pressure.mutable_reading()->set_unit("kPa");
  return rack;
}

v1::Node sample_node(const std::string& rack, const std::string& slot) {
  v1::Node node;
  node.set_name("racks/" + rack + "/nodes/" + slot);
  node.set_revision(40);
  node.mutable_spec()->set_slot(slot);
  node.mutable_spec()->set_kind(slot[0] == 's' ? v1::SWITCH_TRAY : v1::COMPUTE_TRAY);
  node.mutable_spec()->set_bmc_mac("02:18:01:00:00:" + slot.substr(1));
  node.mutable_spec()->set_serial("SN18300" + slot.substr(1));
  auto& status = *node.mutable_status();
  status.set_step(v1::NodeStep::CREDENTIALED);
  status.set_goal(v1::NodeStep::PRODUCTION);
  status.set_waits_for("host power: flow not proven");
  status.set_health(v1::HEALTH_GOOD);
  *status.mutable_step_entered_time() = sample_time();
  status.mutable_power()->set_observed(v1::Power::OFF);
  status.mutable_identity()->set_serial("SN18300" + slot.substr(1));
  auto& detector = *status.add_detectors();
  detector.set_name("0_ColdPlate");
  detector.set_verdict(v1::Detector::DRY);
  return node;
}

site::site() {
  std::string pattern = (std::filesystem::temp_directory_path() / "busbar-cli-XXXXXX").string();
  folder_ = ::mkdtemp(pattern.data());
}

site::~site() {
  std::error_code error;
  std::filesystem::remove_all(folder_, error);
}

outcome site::busbar(const std::vector<std::string>& arguments, const std::string& typed,
                     bool terminal) const {
  std::ostringstream out;
  std::ostringstream err;
  std::istringstream in(typed);
  context world{.out = out, .err = err, .in = in};
  world.in_is_terminal = terminal;
  world.run_dir = folder_;
  world.now = [] { return sample_now(); };
  const exit_code code = run(arguments, world);
  return {code, out.str(), err.str()};
}

}  // namespace busbar::cli::testing
