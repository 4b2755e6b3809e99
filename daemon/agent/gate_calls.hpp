// The agent's two calls to its gate, as callbacks on the agent's loop. All of grpcpp that the agent uses
// stands in the .cpp.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "busbar/agent/agent.pb.h"
#include "daemon/agent/event_loop.hpp"
#include "daemon/agent/identity.hpp"

namespace busbar::agent_client {

enum class call_outcome {
  ok,
  unreachable,  // try again
  refused,      // the gate will say the same again: other token or certificate needed
};

struct call_end {
  call_outcome outcome = call_outcome::unreachable;
  std::string text;
};

// One Enrol over TLS whose server is recognised by the CA digest of the token. `done` once, on the loop.
void enrol(event_loop& loop, const std::string& endpoint, const std::string& ca_sha256_hex,
           const agent::EnrolRequest& request, std::function<void(call_end, agent::EnrolResponse)> done);

// One Work stream. Methods on the loop only; so are the callbacks. Destroying the handle cuts the stream; no
// callback after.
class work_call {
 public:
  struct callbacks {
    std::function<void()> open;  // the gate took the certificate
    std::function<void(agent::DaemonMessage)> message;
    std::function<void(call_end)> closed;  // once, last
  };
  static std::unique_ptr<work_call> start(event_loop& loop, const std::string& endpoint, const identity& mine,
                                          callbacks report);
  virtual ~work_call() = default;
  virtual void send(agent::AgentMessage message) = 0;
  // Sends what is queued, then says that no more comes; the gate ends the call.
  virtual void leave() = 0;
  virtual void cut() = 0;
};

}  // namespace busbar::agent_client
