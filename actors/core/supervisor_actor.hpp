// Keeps a list of children alive and stops them in order. The thin CAF shell of supervisor_logic.
// Owner: the wiring, or a supervisor above, which holds its handle (an actor that nobody holds is gone). Stop it with an exit
// message; it ends when its children have. An escalation ends it with an error that names the child, so that whoever monitors
// it decides.
#pragma once

#include <caf/actor.hpp>
#include <caf/actor_addr.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/expected.hpp>
#include <caf/stateful_actor.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "actors/core/supervisor_logic.hpp"

namespace busbar::core {

struct child_spec {
  child_plan plan;
  // Runs at each start and gives a fresh actor, detached where it blocks; an error counts as a failure of the child.
  std::function<caf::expected<caf::actor>(caf::event_based_actor* supervisor)> start;
};

struct supervisor_state {
  static inline const char* name = "supervisor";

  std::string label;
  std::vector<child_spec> specs;
  std::unique_ptr<supervisor_logic> logic;
  // By index; null while down. Shared with what kills the children when the supervisor itself is killed.
  std::shared_ptr<std::vector<caf::actor>> running = std::make_shared<std::vector<caf::actor>>();
  std::uint64_t timer = 0;          // generation of the one timer; older ones are ignored

  void carry_out(caf::stateful_actor<supervisor_state>* self, const supervisor_effects& effects);
  void start(caf::stateful_actor<supervisor_state>* self, std::size_t index);
  void end(caf::stateful_actor<supervisor_state>* self, const std::string& failure);
  void went_down(caf::stateful_actor<supervisor_state>* self, const caf::actor_addr& who, const caf::error& why);
  void set_timer(caf::stateful_actor<supervisor_state>* self);
};

caf::behavior supervisor(caf::stateful_actor<supervisor_state>* self, supervisor_plan plan, std::vector<child_spec> children);

}  // namespace busbar::core
