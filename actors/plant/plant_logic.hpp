// One CDU as its plant keeps it: who commands it, which set-points it shall have, whether it is READ to have
// them, what its racks ask for. Same shape as node_logic: step(state, event, now) changes the state; what is
// durable is committed first, then the effects run, and what comes of them comes back as events. No I/O, no
// clock.
//
// Set-points by default: the CDU's own controller holds them, also when this daemon is gone. Everything that
// others ask for is a lease: an operator's override lapses into the automatic set-points, a rack's demand
// into its rated flow.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "actors/core/clock.hpp"
#include "actors/core/operations_report.hpp"
#include "actors/devices/cdu.hpp"
#include "actors/plant/demand_pressure_logic.hpp"
#include "actors/plant/dew_point_logic.hpp"
#include "actors/plant/supervisor_logic.hpp"
#include "busbar/journal/plant.pb.h"

namespace busbar::plant {

constexpr std::int64_t ns_per_s = 1'000'000'000;
// A reading older than this says nothing any more (read once a second).
constexpr std::int64_t cdu_stale_ns = 5 * ns_per_s;
// How long a CDU may take until it is read to hold a set-point.
constexpr std::int64_t proof_time_ns = 10 * ns_per_s;
// After a set-point that was not taken, until it is tried again.
constexpr std::int64_t retry_pause_ns = 30 * ns_per_s;
constexpr std::int64_t usual_override_ns = 600 * ns_per_s;
constexpr std::int64_t longest_override_ns = 7'200 * ns_per_s;
constexpr std::int64_t usual_demand_ns = 10 * ns_per_s;
constexpr std::int64_t longest_demand_ns = 60 * ns_per_s;

// ---- effects
struct write_set_point {  // its intent is durable by now
  devices::cdu_value what;
  double value;
};
using plant_effect = std::variant<write_set_point, core::component_update, core::operation_end>;

// ---- events
struct plant_wake {};
struct cdu_read {
  absl::StatusOr<devices::cdu_facts> facts;
};
struct write_answered {
  devices::cdu_value what;
  double value;
  absl::Status status;
};
struct demand_heard {
  std::string rack;
  std::optional<double> flow_lpm, heat_kw, valve_percent;
  bool short_of_flow = false;
  std::int64_t lease_ns = usual_demand_ns;
};
// An operator's; refuse_override() has let it through.
struct override_wanted {
  std::string operation_id;
  std::string holder;
  std::string reason;
  std::optional<double> supply_c, dp_kpa;
  std::int64_t lease_ns = usual_override_ns;
};
struct override_released {
  std::string operation_id;
};
struct operation_cancelled {
  std::string operation_id;
};
using cdu_event = std::variant<plant_wake, cdu_read, write_answered, demand_heard, override_wanted,
                               override_released, operation_cancelled>;

// ---- state
struct rack_need {  // as last heard
  std::optional<double> flow_lpm, heat_kw, valve_percent;
  bool short_of_flow = false;
  std::int64_t heard_ns = 0;
  std::int64_t until_ns = 0;
};

struct set_point_run {
  std::optional<double> target;  // where the automatic set-point has moved to
  std::int64_t prove_by_ns = core::never_ns;
  std::int64_t next_write_ns = INT64_MIN;
};

struct cdu_run {
  std::optional<devices::cdu_facts> facts;  // last good read
  std::int64_t read_at_ns = 0;
  std::int64_t began_ns = core::never_ns;  // of this life
  std::string last_error;
  bool adopted = false;  // the set-points were read once in this life
  std::map<std::string, rack_need> needs;
  std::int64_t demands_written_ns = INT64_MIN;
  std::int64_t lease_until_ns = core::never_ns;
  set_point_run supply, dp;
  std::optional<std::int64_t> stepped_ns;  // the automatic set-points
  dew_point_state dew;
  dew_point_outputs floor;
  supervisor_state supervisor;
  demand_pressure_state pressure;
  std::optional<std::int64_t> warm_since_ns, starved_since_ns;
  std::string short_why;  // why the CDU cannot give what is asked; empty: it can, or it is not known
};

struct cdu_state {
  journal::Cdu cdu;
  cdu_run run;
};

struct cdu_step {
  bool durable = false;
  std::vector<journal::Event> events;
  std::vector<journal::Intent> intents_opened;
  std::vector<std::string> intents_closed;
  std::vector<plant_effect> effects;
  std::int64_t wake_at_ns = core::never_ns;
};

cdu_step step(cdu_state& state, const cdu_event& event, core::instant now);

// What is stored becomes the state of this life: leases go on by the time that is left of them.
cdu_state restore(journal::Cdu stored, core::instant now);
// A declaration, new or changed, under what is known of the CDU so far.
journal::Cdu declare(const journal::CduSpec& spec, const journal::Cdu* known, const std::string& uid);

// Why this override is not taken: LEASE_HELD, SETPOINT_LIMIT with the limit, or that nobody may command it.
absl::Status refuse_override(const cdu_state& state, const override_wanted& wanted);
absl::Status refuse_release(const cdu_state& state, const std::string& holder);

// What is known of the CDU is no older than cdu_stale_ns.
bool is_fresh(const cdu_run& run, core::instant now);
// What a fed rack counts with: its demand while it lives, else its rated flow.
double counted_flow_lpm(const cdu_state& state, const journal::FedRack& rack, core::instant now);

}  // namespace busbar::plant
