// One valve: who may move it, what it was told, and whether it did it. step(state, event, now) -> {state,
// effects}; no I/O, no clock.
//
// A command is proven by what is READ: the position, and where there is a flow reading, the flow. It is
// unproven while the answer is unknown, failed when the stroke's time is over and the answer contradicts.
// Every override is a lease: it lapses into `automatic` (the loops) or, when the loops are gone too, into the
// configured fail position.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace busbar::valve {

using instant = std::chrono::nanoseconds;  // of the monotonic clock, handed in by the caller

enum class authority { busbar, bms, device };
enum class fail_position { in_place, open, closed };
enum class valve_kind { control, isolation };

struct valve_spec {
  std::string name;  // r01/supply
  valve_kind kind = valve_kind::control;
  authority commanded_by = authority::busbar;
  fail_position on_loss = fail_position::in_place;
  double least = 0.0;  // limits of a set-point, 0..1
  double most = 1.0;
  instant stroke = std::chrono::seconds{15};
  double tolerance = 0.02;  // command against position, after the stroke
  double moved = 0.005;     // position change that is motion
  double closed_flow_share =
      0.02;  // of rated flow that a closed valve may leak before it is called a contradiction
  double rated_lpm = 120.0;
  double stuck_step = 0.05;  // no flow change for a step of at least this: stuck, whatever the position says
  double stuck_flow_share = 0.02;              // of rated flow, what counts as a change
  double drift = 0.03;                         // position away from a proven command without a new one
  instant read_age = std::chrono::seconds{3};  // three polls
  instant lost_after = std::chrono::milliseconds{1500};  // no answer: communication is lost
  instant most_lease = std::chrono::minutes{120};
};

enum class proof { none, moving, proven, unproven, failed };
enum class condition { unknown, sound, sticking, stuck, drifting, contradicted };
enum class valve_mode { automatic, manual, fail_safe };
std::string_view name_of(proof what);
std::string_view name_of(condition what);
std::string_view name_of(valve_mode what);
std::string_view name_of(authority who);

// ---- events
struct set_position {  // from a loop (holder empty) or under a lease
  std::string holder;
  double opening = 0.0;
  std::string id;  // idempotent
};
struct take_lease {  // an operator's or the BMS's override
  std::string holder;
  std::string reason;
  instant length{};
};
struct renew_lease {
  std::string holder;
  instant length{};
};
struct release_lease {
  std::string holder;
};
struct reading {
  std::optional<double> position;  // nothing: the device gave none
  std::optional<double> flow_lpm;
  std::optional<double> dp_kpa;
};
struct bms_answer {  // its status point
  bool granted = false;
};
struct tick {};
using event = std::variant<set_position, take_lease, renew_lease, release_lease, reading, bms_answer, tick>;

// ---- effects
struct write_position {  // to the device, after the intent is durable
  double opening;
  std::string id;
};
struct write_set_point {  // to a device with its own controller
  double opening;
  std::string id;
};
struct ask_bms {
  double opening;
  std::string id;
};
enum class refusal_kind { limit, held, no_lease, not_ours, malformed };
struct refusal {
  refusal_kind kind;
  std::string text;  // what was tried, on what, why not, what to do next
};
struct changed {  // for the journal: proof, condition or mode moved
  proof now_proof;
  condition now_condition;
  valve_mode now_mode;
  std::string text;
};
using effect = std::variant<write_position, write_set_point, ask_bms, refusal, changed>;

struct lease {
  std::string holder;
  std::string reason;
  instant until{};
};

struct command {
  double opening = 0.0;
  std::string id;
  instant at{};
  std::optional<double> from_position;
  std::optional<double> from_flow;
  std::optional<double> from_dp;
};

struct valve_state {
  std::optional<lease> held;
  std::optional<command> given;
  proof proven = proof::none;
  condition seen = condition::unknown;
  valve_mode mode = valve_mode::automatic;
  std::optional<reading> last;
  instant read_at{};   // of the last reading with a position
  instant heard_at{};  // of the last reading of any kind
  bool heard = false;
  std::optional<instant> moved_at;
  std::optional<double> moved_from;
  int late_starts = 0;    // reversals that began only after half a stroke: stiction
  bool reversal = false;  // the command under way turned the valve's direction
  int direction = 0;
  bool bms_pending = false;
};

struct valve_step {
  valve_state state;
  std::vector<effect> effects;
};

valve_step step(const valve_spec& spec, valve_state state, const event& what, instant now);

// For `--dry-run` and for the loops: may this holder move the valve now? The text is the refusal's.
std::optional<refusal> may_move(const valve_spec& spec, const valve_state& state, std::string_view holder,
                                double opening, instant now);

}  // namespace busbar::valve
