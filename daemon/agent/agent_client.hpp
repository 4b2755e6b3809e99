// The agent without its main: born from a token, connected with its certificate, running what the rack daemon
// orders on its engines. busbar-agent holds one; the simulator holds one a simulated host, many on one loop.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/agent/engine.hpp"
#include "daemon/agent/event_loop.hpp"

namespace busbar::agent_client {

struct agent_options {
  std::string endpoint;  // host:port of the agent gate
  std::string token;     // of this boot
  std::string boot_id;
  std::string dmi_serial;
  std::vector<std::string> gpu_serials;
  std::string limits;  // whose limits the results are judged by: a SKU's name, or "reference"
  std::string software_version;
  std::filesystem::path identity_file;  // empty: in memory
  std::chrono::milliseconds first_wait = std::chrono::milliseconds(200);
  std::chrono::milliseconds longest_wait = std::chrono::seconds(15);
  std::uint64_t seed = 0;  // of the jitter
};

enum class agent_phase { waiting, enrolling, connecting, connected, refused, stopped };
std::string_view to_text(agent_phase phase);

class agent_client {
 public:
  // `observer` (may be empty) is called on the loop at each change of phase, with what is known about why.
  using observer = std::function<void(agent_phase, const std::string& why)>;

  // The loop must outlive the agent.
  agent_client(event_loop& loop, agent_options options, std::vector<std::shared_ptr<engine>> engines,
               observer watch);
  ~agent_client();  // cuts, if not stopped before
  agent_client(const agent_client&) = delete;
  agent_client& operator=(const agent_client&) = delete;

  void start();
  // Begins to end: the run in progress is cancelled and, with a reason, the gate is told; without one the
  // stream is cut as by a host that loses power. Returns at once.
  void begin_stop(const std::string& bye_reason);
  // begin_stop and wait until nothing of the agent is left on the loop, in gRPC or in an engine. Not from the
  // loop.
  void stop(const std::string& bye_reason);

 private:
  class session;
  std::shared_ptr<session> session_;
  event_loop& loop_;
};

}  // namespace busbar::agent_client
