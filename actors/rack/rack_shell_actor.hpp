// The state of the rack's shell, shared by its three files: rack_actor.cpp (commit, then act),
// rack_commands_actor.cpp (what is asked of the rack), rack_suite_actor.cpp (agents, fabric and suite runs,
// the interlock's record).
#pragma once

#include <caf/actor_cast.hpp>
#include <caf/exit_reason.hpp>
#include <caf/send.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "actors/discovery/discovery_actor.hpp"
#include "actors/pdu/pdu_actor.hpp"
#include "actors/rack/rack_actor.hpp"
#include "actors/rack/rack_members.hpp"
#include "actors/shelf/cap_actor.hpp"
#include "actors/valve/valve_actor.hpp"

namespace busbar::rack {

using rack_self = rack_actor::stateful_pointer<struct rack_shell>;
using result_promise = caf::typed_response_promise<core::command_result_ptr>;

// One rack's shell. Owner: the rack actor, on its turns only.
constexpr std::uint64_t judge_again = UINT64_MAX;  // in place of a timer's generation

struct trust_look {  // a trust that waits for what the BMC shows
  core::command_ptr what;
  std::string operation;
  result_promise promise;
};

// Valves and PDUs of the rack, and the drivers that its members made: rack_equipment_actor.cpp.
struct rack_equipment {
  std::map<std::string, valve::valve_actor> valves;
  std::map<std::string, pdu::pdu_actor> pdus;
  shelf::cap_actor caps;
  std::map<std::string, std::uint64_t> generations;              // of what the two were started with
  std::map<std::string, std::shared_ptr<devices::bmc>> drivers;  // by member, as its node bound it last
};

struct rack_shell {
  static inline const char* name = "rack";

  rack_dependencies with;
  rack_state logic;
  std::deque<rack_event_ptr> inbox;
  bool committing = false;
  std::optional<judge_rack_suite> unjudged;  // whose evidence the journal did not take yet
  core::batch_ptr refused;
  std::vector<effect> effects_after;
  std::uint64_t timer = 1;
  std::int64_t timer_at_ns = core::never_ns;
  std::map<std::string, node::node_actor> nodes;
  discovery::discovery_actor scanner;
  std::shared_ptr<devices::cooling_source> cooling;
  bool cooling_asked = false;
  std::map<std::string, std::string> endpoints;  // name -> serialised, as last committed
  std::map<std::string, std::vector<agent::Measurement>> measured;
  std::string leased_run;
  bool first_arming = false;
  arming_queue arming;
  std::uint64_t arming_generation = 0;
  std::map<std::string, std::string> sent_shape;  // of the record under way
  std::map<std::uint64_t, trust_look> looks;
  std::uint64_t last_look = 0;
  rack_equipment kit;

  void take(rack_self self, rack_event event);
  void pump(rack_self self);
  void commit(rack_self self, core::batch_ptr batch);
  void committed(rack_self self);
  void run(rack_self self, const effect& wanted);
  void run_effects(rack_self self, std::vector<effect> wanted);
  void set_timer(rack_self self, std::int64_t at_ns);
  void start_members(rack_self self);
  void stop_members(rack_self self);
  void bind_spec(rack_self self);
  void start_rack_test(rack_self self, const run_rack_test& wanted);
  void judge(rack_self self, const judge_rack_suite& wanted);
  void arm(rack_self self, const std::string& joining);
  void send_record(rack_self self);
  void record_answered(rack_self self, const absl::Status& status);
  void tell_armed(rack_self self, const std::string& tray, absl::Status status);
  void hear_agent(rack_self self, const validation::agent_event& event);
  void see(rack_self self, const discovery::sightings& seen);
  void poll_cooling(rack_self self);
  void renew_demand(rack_self self);
  void tick(rack_self self, std::uint64_t generation);
  void apply_manifest(rack_self self, const core::command& what, const std::string& operation,
                      result_promise promise);
  void end_at_once(rack_self self, const std::string& operation, const std::string& target,
                   const std::string& message);
  caf::result<core::command_result_ptr> submit(rack_self self, const core::command_ptr& what,
                                               const std::string& operation);
  void look_for_trust(rack_self self, const core::command_ptr& what, const std::string& operation,
                      result_promise promise);
  void trust_or_refuse(rack_self self, const certificate_shown& shown);
  void resume(rack_self self, const journal::Operation& operation);
  void cancel(rack_self self, const std::string& operation);
  void start_equipment(rack_self self);
  void stop_equipment(rack_self self, const core::snapshot& state);
  void start_caps(rack_self self);
  void bind_valve(rack_self self, const std::string& name, const journal::ValveSpec& spec);
  absl::StatusOr<std::shared_ptr<devices::outlet_bank>> make_bank(const journal::PduSpec& spec);
  void hear_equipment(rack_self self, const equipment_news& news);
  void tell_flow(rack_self self, const devices::cooling_facts& facts);
  caf::result<core::command_result_ptr> submit_equipment(rack_self self, const core::command_ptr& what,
                                                         const std::string& operation);
  bool resume_equipment(rack_self self, const core::operation_ptr& operation);
  void cancel_equipment(rack_self self, const std::string& operation);
  node::node_actor* member(const std::string& wanted) {
    const auto found = nodes.find(wanted);
    return found == nodes.end() ? nullptr : &found->second;
  }
};

// Ends the child when the rack ends, in whatever way: a child with a timer of its own keeps itself alive.
template <class Child>
void end_with(rack_self self, const Child& child) {
  self->attach_functor([who = caf::actor_cast<caf::weak_actor_ptr>(child)](const caf::error&) {
    if (const caf::strong_actor_ptr there = who.lock()) caf::anon_send_exit(there, caf::exit_reason::user_shutdown);
  });
}

}  // namespace busbar::rack
