// What is kept of a valve and done with it: the durable record, the operation under way, the lease, and what
// the surroundings forbid. Pure: no I/O, no clock. valve_logic judges the stem; this commits, asks and ends
// operations around it. Same shape as node_logic: commit, then effects, results come back as events.
//
// Nothing leaves for the valve before its intent is durable. A crash between the two is healed by reading:
// what moves, or is there, is not asked again; what stands still is asked once more.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "actors/core/clock.hpp"
#include "actors/core/command.hpp"
#include "actors/core/operations_report.hpp"
#include "actors/devices/valve_port.hpp"
#include "actors/valve/valve_logic.hpp"
#include "busbar/journal/event.pb.h"
#include "busbar/journal/state.pb.h"

namespace busbar::valve {

constexpr core::duration default_lease = std::chrono::minutes(10);
constexpr core::duration poll_at_rest = std::chrono::seconds(1);
constexpr core::duration poll_moving = std::chrono::milliseconds(250);

// What else is true of the rack at this moment.
struct surroundings {
  std::vector<std::string> hosts;  // not read off: on, unknown, or told to turn on
  std::string trip;                // the rack's open trip, in words; empty: none
  std::string no_opening;          // a trip or latch anywhere in the rack; empty: none
};

struct port_read {
  absl::StatusOr<devices::valve_facts> facts;
};
struct port_wrote {  // the answer to a write
  std::string id;
  absl::Status status;
};
struct operation_began {  // accepted: refuse() said OK at this very moment
  core::command what;
  std::string operation_id;
};
struct operation_cancelled {
  std::string operation_id;
};
struct loop_wants {  // set-point of a control loop: volatile, never a journal entry by itself
  double percent = 0;
};
// Through the whole rack, as its CDU reads it: where the valve has no meter of its own.
struct rack_flow {
  std::optional<double> lpm;
  std::optional<double> dp_kpa;
};
using keeping_event =
    std::variant<tick, port_read, port_wrote, operation_began, operation_cancelled, loop_wants, rack_flow>;

struct send_write {
  double percent = 0;
  std::string id;
};
using keeping_effect = std::variant<send_write, core::component_update, core::operation_end>;

struct keeper {
  journal::Valve record;
  valve_spec spec;
  valve_state logic;
  std::string trip_seen;
  bool may_repeat = false;              // a restart or a lost answer leaves open whether the valve was asked
  std::optional<double> seen_before;    // position of the reading before, while that is open
  std::int64_t loop_at_ns = INT64_MIN;  // when a loop last spoke
  valve::rack_flow rack_flow;
  std::int64_t rack_flow_at_ns = INT64_MIN / 2;
};

struct keeping_step {
  bool durable = false;
  std::vector<journal::Event> events;
  std::vector<journal::Intent> intents_opened;
  std::vector<std::string> intents_closed;
  std::vector<keeping_effect> effects;
};

valve_spec spec_of(const std::string& name, const journal::ValveSpec& spec);
// A valve as declared, never commanded.
journal::Valve declared_valve(const std::string& rack, const journal::ValveSpec& spec, std::string uid);
// From what is stored, at the start of a life.
keeper begin_keeping(journal::Valve record, core::instant now);

// OK, or why the command is refused: limits, lease, authority, hosts that need the liquid, an open trip.
absl::Status refuse(const keeper& kept, const core::command& what, const surroundings& around,
                    core::instant now);
// What --dry-run says: what would be touched.
std::string would_do(const keeper& kept, const core::command& what, const surroundings& around);

keeping_step step(keeper& kept, const keeping_event& event, const surroundings& around, core::instant now);

// No host of the rack may be on while this holds: the valve is closed, being closed, or below its floor.
bool shuts_off(const journal::Valve& valve);

}  // namespace busbar::valve
