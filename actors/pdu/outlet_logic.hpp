// One outlet of a rack PDU: a command is proven, unproven or failed by what is read. Pure logic, no clock, no
// I/O.
//
// A PDU accepts a command long before the relay moves: the state is waited for until the deadline and the
// command is not repeated (a second toggle would switch back what is on its way). Off is proven only where
// nothing flows any more: an outlet that says off and delivers 3 A is on.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "actors/devices/outlet.hpp"

namespace busbar::pdu {

struct outlet_limits {
  std::int64_t verify_ns = 30'000'000'000;     // PDUs in the field need up to 20 s
  std::int64_t read_every_ns = 1'000'000'000;  // while a command is under way
  std::int64_t rest_ns = 2'000'000'000;        // off, in a cycle
  double dead_current_a = 0.1;                 // meters show noise
};

enum class wish { on, off, cycle };
std::string_view name_of(wish what);

// ---- events
struct commanded {
  wish what = wish::on;
  std::string by;  // principal or owner, for whoever comes second
  std::uint64_t ticket = 0;
};
struct asked {  // the PDU's answer to our request
  absl::Status status;
};
struct read {
  absl::Status status;  // not OK: nothing was read
  devices::outlet_facts facts;
};
struct wake {};
using outlet_event = std::variant<commanded, asked, read, wake>;

// ---- effects
struct ask {
  devices::outlet_act act = devices::outlet_act::on;
};
struct read_now {};
enum class verdict { proven, unproven, failed };
std::string_view name_of(verdict what);
struct resolved {
  std::uint64_t ticket = 0;
  verdict how = verdict::unproven;
  std::string why;
};
struct refused {
  std::uint64_t ticket = 0;
  std::string why;
};
using outlet_effect = std::variant<ask, read_now, resolved, refused>;

struct outlet_record {
  std::string name;  // "r01/pdu1/7"
  outlet_limits limits;
  devices::outlet_facts seen;  // state unknown until read
  std::optional<std::int64_t> seen_at_ns;

  struct order {
    commanded what;
    devices::outlet_act aim = devices::outlet_act::on;
    bool second_half = false;  // the on of a cycle
    bool sent = false;
    std::int64_t deadline_ns = 0;
    std::int64_t next_ns = 0;
    bool resting = false;
    std::string last_trouble;
  };
  std::optional<order> under_way;
};

std::vector<outlet_effect> step(outlet_record& outlet, const outlet_event& event, std::int64_t now_ns);
// INT64_MAX: no wake is wanted.
std::int64_t next_wake_ns(const outlet_record& outlet);

// on, off or unknown, by state and meter together.
devices::outlet_state state_of(const devices::outlet_facts& facts, const outlet_limits& limits);

}  // namespace busbar::pdu
