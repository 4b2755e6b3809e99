#include "daemon/busbard/rpc/edge_server.hpp"

#include <fmt/format.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/server_posix.h>

#include <thread>
#include <utility>

#include "actors/core/log.hpp"

namespace busbar::rpc {
namespace {

constexpr int largest_request = 17 << 20;   // 16 MiB of a site's files, and what is around them
constexpr int largest_response = 64 << 20;
constexpr int most_streams = 128;           // a connection
constexpr int memory_quota = 256 << 20;
constexpr int keepalive_ms = 60'000;
constexpr int keepalive_timeout_ms = 20'000;
constexpr int least_ping_interval_ms = 20'000;
constexpr unsigned certificate_refresh_s = 60;
constexpr auto look_interval = std::chrono::milliseconds(5);
constexpr auto last_words = std::chrono::milliseconds(500);  // for answers on their way out

void set_limits(grpc::ServerBuilder& builder) {
  builder.SetMaxReceiveMessageSize(largest_request);
  builder.SetMaxSendMessageSize(largest_response);
  // Otherwise two daemons could share a port, and neither would know.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, most_streams);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, keepalive_ms);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, keepalive_timeout_ms);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, least_ping_interval_ms);
  grpc::ResourceQuota quota("busbard");
  quota.Resize(memory_quota);
  builder.SetResourceQuota(quota);
}

std::shared_ptr<grpc::ServerCredentials> mutual_tls(const edge_tcp& tcp) {
  namespace tls = grpc::experimental;
  auto provider = std::make_shared<tls::FileWatcherCertificateProvider>(tcp.key.string(), tcp.cert.string(), tcp.ca.string(),
                                                                        certificate_refresh_s);
  tls::TlsServerCredentialsOptions options(provider);
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  options.set_cert_request_type(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  return tls::TlsServerCredentials(options);
}

}  // namespace

edge_server::edge_server(edge_dependencies deps, edge_options options)
    : options_(std::move(options)),
      places_(options_.admission),
      gate_(peers_, places_, options_.tcp.has_value() ? options_.tcp->roles : certificate_roles()),
      plant_gate_(deps.hear_demand ? std::make_unique<plant_gate>(gate_, deps.hear_demand) : nullptr),
      service_(std::move(deps), gate_, options_.watches) {}

absl::StatusOr<std::unique_ptr<edge_server>> edge_server::start(edge_dependencies deps, edge_options options) {
  std::unique_ptr<edge_server> made(new edge_server(std::move(deps), std::move(options)));
  if (absl::Status status = made->begin(); !status.ok()) return status;
  return made;
}

absl::Status edge_server::begin() {
  grpc::EnableDefaultHealthCheckService(true);
  if (options_.reflection) grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  set_limits(builder);
  builder.RegisterService(&service_);
  if (plant_gate_ != nullptr) builder.RegisterService(plant_gate_.get());
  for (grpc::Service* more : options_.more_services) builder.RegisterService(more);
  if (options_.generic != nullptr) builder.RegisterCallbackGenericService(options_.generic);
  if (options_.tcp.has_value()) builder.AddListeningPort(options_.tcp->listen, mutual_tls(*options_.tcp), &tcp_port_);
  server_ = builder.BuildAndStart();
  if (server_ == nullptr || (options_.tcp.has_value() && tcp_port_ == 0)) {
    return absl::UnavailableError(fmt::format(
        "cannot serve {}", options_.tcp.has_value() ? "TCP " + options_.tcp->listen : std::string("gRPC")));
  }
  set_serving(false);
  listener_options listening{options_.socket_path, options_.own_uid, options_.groups};
  listener_ = std::make_unique<listener>(std::move(listening), [this](int socket, const caller& who) {
    const int number = peers_.admit(socket, who);
    if (number >= 0) {
      grpc::AddInsecureChannelFromFd(server_.get(), number);
    } else {
      core::log_warning("connection_refused", {{"caller", who.name}, {"reason", "no file number left"}});
    }
  });
  return listener_->start();
}

edge_server::~edge_server() {
  stop_admission();
  stop_streams(std::chrono::milliseconds(1000));
}

void edge_server::set_serving(bool serving) {
  grpc::HealthCheckServiceInterface* health = server_ == nullptr ? nullptr : server_->GetHealthCheckService();
  if (health == nullptr) return;
  health->SetServingStatus(serving);
  health->SetServingStatus("busbar.v1.Busbar", serving);
}

void edge_server::stop_admission() {
  if (places_.stopped()) return;
  set_serving(false);
  places_.stop();
  if (listener_ != nullptr) listener_->stop();
}

bool edge_server::stop_streams(std::chrono::milliseconds limit) {
  if (server_ == nullptr) return true;
  service_.end_streams();
  // Acts get the time to be answered; then they are ended, since the server waits for every call for ever.
  const auto until = std::chrono::steady_clock::now() + limit;
  while (places_.inside(call_class::act) > 0 && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(look_interval);
  }
  const bool in_time = places_.inside(call_class::act) == 0;
  service_.end_acts();
  server_->Shutdown(std::chrono::system_clock::now() + last_words);
  server_->Wait();
  server_.reset();
  return in_time;
}

}  // namespace busbar::rpc
