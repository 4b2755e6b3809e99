#include "daemon/busbard/rpc/plant_client.hpp"

#include <absl/status/status.h>
#include <fmt/format.h>
#include <google/protobuf/util/time_util.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include <condition_variable>
#include <mutex>
#include <utility>

#include "actors/core/regular_file.hpp"
#include "busbar/plant/plant.grpc.pb.h"

namespace busbar::rpc {
namespace {

using google::protobuf::util::TimeUtil;

constexpr int longest_reconnect_pause_ms = 1'000;

absl::Status status_of(const grpc::Status& from, const std::string& address) {
  if (from.ok()) return absl::OkStatus();
  return {static_cast<absl::StatusCode>(from.error_code()),
          fmt::format("{}: {}", address, from.error_message())};
}

plant::DemandRequest request_of(const plant::demand& wanted) {
  plant::DemandRequest request;
  request.set_rack(wanted.rack);
  if (wanted.flow_lpm) request.set_flow_lpm(*wanted.flow_lpm);
  if (wanted.heat_kw) request.set_heat_kw(*wanted.heat_kw);
  if (wanted.valve_percent) request.set_valve_percent(*wanted.valve_percent);
  request.set_short_of_flow(wanted.short_of_flow);
  *request.mutable_lease() = TimeUtil::NanosecondsToDuration(wanted.lease_ns);
  return request;
}

plant::plant_view view_of(const plant::DemandAnswer& answer) {
  plant::plant_view view;
  view.plant = answer.plant();
  view.cdu = answer.cdu();
  view.mode = answer.mode();
  view.waits_for = answer.waits_for();
  const int health = static_cast<int>(answer.health());
  view.health =
      journal::Health_IsValid(health) ? static_cast<journal::Health>(health) : journal::HEALTH_UNKNOWN;
  if (answer.has_reading_age()) view.reading_age_ns = TimeUtil::DurationToNanoseconds(answer.reading_age());
  if (answer.has_supply_c()) view.supply_c = answer.supply_c();
  if (answer.has_dp_kpa()) view.dp_kpa = answer.dp_kpa();
  if (answer.has_flow_lpm()) view.flow_lpm = answer.flow_lpm();
  if (answer.has_supply_set_point_c()) view.supply_set_point_c = answer.supply_set_point_c();
  if (answer.has_dp_set_point_kpa()) view.dp_set_point_kpa = answer.dp_set_point_kpa();
  view.cooling_short = answer.cooling_short();
  view.short_why = answer.short_why();
  return view;
}

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> credentials_for(const std::string& address,
                                                                          const plant_wire& wire) {
  if (address.starts_with("unix:"))
    return grpc::InsecureChannelCredentials();  // the socket's owner knows us by our uid
  if (wire.ca_file.empty() || wire.cert_file.empty() || wire.key_file.empty()) {
    return absl::FailedPreconditionError(fmt::format(
        "{} is served with mutual TLS only: give this daemon tcp.ca, tcp.cert and tcp.key", address));
  }
  grpc::SslCredentialsOptions tls;
  for (const auto& [file, text] :
       {std::pair{&wire.ca_file, &tls.pem_root_certs}, std::pair{&wire.cert_file, &tls.pem_cert_chain},
        std::pair{&wire.key_file, &tls.pem_private_key}}) {
    auto content = core::read_regular_file(*file, core::small_file_bytes);
    if (!content.ok()) return content.status();
    *text = *std::move(content);
  }
  return grpc::SslCredentials(tls);
}

}  // namespace

struct open_demand {
  grpc::ClientContext context;
  plant::DemandRequest request;
  plant::DemandAnswer answer;
};

// Shared with the call under way.
struct plant_client::line {
  std::mutex mutex;
  std::condition_variable ended;
  std::string address;
  absl::Status broken = absl::FailedPreconditionError("no plant is declared");
  std::shared_ptr<plant::Plant::Stub> stub;
  std::shared_ptr<open_demand> open;
  bool stopped = false;
};

plant_client::plant_client(plant_wire wire) : wire_(std::move(wire)), line_(std::make_shared<line>()) {}

// What is open lives on by itself until it has answered.
plant_client::~plant_client() {
  const std::lock_guard lock(line_->mutex);
  if (line_->open != nullptr) line_->open->context.TryCancel();
}

void plant_client::stop() {
  std::unique_lock lock(line_->mutex);
  line_->stopped = true;
  if (line_->open != nullptr) line_->open->context.TryCancel();
  line_->ended.wait(lock, [this] { return line_->open == nullptr; });
}

void plant_client::connect(const std::string& address) {
  const std::lock_guard lock(line_->mutex);
  if (line_->address == address) return;
  line_->address = address;
  line_->stub.reset();
  if (address.empty()) {
    line_->broken = absl::FailedPreconditionError("no plant is declared");
    return;
  }
  auto credentials = credentials_for(address, wire_);
  line_->broken = credentials.status();
  if (!credentials.ok()) return;
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, longest_reconnect_pause_ms);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, longest_reconnect_pause_ms / 4);
  line_->stub = plant::Plant::NewStub(grpc::CreateCustomChannel(address, *credentials, arguments));
}

void plant_client::renew(const plant::demand& wanted,
                         std::function<void(absl::StatusOr<plant::plant_view>)> reply) {
  std::shared_ptr<open_demand> call;
  std::shared_ptr<plant::Plant::Stub> stub;
  std::string address;
  absl::Status refused;
  {
    const std::lock_guard lock(line_->mutex);
    address = line_->address;
    if (line_->stub == nullptr) refused = line_->broken;
    if (line_->open != nullptr)
      refused = absl::UnavailableError(address + " has not answered the last demand yet");
    if (refused.ok()) {
      call = line_->open = std::make_shared<open_demand>();
      stub = line_->stub;
    }
  }
  if (!refused.ok()) return reply(refused);
  call->request = request_of(wanted);
  call->context.set_deadline(std::chrono::system_clock::now() + wire_.deadline);
  stub->async()->RenewDemand(&call->context, &call->request, &call->answer,
                             [line = line_, call, stub, address, reply](const grpc::Status& status) {
                               if (status.ok()) reply(view_of(call->answer));
                               if (!status.ok()) reply(status_of(status, address));
                               const std::lock_guard lock(line->mutex);
                               line->open.reset();
                               line->ended.notify_all();
                             });
}

}  // namespace busbar::rpc
