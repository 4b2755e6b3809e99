// How the rack's actors and the agent gate (gRPC, daemon/busbard/rpc) meet, without knowing one another. No CAF here.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "busbar/agent/agent.pb.h"

namespace busbar::validation {

// From an agent's stream, on a gRPC thread. The receiver forwards to an actor and returns at once.
struct agent_event {
  enum class kind { hello, progress, measurement, test_done, lost, refused };
  kind what = kind::lost;
  std::string member;          // "r01/c07", from the certificate's subject
  agent::Hello hello;
  agent::Progress progress;
  agent::Measurement measurement;
  agent::TestDone test_done;
  std::string reason;          // of lost; of refused it begins with a fault's name (AGENT_SERIAL_MISMATCH: ...)
};
using agent_sink = std::function<void(agent_event)>;

// Towards the agents. Thread-safe; never blocks.
class agent_port {
 public:
  virtual ~agent_port() = default;
  // Makes a one-time token for this boot of a member; only its digest is kept. expected_serial is what Redfish showed
  // (empty: the BMC showed none, then any serial is accepted and reported). Replaces an earlier token of that member.
  virtual std::string issue_token(const std::string& member, const std::string& expected_serial) = 0;
  virtual void revoke(const std::string& member) = 0;
  // False: no agent of that member is connected; nothing was sent.
  virtual bool run(const std::string& member, const agent::Run& run) = 0;
  virtual bool cancel(const std::string& member, const std::string& run_id) = 0;
  virtual bool renew_lease(const std::string& member, const std::string& run_id) = 0;
  virtual bool connected(const std::string& member) const = 0;
};

}  // namespace busbar::validation
