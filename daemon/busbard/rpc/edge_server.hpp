// The daemon's gRPC server: the Unix socket (callers known by their uid), optionally TCP with mutual TLS, health, reflection.
#pragma once

#include <absl/status/statusor.h>
#include <grpcpp/server.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/busbard/rpc/edge_service.hpp"
#include "daemon/busbard/rpc/listener.hpp"

namespace busbar::rpc {

struct edge_tcp {
  std::string listen;  // host:port; port 0 is chosen by the system
  std::filesystem::path cert;
  std::filesystem::path key;
  std::filesystem::path ca;
  certificate_roles roles;
};

struct edge_options {
  std::string socket_path;
  uid_t own_uid = 0;
  group_source groups = system_groups_of;
  std::optional<edge_tcp> tcp;
  bool reflection = false;
  admission_limits admission;
  watch_limits watches;
  std::vector<grpc::Service*> more_services;              // tests and benchmarks
  grpc::CallbackGenericService* generic = nullptr;        // benchmarks
};

// Owner: main. Stop order: stop_admission(), stop_streams(), then the actors behind it, then destroy.
class edge_server {
 public:
  // ALREADY_EXISTS: another daemon serves the socket. INVALID_ARGUMENT, UNAVAILABLE: the socket or port cannot be had.
  static absl::StatusOr<std::unique_ptr<edge_server>> start(edge_dependencies deps, edge_options options);
  ~edge_server();

  // Health for clients that ask: SERVING once ready.
  void set_serving(bool serving);
  // NOT_SERVING, no new connection, no new call.
  void stop_admission();
  // Ends streams and waits, then the server; acts that are not answered at the limit end with UNAVAILABLE. True: there were none.
  bool stop_streams(std::chrono::milliseconds limit);

  int tcp_port() const { return tcp_port_; }

 private:
  edge_server(edge_dependencies deps, edge_options options);
  absl::Status begin();

  edge_options options_;
  peer_table peers_;
  admission places_;
  guard gate_;
  std::unique_ptr<plant_gate> plant_gate_;  // role plant
  edge_service service_;
  int tcp_port_ = 0;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<listener> listener_;
};

}  // namespace busbar::rpc
