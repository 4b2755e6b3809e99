#include "actors/core/operations_actor.hpp"

#include <fmt/format.h>
#include <caf/actor_cast.hpp>
#include <caf/actor_system.hpp>
#include <caf/exit_reason.hpp>
#include <caf/send.hpp>
#include <caf/stateful_actor.hpp>

#include <map>
#include <utility>
#include <vector>

#include "actors/core/error_bridge.hpp"
#include "actors/core/errors.hpp"
#include "actors/core/log.hpp"

namespace busbar::core {
namespace {

struct operations_state;
using operations_self = operations_actor::stateful_pointer<operations_state>;

// Owner of itself: the actor's turn. Stores through the journal; on failure of the journal, reports wait in
// memory and are written later, commands are refused.
struct operations_state {
  static inline const char* name = "operations";

  operations_actor::pointer self = nullptr;
  operations_dependencies deps;
  std::unique_ptr<operations_logic> logic;
  owner_actor owner;
  caf::actor_addr owner_address;
  std::map<std::string, std::vector<answer_ptr>>
      waiting;  // by operation: who asked for it, while it is being begun
  absl::Status last_write;
  std::uint64_t handled = 0;

  void take(const command_ptr& what, const answer_ptr& answer);
  void create(const command_ptr& what, const operation_decision& decision);
  void submit(const command_ptr& what, const std::string& id);
  void validate(const command_ptr& what, const answer_ptr& answer);
  void conclude(const std::string& id, const absl::StatusOr<command_result>& result);
  void refuse(const std::string& id, const absl::Status& why);
  void write(const std::string& id);
  void bind(const caf::strong_actor_ptr& next);
  void owner_is_down(const caf::down_msg& down);
  void tick();
  void send_cancel(const std::string& id);
  snapshot const& state_now();

  std::shared_ptr<const snapshot> seen;  // of this turn
};

snapshot const& operations_state::state_now() {
  seen = deps.hub->read();
  return *seen;
}

void operations_state::take(const command_ptr& what, const answer_ptr& answer) {
  ++handled;
  if (owner == nullptr) {
    answer->finish(absl::UnavailableError("the rack is starting; try again"));
    return;
  }
  const operation_decision decision = logic->decide(*what, state_now(), deps.clock());
  using act = operation_decision::act;
  switch (decision.what) {
    case act::refuse:
      answer->finish(decision.status);
      return;
    case act::answer:
      answer->finish(command_result{decision.operation_id, "", {}});
      return;
    case act::join:
      waiting[decision.operation_id].push_back(answer);
      return;
    case act::validate:
      validate(what, answer);
      return;
    case act::cancel:
      send_cancel(decision.operation_id);
      answer->finish(command_result{decision.operation_id, "cancelling", {}});
      return;
    case act::create:
      waiting[decision.operation_id].push_back(answer);
      create(what, decision);
      return;
  }
}

void operations_state::create(const command_ptr& what, const operation_decision& decision) {
  const std::string id = decision.operation_id;
  auto batch = std::make_shared<const journal_batch>(creation_batch(*decision.created));
  self->request(deps.journal, commit_timeout, commit_atom_v, batch_ptr(std::move(batch)))
      .then(
          [this, what, id](const commit_ptr& commit) {
            if (!commit->earlier_operation_id.empty()) {
              logic->forget(id);
              conclude(id, command_result{commit->earlier_operation_id, "", {}});
              return;
            }
            logic->committed(id, true);
            log_info("operation_started", {{"operation", id},
                                           {"verb", what->verb},
                                           {"target", what->target},
                                           {"principal", what->principal.name()}});
            submit(what, id);
          },
          [this, id](const caf::error& error) {
            const absl::Status why = to_status(error);
            if (fault_of(why).has_value() || why.code() == absl::StatusCode::kInvalidArgument) {
              logic->forget(id);  // the journal says that nothing was written
              conclude(id, why);
              return;
            }
            // A time-out leaves open whether it is durable: written as FAILED, it ends in either case.
            logic->committed(id, true);
            refuse(id, why);
          });
}

void operations_state::submit(const command_ptr& what, const std::string& id) {
  if (owner == nullptr) {
    refuse(id, absl::UnavailableError("the rack is starting; try again"));
    return;
  }
  self->request(owner, submit_timeout, submit_atom_v, what, id)
      .then(
          [this, id](const command_result_ptr& accepted) {
            logic->accepted(id);
            command_result result = *accepted;
            result.operation_id = id;
            conclude(id, std::move(result));
          },
          [this, id](const caf::error& error) {
            send_cancel(id);  // had it been accepted and only the answer were lost, it stops
            refuse(id, to_status(error));
          });
}

void operations_state::validate(const command_ptr& what, const answer_ptr& answer) {
  self->request(owner, submit_timeout, submit_atom_v, what, std::string())
      .then(
          [answer](const command_result_ptr& accepted) {
            command_result result = *accepted;
            result.operation_id.clear();
            answer->finish(std::move(result));
          },
          [answer](const caf::error& error) { answer->finish(to_status(error)); });
}

void operations_state::conclude(const std::string& id, const absl::StatusOr<command_result>& result) {
  const auto found = waiting.find(id);
  if (found == waiting.end()) return;
  const std::vector<answer_ptr> answers = std::move(found->second);
  waiting.erase(found);
  for (const answer_ptr& answer : answers) answer->finish(result);
}

void operations_state::refuse(const std::string& id, const absl::Status& why) {
  if (logic->refused(id, why, deps.clock())) write(id);
  conclude(id, why);
}

void operations_state::write(const std::string& id) {
  std::optional<journal_batch> batch = logic->take_commit(id, state_now(), deps.clock());
  if (!batch.has_value()) return;
  const auto written = logic->find(id);
  const bool ends =
      written != nullptr && has_ended(*written);  // as this batch writes it; a later end has its own
  self->request(deps.journal, commit_timeout, commit_atom_v,
                batch_ptr(std::make_shared<const journal_batch>(*std::move(batch))))
      .then(
          [this, id, ends](const commit_ptr&) {
            last_write = absl::OkStatus();
            const auto now = logic->find(id);
            if (now != nullptr && ends) {
              log_info("operation_ended", {{"operation", id},
                                           {"verb", now->verb()},
                                           {"target", now->target()},
                                           {"state", now->state()},
                                           {"fault", now->fault()},
                                           {"message", now->message()}});
            }
            logic->committed(id, true);
            write(id);  // what changed meanwhile
          },
          [this, id](const caf::error& error) {
            last_write = to_status(error);
            logic->committed(id, false);  // the tick tries again
          });
}

void operations_state::bind(const caf::strong_actor_ptr& next) {
  owner = caf::actor_cast<owner_actor>(next);
  owner_address = caf::actor_cast<caf::actor_addr>(next);
  if (owner == nullptr) return;
  self->monitor(owner);
  for (const auto& operation : logic->running()) {
    log_info("operation_resumed",
             {{"operation", operation->id()}, {"verb", operation->verb()}, {"target", operation->target()}});
    self->send(owner, resume_atom_v, operation_ptr(operation));
  }
}

void operations_state::owner_is_down(const caf::down_msg& down) {
  if (down.source != owner_address) return;
  owner = nullptr;
  log_warning("operations_owner_down", {{"reason", caf::to_string(down.reason)}});
}

void operations_state::send_cancel(const std::string& id) {
  if (owner != nullptr) self->send(owner, cancel_atom_v, id);
}

void operations_state::tick() {
  for (const std::string& id : logic->expire(deps.clock())) {
    log_warning("operation_expired", {{"operation", id}});
    send_cancel(id);
  }
  for (const std::string& id : logic->unwritten()) write(id);
  self->delayed_send(self, operations_tick, tick_atom_v);
}

operations_actor::behavior_type operations(operations_self self, operations_dependencies deps,
                                           operations_config config) {
  operations_state& state = self->state;
  state.self = self;
  state.deps = std::move(deps);
  state.logic =
      std::make_unique<operations_logic>(std::move(config), *state.deps.hub->read(), state.deps.clock());
  self->set_down_handler([self](const caf::down_msg& down) { self->state.owner_is_down(down); });
  self->delayed_send(self, operations_tick, tick_atom_v);
  return {
      [self](command_atom, const command_ptr& what, const answer_ptr& answer) {
        self->state.take(what, answer);
      },
      [self](bind_atom, const caf::strong_actor_ptr& owner) { self->state.bind(owner); },
      [self](const component_update_ptr& update) {
        if (self->state.logic->report(*update)) self->state.write(update->operation_id);
      },
      [self](const operation_end_ptr& end) {
        if (self->state.logic->report(*end, self->state.deps.clock())) self->state.write(end->operation_id);
      },
      [self](status_atom) {
        const absl::Status& last = self->state.last_write;
        return actor_status{last.ok(), std::string(last.message()), self->state.handled};
      },
      [self](stop_atom) { self->quit(caf::exit_reason::user_shutdown); },
      [self](tick_atom) { self->state.tick(); },
  };
}

}  // namespace

operations_actor spawn_operations(caf::actor_system& system, operations_dependencies dependencies,
                                  operations_config config) {
  return system.spawn(operations, std::move(dependencies), std::move(config));
}

}  // namespace busbar::core
