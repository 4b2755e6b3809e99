// DISCOVERY: looks at the announcement sources every two seconds and tells RACK what it sees. Owns nothing; a
// lost scan is a later scan. File reads run on a worker.
#pragma once

#include <caf/fwd.hpp>
#include <caf/replies_to.hpp>
#include <caf/typed_actor.hpp>

#include <functional>
#include <memory>
#include <string>

#include "actors/core/messages.hpp"
#include "actors/discovery/discovery_logic.hpp"
#include "actors/rack/rack_interface.hpp"

namespace busbar::discovery {

using spec_ptr = std::shared_ptr<const journal::RackSpec>;
using announcements_ptr = std::shared_ptr<const std::vector<announcement>>;

using discovery_actor = caf::typed_actor<
    // What to look for from now on; looks at once.
    caf::reacts_to<spec_ptr>,
    // INTERNAL: time to look; what a look gave.
    caf::reacts_to<core::scan_atom>, caf::reacts_to<announcements_ptr>>;

struct discovery_dependencies {
  rack::rack_actor rack;
  std::function<void(std::function<void()>)> run_blocking;
  // Reads one announcement source: the text of a lease file; empty when there is none.
  std::function<std::string(const std::string& path)> read_file;
  std::string site_dir;
};

discovery_actor spawn_discovery(caf::actor_system& system, discovery_dependencies dependencies);

}  // namespace busbar::discovery
