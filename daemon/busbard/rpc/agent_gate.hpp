// Where agents dial: one TLS port for Enrol (no client certificate, a one-time token) and Work (the rack CA's
// client certificate, whose subject is the member's name). Knows no actor: events leave through the sink,
// orders come in through agent_port. grpcpp stays in the .cpp files.
//
// Threads: Enrol and renewals are signed on the gate's own loop; the sink is called on gRPC threads and on
// that loop, one event of a member at a time and in order. agent_port's methods may be called from anywhere,
// also from within the sink.
#pragma once

#include <absl/status/statusor.h>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>

#include "actors/validation/agent_port.hpp"
#include "daemon/busbard/rpc/agent_pki.hpp"

namespace busbar::rpc {

struct agent_gate_options {
  std::string endpoint;             // "127.18.1.250:7443"; port 0 takes a free one
  std::filesystem::path state_dir;  // keeps the digests of tokens over a restart; empty = memory only
  std::chrono::seconds token_life = std::chrono::minutes(30);
  std::chrono::seconds certificate_life = std::chrono::hours(24);
  std::chrono::milliseconds hello_deadline = std::chrono::seconds(20);  // a stream that says nothing is ended
  std::size_t stream_queue = 256;  // messages waiting for one agent; past it the stream is ended
};

class agent_gate final : public validation::agent_port {
 public:
  static absl::StatusOr<std::unique_ptr<agent_gate>> start(agent_gate_options options, agent_ca ca,
                                                           validation::agent_sink sink);
  ~agent_gate() override;

  // Ends every stream with UNAVAILABLE (agents come back by themselves), waits at most `grace` for calls to
  // end, then cuts them. The sink is not called once this has begun to return; no lost events are made for
  // the streams it ends.
  void stop(std::chrono::milliseconds grace = std::chrono::seconds(2));
  int port() const;

  std::string issue_token(const std::string& member, const std::string& expected_serial) override;
  void revoke(const std::string& member) override;
  bool run(const std::string& member, const agent::Run& run) override;
  bool cancel(const std::string& member, const std::string& run_id) override;
  bool renew_lease(const std::string& member, const std::string& run_id) override;
  bool connected(const std::string& member) const override;

 private:
  class impl;
  explicit agent_gate(std::unique_ptr<impl> inside);
  std::unique_ptr<impl> impl_;
};

}  // namespace busbar::rpc
