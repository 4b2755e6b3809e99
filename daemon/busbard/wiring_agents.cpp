#include "daemon/busbard/wiring_agents.hpp"

#include <utility>

#include "actors/core/log.hpp"

namespace busbar::daemon {

late_agent_gate::late_agent_gate(std::string state_dir, rpc::agent_ca ca, validation::agent_sink sink)
    : state_dir_(std::move(state_dir)), ca_(std::move(ca)), sink_(std::move(sink)) {}

void late_agent_gate::open(const std::string& endpoint) {
  std::shared_ptr<rpc::agent_gate> old;
  {
    const std::lock_guard lock(mutex_);
    if (gate_ != nullptr && endpoint_ == endpoint) return;
    old = std::exchange(gate_, nullptr);
  }
  if (old != nullptr) old->stop();
  auto gate = rpc::agent_gate::start({.endpoint = endpoint, .state_dir = state_dir_}, ca_, sink_);
  if (!gate.ok()) {
    core::log_error("agent_gate_not_opened",
                    {{"endpoint", endpoint}, {"why", std::string(gate.status().message())}});
    return;
  }
  core::log_info("agent_gate_opened", {{"endpoint", endpoint}});
  const std::lock_guard lock(mutex_);
  endpoint_ = endpoint;
  gate_ = *std::move(gate);
}

void late_agent_gate::stop(std::chrono::milliseconds grace) {
  if (const auto gate = now()) gate->stop(grace);
}

std::shared_ptr<rpc::agent_gate> late_agent_gate::now() const {
  const std::lock_guard lock(mutex_);
  return gate_;
}

std::string late_agent_gate::issue_token(const std::string& member, const std::string& expected_serial) {
  const auto gate = now();
  return gate == nullptr ? std::string() : gate->issue_token(member, expected_serial);
}

void late_agent_gate::revoke(const std::string& member) {
  if (const auto gate = now()) gate->revoke(member);
}

bool late_agent_gate::run(const std::string& member, const agent::Run& run) {
  const auto gate = now();
  return gate != nullptr && gate->run(member, run);
}

bool late_agent_gate::cancel(const std::string& member, const std::string& run_id) {
  const auto gate = now();
  return gate != nullptr && gate->cancel(member, run_id);
}

bool late_agent_gate::renew_lease(const std::string& member, const std::string& run_id) {
  const auto gate = now();
  return gate != nullptr && gate->renew_lease(member, run_id);
}

bool late_agent_gate::connected(const std::string& member) const {
  const auto gate = now();
  return gate != nullptr && gate->connected(member);
}

}  // namespace busbar::daemon
