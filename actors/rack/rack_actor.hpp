// RACK: the thin shell of rack_logic; parent of the members' actors and of DISCOVERY; owner of every command
// on its targets. Commits, then acts. On a refused commit: keeps the batch and tries again. Ends its members
// before itself.
#pragma once

#include <caf/fwd.hpp>

#include <functional>
#include <memory>
#include <string>

#include "actors/core/reading_board.hpp"
#include "actors/core/snapshot_hub.hpp"
#include "actors/devices/outlet_factory.hpp"
#include "actors/node/node_actor.hpp"
#include "actors/plant/plant_port.hpp"
#include "actors/rack/interlock_port.hpp"
#include "actors/rack/rack_interface.hpp"

namespace busbar::rack {

struct rack_dependencies {
  core::journal_actor journal;
  core::operations_actor operations;
  std::shared_ptr<const core::snapshot_hub> hub;  // read once, at the start, for what is stored
  std::shared_ptr<devices::driver_factory> drivers;
  std::shared_ptr<node::secret_source> secrets;
  std::shared_ptr<validation::agent_port> agents;
  std::shared_ptr<interlock_port> interlock;
  node::judge_function judge;
  std::function<core::instant()> clock;
  std::function<void(std::function<void()>)> run_blocking;
  std::function<std::string(const std::string&)> read_file;
  std::function<std::string()> new_uuid;
  std::function<void(const std::string& endpoint)>
      open_agent_gate;   // at once, or in the background; again is no error
  std::shared_ptr<core::reading_board> board;           // null: readings of valves and outlets go nowhere
  std::shared_ptr<devices::outlet_factory> outlets;     // null: no PDU is read or asked
  std::shared_ptr<plant::plant_port> plant;             // null: no demand is ever made
  std::string instance;  // "r01"
  std::string site_dir;
};

rack_actor spawn_rack(caf::actor_system& system, rack_dependencies dependencies);

}  // namespace busbar::rack
