// PDU: the thin shell of pdu_keeping. Owns one rack PDU's state and its driver; commits, then acts. Sends:
// batches to JOURNAL, ends to OPERATIONS, readings to the board. On a refused commit: keeps the batch and
// tries again. Owner: the rack, which ends it.
#pragma once

#include <caf/fwd.hpp>

#include <functional>
#include <memory>

#include "actors/core/journal_interface.hpp"
#include "actors/core/reading_board.hpp"
#include "actors/pdu/pdu_interface.hpp"

namespace busbar::pdu {

struct pdu_dependencies {
  core::journal_actor journal;
  core::operations_actor operations;
  std::shared_ptr<core::reading_board> board;  // null: readings go nowhere
  std::shared_ptr<devices::outlet_bank> bank;  // null: it cannot be asked, for `no_bank`
  std::string no_bank;
  std::function<core::instant()> clock;
  dependants needs;  // any thread; as the journal knows it
};

pdu_actor spawn_pdu(caf::actor_system& system, pdu_dependencies dependencies, journal::Pdu stored);

}  // namespace busbar::pdu
