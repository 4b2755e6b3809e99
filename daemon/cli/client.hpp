// The wire of the CLI: which daemons there are, one call to one of them, one watch. All of gRPC is behind
// this; every call has a deadline. Threads: any, one call a thread.
#pragma once

#include <google/protobuf/message.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "busbar/v1/busbar.pb.h"

namespace busbar::cli {

struct endpoint {
  std::string instance;  // r01: the folder of the socket; or the address given
  std::string target;    // unix:/run/busbar/r01/busbard.sock, or host:port
};

struct tls_files {  // for host:port only, where TLS is mutual
  std::string ca;
  std::string cert;
  std::string key;
};

struct tls_texts {  // the same, read
  std::string ca;
  std::string cert;
  std::string key;
};

// Every <run_dir>/*/busbard.sock, in order of instance.
std::vector<endpoint> find_endpoints(const std::filesystem::path& run_dir);
// What --endpoint says: unix:PATH, a path, or host:port.
endpoint parse_endpoint(const std::string& text);

struct call_result {
  int code = 0;  // canonical
  std::string message;
  v1::ErrorInfo info;  // empty fault: the server gave no details
  v1::SpecErrors spec_errors;

  bool ok() const { return code == 0; }
  // The daemon itself did not answer (as opposed to answering that something else is unavailable).
  bool unanswered() const;
};

class client {
 public:
  client(std::vector<endpoint> endpoints, const tls_texts& tls);
  ~client();
  client(const client&) = delete;
  client& operator=(const client&) = delete;

  const std::vector<endpoint>& endpoints() const { return endpoints_; }

  // method: of service busbar.v1.Busbar; request and response are of its types, which is checked.
  call_result call(std::size_t endpoint, const std::string& method, const google::protobuf::Message& request,
                   google::protobuf::Message& response, std::chrono::milliseconds deadline) const;

  // Until the stream ends, the deadline passes, or stop is asked for from another thread.
  call_result watch(std::size_t endpoint, const v1::WatchRequest& request, std::chrono::milliseconds deadline,
                    const std::stop_token& stop,
                    const std::function<void(const v1::WatchResponse&)>& each) const;
  // The same of readings; false from each ends it well.
  call_result watch_readings(std::size_t endpoint, const v1::WatchReadingsRequest& request,
                             std::chrono::milliseconds deadline, const std::stop_token& stop,
                             const std::function<bool(const v1::WatchReadingsResponse&)>& each) const;

 private:
  struct wire;
  std::vector<endpoint> endpoints_;
  std::vector<std::unique_ptr<wire>> wires_;
};

}  // namespace busbar::cli
