// The agents of a simulated site without a wire: one a running compute tray, born with the token of its boot,
// answering tests from the site's performance model on a virtual clock. It outlives a daemon; `door()` is one
// daemon's agent_port to it, and closing the door is that daemon's end. Counts what was truly delivered, so
// that a verdict can be held against it. Knows no CAF. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>

#include "actors/validation/agent_port.hpp"
#include "daemon/sim/site.hpp"
#include "tests/support/virtual_scheduler.hpp"

namespace busbar::test_support {

class site_agents {
 public:
  site_agents(virtual_scheduler& clock, sim::site& site) : clock_(clock), site_(site) {}

  // Hooks of the site.
  void host_booted(const std::string& member, const std::string& boot_uri);
  void host_off(const std::string& member);

  // A new daemon listens; agents that run come back to it. The port dies with the next call, or with
  // close_door().
  std::shared_ptr<validation::agent_port> door(validation::agent_sink sink);
  // Tests in progress end with the daemon's connection.
  void close_door();
  // After the clock's queue was cleared: boots whose agents are on their way begin again.
  void resume();

  // The next time this test runs on this tray it gives one row fewer, or one that is not a number.
  void drop_one_row(const std::string& member, const std::string& test) { drop_[member] = test; }
  void spoil_one_row(const std::string& member, const std::string& test) { spoil_[member] = test; }
  // The agent's process dies now; the host stays on.
  void kill(const std::string& member);

  // Rows of a run that were delivered, each finite and vouched for.
  std::size_t rows_of(const std::string& run_id) const;
  bool connected(const std::string& member) const;

 private:
  class port;
  struct host {
    bool running = false;
    bool born = false;  // has come with a token that was good
    bool connected = false;
    std::string boot_id;
    std::string token;      // of this boot
    std::uint64_t run = 0;  // of the test in progress; 0: none
  };
  struct issued {
    std::string token;
    std::string expected_serial;
  };

  void come(const std::string& member);
  void begin(const std::string& member, const agent::Run& run);
  void finish(const std::string& member, std::uint64_t number, const agent::Run& run);
  agent::Measurement row(const std::string& member, const agent::Run& run, int gpu,
                         const std::string& metric);
  void tell(validation::agent_event event);
  sim::instant now() const {
    return std::chrono::duration_cast<sim::instant>(clock_.now().time_since_epoch());
  }

  virtual_scheduler& clock_;
  sim::site& site_;
  validation::agent_sink sink_;
  std::uint64_t generation_ = 0;  // of the door
  std::uint64_t next_ = 1;
  std::map<std::string, host> hosts_;
  std::map<std::string, issued> tokens_;
  std::map<std::string, std::string> drop_, spoil_;
  std::map<std::string, std::set<std::tuple<std::string, std::string, int, std::string>>> rows_;
};

}  // namespace busbar::test_support
