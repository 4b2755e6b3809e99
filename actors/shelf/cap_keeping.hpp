// A rack's power limit as it is kept: what is seen of shelves and trays each second, an operator's own limits
// under leases, and what the GPUs are told. Pure: no I/O, no clock. power_cap_logic decides the bands; here
// one entry of it is the GPUs of one tray together, since a tray's limit is written for all of its GPUs at
// once.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "actors/core/clock.hpp"
#include "actors/core/command.hpp"
#include "actors/core/operations_report.hpp"
#include "actors/shelf/power_cap_logic.hpp"
#include "busbar/journal/event.pb.h"
#include "busbar/journal/spec.pb.h"

namespace busbar::core {
class reading_board;
struct snapshot;
}  // namespace busbar::core

namespace busbar::shelf {

struct tray_sight {
  std::string name;                // "r01/c07"
  std::optional<double> limit_w;   // of its GPUs the highest, as read; none: not known
  std::int64_t limit_wall_ns = 0;  // when that was read
  std::optional<double> gpus_w;    // all of them together; none: not all known
};
struct shelf_sight {
  std::string name;
  bool on = false;                 // as its member was last read
  std::optional<double> output_w;  // none: not read, or too old
};
struct cap_sight {
  std::vector<tray_sight> trays;     // whose hosts are not read off
  std::vector<shelf_sight> shelves;  // all declared
};

// What the manifest and the SKU say of it.
struct cap_setting {
  std::string rack;
  double rack_limit_w = 0;
  double gpu_min_w = 0, gpu_max_w = 0;  // both 0: Busbar sets no caps
  double shelf_w = 0;
  int gpus_per_tray = 0;
  double others_w = 0;                  // where nothing is measured
  std::map<std::string, int> priority;  // by tray; absent: 0

  bool may_cap() const { return gpu_max_w > 0 && gpus_per_tray > 0 && rack_limit_w > 0; }
};
cap_setting setting_of(const journal::RackSpec& spec);

// An operator's limit of what each GPU of a tray, or of all trays, may draw.
struct operator_cap {
  double gpu_w = 0;
  std::string holder, reason;
  std::int64_t until_wall_ns = INT64_MAX;  // of no end: until it is released
  std::string operation;                   // waits for its read-back; empty: it ended
  std::int64_t deadline_ns = INT64_MAX;
};

// ---- events
struct sight_taken {
  cap_sight seen;
};
struct cap_commanded {  // accepted: refuse() said OK at this very moment
  core::command what;
  std::string operation_id;
};
using caps_event = std::variant<sight_taken, cap_commanded>;

// ---- effects
struct limit_tray {
  std::string tray;
  double gpu_w = 0;
};
struct condition_judged {
  std::string type;  // a fault's name
  bool holds = false;
  std::string message;
};
using caps_effect = std::variant<limit_tray, condition_judged, core::component_update, core::operation_end>;

struct caps_step {
  bool durable = false;  // the operator's limits changed
  std::vector<journal::Event> events;
  std::vector<caps_effect> effects;
};

struct caps_keeper {
  cap_setting setting;
  cap_state state;
  std::map<std::string, operator_cap> asked;         // by target: the rack or a tray
  std::map<std::string, bool> ever_read;             // shelves
  std::map<std::string, std::int64_t> unread_ns;     // shelves: since when
  std::map<std::string, std::int64_t> told_wall_ns;  // trays: when the last limit left
  std::map<std::string, std::string> shown;          // conditions as last told
};

caps_keeper begin_caps_keeping(cap_setting setting, const std::string& stored, core::instant now);
// The operator's limits as they are kept beside the state.
std::string stored_form(const caps_keeper& kept);

absl::Status refuse(const caps_keeper& kept, const core::command& what, core::instant now);
std::string would_do(const caps_keeper& kept, const core::command& what);

// What is on the board and in the state, as the caps see it (cap_sight.cpp).
cap_sight sight_of(const cap_setting& setting, const core::snapshot& state, const core::reading_board& board);

caps_step step(caps_keeper& kept, const caps_event& event, core::instant now);

}  // namespace busbar::shelf
