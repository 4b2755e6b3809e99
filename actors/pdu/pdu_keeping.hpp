// What is kept of a rack PDU and done with it: its outlets as read, commands with their intents, and what
// depends on an outlet. Pure: no I/O, no clock. outlet_logic judges one outlet; this commits, asks and ends
// operations around all of them. Same shape as valve_keeping.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "actors/core/clock.hpp"
#include "actors/core/command.hpp"
#include "actors/core/operations_report.hpp"
#include "actors/pdu/outlet_logic.hpp"
#include "busbar/journal/event.pb.h"
#include "busbar/journal/state.pb.h"

namespace busbar::pdu {

constexpr std::int64_t rest_interval_ns = 10'000'000'000;
constexpr std::int64_t unread_after_ns =
    25'000'000'000;  // two readings missed: what was read says nothing now

// What would lose power that it needs with this outlet; empty: nothing. As the rack knows it at this moment.
using dependants = std::function<std::vector<std::string>(const std::string& outlet)>;

struct tick {};
struct outlets_read {
  absl::StatusOr<std::vector<devices::outlet_facts>> outlets;
};
struct outlet_answered {  // to an ask
  std::string outlet;
  absl::Status status;
};
struct operation_began {  // accepted: refuse() said OK at this very moment
  core::command what;
  std::string operation_id;
};
using keeping_event = std::variant<tick, outlets_read, outlet_answered, operation_began>;

struct read_bank {};
struct ask_outlet {
  std::string outlet;
  devices::outlet_act act = devices::outlet_act::on;
};
using keeping_effect = std::variant<read_bank, ask_outlet, core::component_update, core::operation_end>;

struct keeper {
  journal::Pdu record;
  std::map<std::string, outlet_record> outlets;  // by id
  std::map<std::uint64_t, std::string> tickets;  // of orders under way: operation
  std::uint64_t next_ticket = 1;
  std::int64_t began_ns = 0;
  std::int64_t read_at_ns = INT64_MIN / 2;  // of the last good reading
  std::int64_t next_read_ns = INT64_MIN;
  std::string trouble;  // of the last reading
};

struct keeping_step {
  bool durable = false;
  std::vector<journal::Event> events;
  std::vector<journal::Intent> intents_opened;
  std::vector<std::string> intents_closed;
  std::vector<keeping_effect> effects;
  std::int64_t wake_at_ns = INT64_MAX;
};

journal::Pdu declared_pdu(const std::string& rack, const journal::PduSpec& spec, std::string uid);
// The rows of the outlets that the spec declares; what was read of others goes.
void declare_outlets(journal::Pdu& pdu);
keeper begin_keeping(journal::Pdu record, core::instant now);

absl::Status refuse(const keeper& kept, const core::command& what, const dependants& needs);
std::string would_do(const keeper& kept, const core::command& what);

keeping_step step(keeper& kept, const keeping_event& event, core::instant now);

}  // namespace busbar::pdu
