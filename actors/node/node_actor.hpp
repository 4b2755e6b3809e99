// NODE: the thin shell of node_logic. Owns one member's state and its driver; commits, then acts, then feeds
// results back. Sends: batches to JOURNAL, member_changed and permit requests to RACK. On a refused commit:
// keeps the batch and tries again.
#pragma once

#include <caf/fwd.hpp>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "actors/core/clock.hpp"
#include "actors/core/journal_interface.hpp"
#include "actors/core/reading_board.hpp"
#include "actors/devices/bmc.hpp"
#include "actors/node/node_interface.hpp"
#include "actors/node/secret_source.hpp"
#include "actors/rack/rack_interface.hpp"
#include "actors/validation/agent_port.hpp"

namespace busbar::node {

// Judges a node suite: the result and its evidence (canonical bytes) to be kept in the journal.
struct judged_suite {
  journal::SuiteResult result;
  std::string evidence;
};
using judge_function = std::function<judged_suite(
    const journal::Suite& suite, const std::string& run_id, const std::vector<std::string>& members,
    std::uint32_t gpus_per_member, const std::map<std::string, std::string>& limits_by_member,
    const std::map<std::string, std::vector<agent::Measurement>>& measured)>;

struct node_dependencies {
  core::journal_actor journal;
  rack::rack_actor rack;
  std::shared_ptr<devices::driver_factory> drivers;
  std::shared_ptr<secret_source> secrets;
  std::shared_ptr<validation::agent_port> agents;
  judge_function judge;
  std::function<core::instant()> clock;                     // called on an actor's turn; tests own it
  std::function<void(std::function<void()>)> run_blocking;  // file reads; inline in tests
  std::string site_dir;
  std::shared_ptr<core::reading_board> board = nullptr;  // null: no telemetry. With it `clock` is asked on the I/O thread too
};

node_actor spawn_node(caf::actor_system& system, node_dependencies dependencies, node_state initial);

}  // namespace busbar::node
