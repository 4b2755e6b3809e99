// A daemon in this process, on a Unix socket in a folder of the test: answers what it was told to.
#pragma once

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "busbar/v1/busbar.grpc.pb.h"
#include "daemon/cli/context.hpp"

namespace busbar::cli::testing {

class fake_daemon final : public v1::Busbar::Service {
 public:
  fake_daemon(const std::filesystem::path& run_dir, const std::string& instance);
  ~fake_daemon() override;

  // What it holds, by AIP name.
  std::map<std::string, v1::Rack> racks;
  std::map<std::string, v1::Node> nodes;
  std::map<std::string, v1::Shelf> shelves;
  std::map<std::string, v1::Endpoint> endpoints;
  std::map<std::string, v1::Operation> operations;
  std::vector<v1::Event> events;
  std::vector<v1::WatchResponse> changes;    // sent after the present state
  grpc::Status watch_end;                    // ends a watch after its changes; OK: it stays open
  grpc::Status refusal;                      // of every act, when it is not OK
  grpc::Status list_refusal;                 // of every list, when it is not OK
  std::set<std::string> refused_names;       // of acts: NOT_FOUND
  std::vector<v1::SpecChange> spec_changes;  // of ApplyManifest and DiffManifest
  bool takes_rack = true;
  bool ends_operations = true;  // WaitOperation makes them succeed
  int page = 1000;

  // What it was asked.
  std::vector<v1::ActRequest> acts;
  std::vector<v1::ManifestFile> files;
  std::string from_step;

 private:
  using context = grpc::ServerContext;
  grpc::Status GetStatus(context*, const v1::GetStatusRequest*, v1::DaemonStatus*) override;
  grpc::Status GetRack(context*, const v1::GetRequest*, v1::Rack*) override;
  grpc::Status ListRacks(context*, const v1::ListRequest*, v1::ListRacksResponse*) override;
  grpc::Status GetNode(context*, const v1::GetRequest*, v1::Node*) override;
  grpc::Status ListNodes(context*, const v1::ListRequest*, v1::ListNodesResponse*) override;
  grpc::Status ListShelves(context*, const v1::ListRequest*, v1::ListShelvesResponse*) override;
  grpc::Status ListEndpoints(context*, const v1::ListRequest*, v1::ListEndpointsResponse*) override;
  grpc::Status GetOperation(context*, const v1::GetRequest*, v1::Operation*) override;
  grpc::Status ListOperations(context*, const v1::ListRequest*, v1::ListOperationsResponse*) override;
  grpc::Status WaitOperation(context*, const v1::WaitOperationRequest*, v1::Operation*) override;
  grpc::Status ListEvents(context*, const v1::ListEventsRequest*, v1::ListEventsResponse*) override;
  grpc::Status Watch(context*, const v1::WatchRequest*, grpc::ServerWriter<v1::WatchResponse>*) override;
  grpc::Status ApplyManifest(context*, const v1::ApplyManifestRequest*, v1::ApplyManifestResponse*) override;
  grpc::Status DiffManifest(context*, const v1::DiffManifestRequest*, v1::DiffManifestResponse*) override;
  grpc::Status BringupRack(context*, const v1::BringupRackRequest*, v1::Operation*) override;
  grpc::Status ShutdownRack(context*, const v1::ActRequest*, v1::Operation*) override;
  grpc::Status RetryNode(context*, const v1::RetryNodeRequest*, v1::Operation*) override;
  grpc::Status ReleaseBmc(context*, const v1::ActRequest*, v1::Operation*) override;

  grpc::Status act(const std::string& verb, const v1::ActRequest& request, v1::Operation& operation);
  v1::Position position() const;
  bool holds_parent(const std::string& parent) const;

  std::string instance_;
  std::mutex mutex_;
  std::unique_ptr<grpc::Server> server_;
};

grpc::Status fault_status(grpc::StatusCode code, const v1::ErrorInfo& info,
                          const v1::SpecErrors& errors = {});

// Two minutes after the times in the samples.
std::chrono::system_clock::time_point sample_now();
google::protobuf::Timestamp sample_time();
v1::Rack sample_rack(const std::string& name);
v1::Node sample_node(const std::string& rack, const std::string& slot);

struct outcome {
  exit_code code;
  std::string out;
  std::string err;
};

// A run folder, and busbar run in it.
class site {
 public:
  site();
  ~site();
  const std::filesystem::path& folder() const { return folder_; }
  outcome busbar(const std::vector<std::string>& arguments, const std::string& typed = "",
                 bool terminal = false) const;

 private:
  std::filesystem::path folder_;
};

}  // namespace busbar::cli::testing
