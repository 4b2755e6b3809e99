// The invariants of every scenario, as functions: one eye on the wire of the simulated devices, one on what
// the journal has acknowledged, and the simulator's truth to hold both against. It outlives the daemon's
// crashes. What is broken first stays.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "actors/core/snapshot_hub.hpp"
#include "daemon/sim/environment.hpp"
#include "daemon/sim/site.hpp"
#include "tests/support/site_agents.hpp"

namespace busbar::test_support {

enum class detector_truth { dry, wet, unknown };

class rack_watch {
 public:
  using snapshot_source = std::function<std::shared_ptr<const core::snapshot>()>;
  // Whether the interlock would let this device be turned on.
  using gate_source = std::function<bool(const std::string& member)>;

  rack_watch(sim::site& site, const site_agents& agents, const journal::RackSpec& spec);
  void see_with(snapshot_source acknowledged, gate_source gate_open);

  // From the wire: a request as it leaves the daemon, an answer as it leaves the device, the device's own
  // record of it.
  void on_sent(const std::string& address, const std::string& method, const std::string& path,
               const std::string& body);
  // The rack has dealt with what the interlock says of this member's gate.
  void gate_known(const std::string& member, bool open);
  void nothing_is_known();  // a new life begins
  void on_answer(const std::string& address, const std::string& method, const std::string& path,
                 const std::string& body);
  void on_record(const sim::journal_record& record);
  // From time to time, at `now`: is the coolant's flow in band, in truth?
  void sample(sim::instant now);
  // What is acknowledged now; cheap while nothing changed.
  void on_state(const std::shared_ptr<const core::snapshot>& state);

  // A scenario in which an act is rightly done more often than in a bring-up: "reset ForceRestart".
  void allow(const std::string& act, std::uint64_t times) { allowed_[act] = times; }

  const std::optional<std::string>& broken() const { return broken_; }
  void report(std::string what);

  detector_truth truth_of(const std::string& member, const std::string& detector, sim::instant now) const;
  // How often a device did something: "r01/c01", "account_create".
  std::uint64_t count(const std::string& member, const std::string& act) const;
  std::uint64_t power_ons() const { return power_ons_; }
  // Every step that some member or the rack entered, as "compute_tray declared -> discovered".
  const std::set<std::string>& arrows_taken() const { return arrows_taken_; }
  const std::set<std::string>& waits_seen() const { return waits_seen_; }

 private:
  struct seen_device {
    std::string member;
    sim::device_kind kind{};
    bool off_unread = false;  // told off and its power not read since
    bool read_on = false;     // read On since it was last told anything about its power
    std::map<std::string, detector_truth> last_read;  // what each detector was when the daemon read it last
    std::optional<sim::instant> gate_closed_since;
    bool known_shut = false;
    sim::instant detectors_read{0};
  };

  // On the wire.
  void no_act_before_its_intent_is_durable(const seen_device& at, const std::string& method,
                                           const std::string& path);
  void no_energy_past_a_shut_gate(const seen_device& at, const std::string& act);
  void no_power_beyond_the_limits(const seen_device& at, const sim::journal_record& record);
  void nothing_dangerous_twice(const sim::journal_record& record);
  void one_commander(const sim::journal_record& record);
  void no_power_on_unproven(seen_device& at, const sim::journal_record& record);
  void off_in_reverse_order(const seen_device& at, const sim::journal_record& record);
  // In the state.
  void node_state(const journal::Node& node, const journal::Node* before);
  void step_is_true(const journal::Node& node, journal::NodeStep step);
  void rack_state(const journal::Rack& rack, const journal::Rack* before);
  void suite_is_complete(const journal::SuiteResult& suite, std::size_t members, std::string_view level);
  void operation_state(const journal::Operation& operation, const journal::Operation* before);

  bool fault_on(sim::fault_kind kind, const std::string& member) const;
  bool is_powered(const std::string& member) const;
  seen_device* at(const std::string& address);

  sim::site& site_;
  const sim::environment& physics_;
  const site_agents& agents_;
  const journal::RackSpec& spec_;
  snapshot_source acknowledged_;
  gate_source gate_open_;
  std::map<std::string, seen_device> devices_;  // by address
  std::map<std::string, std::map<std::string, std::uint64_t>> counts_;
  std::shared_ptr<const core::snapshot> last_;
  sim::instant now_{0};
  std::optional<sim::instant> flow_good_since_, flow_bad_since_;
  sim::instant good_before_bad_{0};
  std::map<std::string, std::uint64_t> allowed_;
  std::uint64_t power_ons_ = 0;
  std::vector<sim::instant> inrushes_;  // of trays, in order
  std::set<std::string> arrows_taken_, waits_seen_;
  std::optional<std::string> broken_;
};

// Nothing, or how two states differ.
std::optional<std::string> difference_of(const core::snapshot& left, const core::snapshot& right);

}  // namespace busbar::test_support
