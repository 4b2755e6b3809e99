// One rack's daemon, whole, in one process on a virtual clock: the real actors over the real Redfish driver,
// the simulator's devices behind it, a fake interlock whose detectors follow the simulator's truth, and
// agents that answer from its performance model. crash() is kill -9: every actor and all that was in memory
// is gone, the store, the devices, the interlock and the hosts stay; the next life is wired from what is
// stored. Every step of the simulation is watched (rack_watch.hpp).
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/core/journal_interface.hpp"
#include "actors/core/operations_interface.hpp"
#include "actors/core/snapshot_hub.hpp"
#include "actors/rack/rack_actor.hpp"
#include "daemon/sim/site.hpp"
#include "storage/journal_log.hpp"
#include "storage/store.hpp"
#include "tests/sim/rack_watch.hpp"
#include "tests/support/explorer.hpp"
#include "tests/support/fake_interlock.hpp"
#include "tests/support/site_agents.hpp"
#include "tests/support/site_wire.hpp"

namespace busbar::test_support {

struct world_options {
  bool on_disk = false;        // RocksDB in a temporary folder, closed and opened again at each crash
  bool interlock_sees = true;  // its detectors follow the truth; else they stay as a test sets them
  std::shared_ptr<devices::outlet_factory> outlets;              // of rack PDUs; null: there are none
  std::function<void(journal::RackSpec&)> change_spec;           // another site than the delivered one
  std::function<std::string(const std::string&)> change_leases;  // what is announced, from what was delivered
};

// A rack in production, or not: what a scenario asks at its end.
struct ended_operation {
  std::string id, state, fault;
};

class rack_world {
 public:
  rack_world(simulation& sim, const world_options& options);
  ~rack_world();
  rack_world(const rack_world&) = delete;
  rack_world& operator=(const rack_world&) = delete;

  // ---- what a scenario does ----
  // Hands a command to the daemon, again after a crash that lost the answer, and runs until its operation has
  // ended. Nothing: it has; text: what went wrong (an invariant, no end). A refusal of the command is an end
  // with state REFUSED.
  std::optional<std::string> run(const std::string& verb, const std::string& target,
                                 std::map<std::string, std::string> arguments = {});
  const ended_operation& ended() const { return ended_; }
  std::string who = "test";  // gives the commands
  // Lets so much time pass, with every invariant watched.
  std::optional<std::string> pass(std::chrono::milliseconds time);
  // kill -9 and the next start. Never called from within an actor's or device's turn: from a scenario, or an
  // explorer's fault.
  void crash();
  // kill -9 once so many steps from now have run.
  void crash_at_step(std::uint64_t step);
  // A fault of the simulator's table (daemon/sim/faults.def), from now plus delay; length zero: until
  // cleared.
  void fault(const std::string& kind, const std::string& target, std::chrono::milliseconds delay = {},
             std::chrono::milliseconds length = {}, std::optional<double> severity = {},
             const std::string& value = {});
  void clear_faults();
  // The interlock falls silent: no heartbeat, no answer, and after 3 s it counts as dead; or it is heard
  // again.
  void silence_interlock(bool silent);
  // A trip of the interlock: every host of its scope is forced off, then the shelves, each by the interlock's own account; it
  // closes half a second later. The daemon is not asked.
  void trip(const std::string& scope, interlock::Cause cause, const std::string& detail = "as the test says");
  void close_trips_later();  // the interlock's work goes on over a restart of the daemon
  // The store in memory refuses writes, as a full disk's does.
  void fill_disk(bool full);
  // What only holds once everything has ended: stored state equals acknowledged state, evidence is there, one
  // end a device.
  std::optional<std::string> check_at_rest();

  // ---- what it looks at ----
  std::shared_ptr<const core::snapshot> state() const { return hub_->read(); }
  std::shared_ptr<const journal::Rack> rack() const { return state()->rack("r01"); }
  std::shared_ptr<const journal::Node> node(const std::string& member) const { return state()->node(member); }
  std::string fault_of(const std::string& member) const;
  std::vector<std::shared_ptr<const journal::Event>> events() const;  // all that are stored
  std::string address_of(const std::string& member) const;
  std::string truth(const std::string& path);
  std::uint64_t steps() const { return steps_; }
  std::uint64_t lives() const { return lives_; }
  std::uint64_t revision() const { return state()->position.revision(); }
  // How every member stands, for a failed test.
  std::string describe() const;

  simulation& sim;
  std::unique_ptr<sim::site> site;
  std::unique_ptr<site_wire> wire;
  std::unique_ptr<site_agents> agents;
  std::unique_ptr<rack_watch> watch;
  test::fake_interlock interlock{"r01"};

 private:
  class interlock_door;
  class severable_store;
  struct life;

  void build_site();
  void start();
  void end_life();
  void wire_rack();
  void beat();
  void follow_truth();
  void force_off(const interlock::ArmedDevice& device);
  void gates_moved();
  void arm_site();
  std::optional<std::string> look();
  std::optional<std::string> run_until(const std::function<bool()>& done);
  sim::instant now() const { return wire->now(); }
  bool gate_is_open(const std::string& member) const;

  const world_options options_;
  journal::RackSpec spec_;
  std::unique_ptr<struct disk> disk_;
  std::shared_ptr<life> life_;
  std::shared_ptr<storage::journal_log> log_;
  std::shared_ptr<core::snapshot_hub> hub_;
  core::journal_actor journal_;
  core::operations_actor operations_;
  rack::rack_actor rack_;
  bool silent_ = false;
  std::map<std::string, bool> gates_;  // as the interlock last said
  std::uint64_t lives_ = 0;
  std::uint64_t steps_ = 0;
  std::uint64_t next_request_ = 1;
  std::map<std::uint64_t, std::vector<std::string>> closing_;  // trips under way: what they took off
  std::uint64_t site_timer_ = 0;
  std::optional<sim::instant> site_due_;
  deterministic_system::time_point looked_at_{};
  ended_operation ended_;
};

}  // namespace busbar::test_support
