// The agents of a simulated site, as `busbar-sim run` sees them. The implementation that speaks the agent's
// protocol stands in agent_face*.cpp (library sim_agent_face) and defines make_agent_face; without it a run
// has hosts whose agents never report.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "daemon/sim/site.hpp"

namespace busbar::sim {

class agent_face {
 public:
  virtual ~agent_face() = default;
  // On the model loop's thread; return at once. boot_uri carries the token of a UefiHttp boot; empty: a local
  // boot.
  virtual void host_booted(const std::string& member, const std::string& boot_uri) = 0;
  virtual void host_off(const std::string& member) = 0;
  virtual void stop() = 0;  // joins what it started; not on the model loop's thread
};

// What an agent needs of the site. Thread-safe: each call runs on the model loop and waits for it, so none of
// these may be called on the model loop's own thread (host_booted, host_off).
struct agent_services {
  std::function<performance(const std::string& member, int gpu, const std::string& probe,
                            const std::string& metric)>
      measure;
  std::function<void(const std::string& member, double load)> set_load;  // 0 idle .. 1 burning
  std::function<std::string(const std::string& member)> dmi_serial;
  std::function<std::vector<std::string>(const std::string& member)> gpu_serials;
  std::function<bool(const std::string& member)> silent;         // fault agent_silent
  std::function<std::string(const std::string& rack)> endpoint;  // host:port of the rack's agent gate
  std::string sku;                                               // whose limits results are judged by
  std::string state_dir;                                         // for identities that outlive the process
  int gpus = 0;                                                  // a tray
  std::uint64_t seed = 0;
};

std::unique_ptr<agent_face> make_agent_face(agent_services services);

}  // namespace busbar::sim
