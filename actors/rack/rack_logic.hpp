// One rack, from planned to production: the decisions, without I/O, threads or a clock. Same shape as
// node_logic: commit, then effects, results come back as events.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "actors/core/clock.hpp"
#include "actors/core/operations_report.hpp"
#include "actors/node/node_logic.hpp"
#include "actors/plant/demand_logic.hpp"
#include "actors/rack/rack_rules.hpp"

namespace busbar::rack {

// ---- effects
// -------------------------------------------------------------------------------------------------------------------

struct tell_member {
  std::string member;
  node::rack_view view;
};
struct answer_permit {
  std::string member;
  node::permit_answer answer;
};
struct ask_nvlink {
  std::string member;
};
struct tell_latch {
  std::string member;
  bool latched = false;
  std::string detail;
  std::string detector;
};
struct look_power {  // read anew what is shown as on
  std::string member;
  std::string tripped;  // what the interlock did to it; empty = nothing
};
struct tell_trip {  // an open trip holds it down
  std::string member;
  std::uint64_t number = 0;
  std::string text;
  bool cuts_shelves = false;
};
struct tell_read_off {  // the interlock has read it off
  std::string member;
  std::string text;
};
struct tell_sight {
  std::string member;
  std::string lost;  // why its detectors are not watched; empty = they are
};
struct read_latches {
  std::uint64_t after = 0;
};
struct arm_anew {};  // the interlock lost or exchanged its record
struct announce_blind {
  std::string member;
  bool begins = true;
};
struct run_rack_test {
  std::string member;
  std::string run_id;
  journal::SuiteTest test;
  std::uint32_t rank = 0, size = 0;
};
struct judge_rack_suite {
  std::string run_id;
  std::vector<std::string> members;
};
using effect =
    std::variant<arm_anew, tell_member, answer_permit, ask_nvlink, announce_blind, tell_latch, tell_trip,
                 tell_read_off, read_latches, look_power, tell_sight, run_rack_test, judge_rack_suite, core::component_update,
                 core::operation_end>;

// ---- events
// ----------------------------------------------------------------------------------------------------------------------

struct wake {};
struct member_changed {
  std::shared_ptr<const journal::Node> node;
};
struct cooling_read {
  absl::StatusOr<devices::cooling_facts> facts;
};
struct interlock_heard {
  std::shared_ptr<const interlock_view> view;
};
struct latches_read {
  std::vector<interlock::Latch> latches;
};
struct record_answered {  // what the interlock said to an arming record
  absl::Status status;
  std::uint64_t generation = 0;
  std::map<std::string, std::string> shape;  // of the record, as record_shape() made it
};
struct plant_heard {  // what came of a demand
  absl::StatusOr<plant::plant_view> view;
};
struct trust_cdu {  // an operator's word for another certificate of the CDU
  std::string pin;
  std::string reason;
};
struct permit_wanted {
  std::string member;
  node::permit_kind kind;
};
struct permit_released {
  std::string member;
};
struct nvlink_read {
  std::string member;
  devices::nvlink_facts facts;
};
struct power_read {  // what a look came to
  std::string member;
  bool known = false;
  journal::PowerState seen = journal::POWER_UNKNOWN;
};
struct power_judged {  // of the rack's power: a condition by the name of its fault
  std::string type;
  bool holds = false;
  std::string message;
};
struct agent_said {
  validation::agent_event event;
};
struct certificate_shown {  // to a look that trusts nothing; asked for a trust
  std::uint64_t look = 0;
  absl::StatusOr<devices::probe_facts> facts;
};
struct suite_judged {
  journal::SuiteResult result;
};
struct begin_bringup {
  std::string operation_id;
};
struct begin_shutdown {
  std::string operation_id;
};
struct cancel_operation {
  std::string operation_id;
};
struct watch_member {
  std::string operation_id, member;
};  // a node_retry or bmc_release: its end is the member's
using rack_event = std::variant<wake, member_changed, cooling_read, interlock_heard, latches_read, record_answered, trust_cdu, plant_heard,
                                permit_wanted, permit_released, nvlink_read, power_read, power_judged, agent_said,
                                certificate_shown, suite_judged, begin_bringup, begin_shutdown, cancel_operation, watch_member>;

// ---- state
// ------------------------------------------------------------------------------------------------------------------------

struct pending_permit {
  node::permit_kind kind;
  std::string told;  // the last refusal, told once
};

struct held_permit {
  node::permit_kind kind;
  std::shared_ptr<node::permit_lease> lease;  // of an act that brings energy
};

struct power_watch {  // of one member
  std::int64_t next_ns = INT64_MIN;  // of the next look; not planned yet
  std::string seen_of_interlock;     // what concerned it in the last heartbeat
  std::optional<std::string> lost;   // what it was last told of its detectors' watch
  std::int64_t lost_since_ns = core::never_ns;
};

// The look at everything before a bring-up says that it succeeded.
struct last_look {
  bool begun = false;
  std::set<std::string> waits;             // members that have not answered
  std::map<std::string, std::string> bad;  // member -> why it is not known to be on
  std::int64_t until_ns = core::never_ns;
};

struct rack_run {
  member_map members;
  cooling_state cooling;
  std::shared_ptr<const interlock_view> interlock;
  bool reading_latches = false;
  std::int64_t began_ns = core::never_ns;  // of this life: what was not heard by then is not heard
  std::map<std::string, power_watch> watched;
  last_look looking;
  std::int64_t arm_again_at_ns = INT64_MIN;  // an older record of the interlock is replaced no sooner
  std::int64_t shape_again_at_ns = INT64_MIN;  // a record that lacks something is completed no sooner
  plant::link_state plant;
  std::map<std::string, std::string> held_record;  // shape of the record that the interlock took last in this life
  std::map<std::string, std::int64_t> unreached_since;  // shelves, controllers, CDU that the interlock does not read
  std::map<std::string, std::uint64_t> trips_told;  // member -> number of the trip that it was told of
  std::int64_t tell_number_at_ns = INT64_MIN;  // an interlock whose latch file is behind is told no sooner
  std::map<std::string, pending_permit> pending;
  std::map<std::string, held_permit> held;
  std::int64_t last_group_ns = INT64_MIN / 2;  // when the present inrush group began
  unsigned group_used = 0;
  std::map<std::string, devices::nvlink_facts> nvlink;
  bool nvlink_asked = false;
  std::int64_t nvlink_again_ns = core::never_ns;
  std::map<std::string, node::rack_view> told;           // what each member was last told
  std::map<std::string, std::string> reported;           // operation rows as last reported
  std::map<std::string, std::string> member_operations;  // node_retry: member -> operation
  std::int64_t deadline_ns = core::never_ns;
  std::size_t test = 0;
  bool test_running = false;
  std::set<std::string> test_waits;  // members whose test_done is missing
  std::int64_t test_deadline_ns = core::never_ns;
  bool judging = false;
  std::map<std::string, std::string> shut_valves;  // that take liquid from the hosts, or are told to: why
};

struct rack_state {
  journal::Rack rack;
  rack_run run;
};

struct step_result {
  bool durable = false;
  std::vector<journal::Event> events;
  std::vector<effect> effects;
  std::int64_t wake_at_ns = core::never_ns;
};

step_result step(rack_state& state, const rack_event& event, core::instant now);

// At the moment a heartbeat comes, also while the rack waits for its journal: permits of members whose gate
// is shut are taken back. step() takes back for every other reason.
void withdraw_where_shut(rack_run& run, const interlock_view& heard);

}  // namespace busbar::rack
