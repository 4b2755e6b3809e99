// The agent gate opens when the manifest says where; until then no agent is connected and nothing is sent.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "actors/validation/agent_port.hpp"
#include "daemon/busbard/rpc/agent_gate.hpp"

namespace busbar::daemon {

class late_agent_gate final : public validation::agent_port {
 public:
  late_agent_gate(std::string state_dir, rpc::agent_ca ca, validation::agent_sink sink);

  // Opens the gate once; a later call with the same endpoint does nothing, with another one moves the gate.
  // Blocks: a worker's.
  void open(const std::string& endpoint);
  void stop(std::chrono::milliseconds grace);

  std::string issue_token(const std::string& member, const std::string& expected_serial) override;
  void revoke(const std::string& member) override;
  bool run(const std::string& member, const agent::Run& run) override;
  bool cancel(const std::string& member, const std::string& run_id) override;
  bool renew_lease(const std::string& member, const std::string& run_id) override;
  bool connected(const std::string& member) const override;

 private:
  std::shared_ptr<rpc::agent_gate> now() const;

  const std::string state_dir_;
  const rpc::agent_ca ca_;
  const validation::agent_sink sink_;
  mutable std::mutex mutex_;
  std::string endpoint_;
  std::shared_ptr<rpc::agent_gate> gate_;
};

}  // namespace busbar::daemon
