// The one place where a node's call becomes a driver's call: passwords are fetched here and nowhere earlier,
// images are checked on a worker, the boot token is made here. CAF-free.
#pragma once

#include <absl/status/status.h>

#include <functional>
#include <memory>
#include <string>

#include "actors/devices/bmc.hpp"
#include "actors/node/node_logic.hpp"
#include "actors/node/secret_source.hpp"
#include "actors/validation/agent_port.hpp"

namespace busbar::node {

struct device_context {
  std::shared_ptr<secret_source> secrets;
  std::shared_ptr<validation::agent_port> agents;
  std::function<void(std::function<void()>)> run_blocking;
  std::string site_dir;
  std::shared_ptr<const journal::RackSpec> spec;
  std::shared_ptr<const journal::Node> node;
  std::string rack_uid;
  std::function<core::instant()> clock;  // asked on the driver's thread
};

using call_answer = std::function<void(absl::Status, call_facts)>;

// Answers exactly once, on whatever thread the driver or worker uses.
void start_device_call(const std::shared_ptr<devices::bmc>& driver, device_context context,
                       const call& wanted, call_answer reply);

// The wire form of one suite test.
agent::Run make_run(const std::string& run_id, const journal::SuiteTest& test);

}  // namespace busbar::node
