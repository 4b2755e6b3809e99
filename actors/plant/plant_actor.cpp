#include "actors/plant/plant_actor.hpp"

#include <caf/actor_system.hpp>
#include <caf/exit_reason.hpp>
#include <caf/send.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "actors/core/error_bridge.hpp"
#include "actors/core/errors.hpp"
#include "actors/core/log.hpp"
#include "actors/plant/plant_commands.hpp"
#include "actors/plant/plant_points.hpp"

namespace busbar::plant {
namespace {

constexpr auto commit_retry = std::chrono::seconds(1);
constexpr auto read_interval = std::chrono::seconds(1);

using plant_self = plant_actor::stateful_pointer<struct plant_shell>;
using result_promise = caf::typed_response_promise<core::command_result_ptr>;

// Owner: the plant actor, on its turns only.
struct plant_shell {
  static inline const char* name = "plant";

  plant_dependencies with;
  journal::PlantSpec spec;
  cdu_map cdus;
  std::map<std::string, std::shared_ptr<devices::cdu>> drivers;
  std::set<std::string> reading;  // asked, and not yet taken
  std::deque<plant_event_ptr> inbox;
  std::map<std::string, demand_ptr> unheard;  // by rack: the newest that came while a commit was under way
  bool committing = false;
  core::batch_ptr refused;
  std::vector<std::pair<std::string, plant_effect>> effects_after;  // by CDU
  std::map<std::string, std::int64_t> wakes;                        // by CDU
  std::uint64_t timer = 1;

  void take(plant_self self, const std::string& cdu, cdu_event what);
  void pump(plant_self self);
  void take_one(plant_self self, const plant_event& event);
  void commit(plant_self self, core::batch_ptr batch);
  void committed(plant_self self);
  void run(plant_self self, const std::string& cdu, const plant_effect& wanted);
  void set_timer(plant_self self);
  void tick(plant_self self, std::uint64_t generation);
  void poll(plant_self self);
  void show(const std::string& cdu, const cdu_read& read);
  void bind_drivers();
  void hear(plant_self self, const demand_ptr& wanted, const demand_answer_ptr& answer);
  void apply(plant_self self, const core::command& what, const std::string& operation,
             result_promise promise);
  caf::result<core::command_result_ptr> submit(plant_self self, const core::command_ptr& what,
                                               const std::string& operation);
  void resume(plant_self self, const journal::Operation& operation);
  void end_at_once(plant_self self, const std::string& operation, const std::string& target,
                   const std::string& state, const std::string& message);
};

void plant_shell::take(plant_self self, const std::string& cdu, cdu_event what) {
  inbox.push_back(std::make_shared<const plant_event>(plant_event{cdu, std::move(what)}));
  pump(self);
}

// Telemetry coalesces: of each rack's demands that came meanwhile the newest is taken.
void plant_shell::pump(plant_self self) {
  while (!committing) {
    if (!inbox.empty()) {
      const plant_event_ptr event = inbox.front();
      inbox.pop_front();
      take_one(self, *event);
      continue;
    }
    if (unheard.empty()) break;
    const demand_ptr next = unheard.begin()->second;
    unheard.erase(unheard.begin());
    const cdu_state* const feeding = feeds(cdus, next->rack);
    if (feeding == nullptr) continue;
    take_one(self,
             {feeding->cdu.name(), demand_heard{next->rack, next->flow_lpm, next->heat_kw,
                                                next->valve_percent, next->short_of_flow, next->lease_ns}});
  }
  set_timer(self);
}

void plant_shell::take_one(plant_self self, const plant_event& event) {
  if (const auto* read = std::get_if<cdu_read>(&event.what)) {
    reading.erase(event.cdu);
    show(event.cdu, *read);
  }
  const auto found = cdus.find(event.cdu);
  if (found == cdus.end()) return;  // of a declaration that is gone
  const core::instant now = with.clock();
  cdu_step result = step(found->second, event.what, now);
  wakes[event.cdu] = result.wake_at_ns;
  if (std::holds_alternative<cdu_read>(event.what)) with.board->put(demand_points(found->second, now));
  if (!result.durable) {
    for (const plant_effect& wanted : result.effects) run(self, event.cdu, wanted);
    return;
  }
  for (plant_effect& wanted : result.effects) effects_after.emplace_back(event.cdu, std::move(wanted));
  auto batch = std::make_shared<core::journal_batch>();
  batch->put(std::make_shared<const journal::Cdu>(found->second.cdu));
  batch->events = std::move(result.events);
  batch->intents_opened = std::move(result.intents_opened);
  batch->intents_closed = std::move(result.intents_closed);
  commit(self, batch);
}

void plant_shell::commit(plant_self self, core::batch_ptr batch) {
  committing = true;
  refused = batch;
  self->request(with.journal, core::commit_timeout, core::commit_atom_v, batch)
      .then([self](const core::commit_ptr&) { self->state.committed(self); },
            [self](const caf::error& why) {
              core::log_warning("commit_refused",
                                {{"object", self->state.with.instance}, {"why", caf::to_string(why)}});
              self->delayed_send(self, commit_retry, core::tick_atom_v, std::uint64_t{0});
            });
}

void plant_shell::committed(plant_self self) {
  committing = false;
  refused.reset();
  const auto wanted = std::exchange(effects_after, {});
  for (const auto& [cdu, effect] : wanted) run(self, cdu, effect);
  pump(self);
}

void plant_shell::run(plant_self self, const std::string& cdu, const plant_effect& wanted) {
  if (const auto* write = std::get_if<write_set_point>(&wanted)) {
    const auto driver = drivers.find(cdu);
    const plant_actor me = self;
    const auto answered = [me, cdu, write = *write](absl::Status status) {
      caf::anon_send(me, plant_event_ptr(std::make_shared<const plant_event>(
                             plant_event{cdu, write_answered{write.what, write.value, std::move(status)}})));
    };
    if (driver == drivers.end())
      return answered(absl::FailedPreconditionError("there is no driver for this CDU; see the log"));
    driver->second->write(write->what, write->value, answered);
  } else if (const auto* row = std::get_if<core::component_update>(&wanted)) {
    self->send(with.operations,
               core::component_update_ptr(std::make_shared<const core::component_update>(*row)));
  } else if (const auto* end = std::get_if<core::operation_end>(&wanted)) {
    self->send(with.operations, core::operation_end_ptr(std::make_shared<const core::operation_end>(*end)));
  }
}

void plant_shell::set_timer(plant_self self) {
  std::int64_t at_ns = core::never_ns;
  for (const auto& [cdu, wake] : wakes) at_ns = std::min(at_ns, wake);
  const std::uint64_t generation = ++timer;
  if (at_ns == core::never_ns) return;
  const auto wait = std::chrono::nanoseconds(std::max<std::int64_t>(0, at_ns - with.clock().monotonic_ns));
  self->delayed_send(self, wait, core::tick_atom_v, generation);
}

void plant_shell::tick(plant_self self, std::uint64_t generation) {
  if (generation == 0) {
    if (refused != nullptr) commit(self, refused);
    return;
  }
  if (generation != timer || committing) return;
  const std::int64_t now_ns = with.clock().monotonic_ns;
  std::vector<std::string> due;
  for (const auto& [cdu, wake] : wakes) {
    if (wake <= now_ns) due.push_back(cdu);
  }
  for (const std::string& cdu : due) take(self, cdu, plant_wake{});
  if (due.empty()) set_timer(self);
}

void plant_shell::poll(plant_self self) {
  self->delayed_send(self, read_interval, core::poll_atom_v);
  const plant_actor me = self;
  for (const auto& [cdu, driver] : drivers) {
    if (!reading.insert(cdu).second) continue;  // slow, or its last answer waits for the journal
    driver->read([me, cdu = cdu](absl::StatusOr<devices::cdu_facts> facts) {
      caf::anon_send(
          me,
          plant_event_ptr(std::make_shared<const plant_event>(plant_event{cdu, cdu_read{std::move(facts)}})));
    });
  }
}

void plant_shell::show(const std::string& cdu, const cdu_read& read) {
  const std::int64_t wall_ns = with.clock().wall_ns;
  if (read.facts.ok()) with.board->put(points_of(cdu, *read.facts, wall_ns));
  with.board->mark_stale(cdu + "/", wall_ns - cdu_stale_ns);
}

void plant_shell::bind_drivers() {
  drivers.clear();
  reading.clear();
  for (const journal::CduSpec& row : spec.cdus()) {
    devices::credentials login;
    if (row.has_login()) {
      auto given = with.login_of(row.login());
      if (!given.ok()) {
        core::log_error("cdu_login_missing",
                        {{"object", row.name()}, {"why", std::string(given.status().message())}});
        continue;
      }
      login = *std::move(given);
    }
    auto made = with.drivers->make(row.protocol(), row.address(), row.map(), std::move(login));
    if (!made.ok()) {
      core::log_error("cdu_without_driver",
                      {{"object", row.name()}, {"why", std::string(made.status().message())}});
      continue;
    }
    drivers[row.name()] = *std::move(made);
  }
}

void plant_shell::hear(plant_self self, const demand_ptr& wanted, const demand_answer_ptr& answer) {
  const cdu_state* const feeding = feeds(cdus, wanted->rack);
  if (feeding == nullptr) {
    answer->finish(core::make_fault(core::fault::UNKNOWN_TARGET,
                                    "no CDU of " + with.instance + " feeds " + wanted->rack));
    return;
  }
  answer->finish(view_of(with.instance, *feeding, with.clock()));
  unheard[wanted->rack] = wanted;
  pump(self);
}

void plant_shell::end_at_once(plant_self self, const std::string& operation, const std::string& target,
                              const std::string& state, const std::string& message) {
  run(self, target, core::component_update{operation, target, state, {}, {}, message});
  run(self, target, core::operation_end{operation, state, {}, message});
}

void plant_shell::apply(plant_self self, const core::command& what, const std::string& operation,
                        result_promise promise) {
  const auto plant = std::make_shared<const declared_plant>(declare_plant(*what.plant, cdus, with.new_uuid));
  auto batch = std::make_shared<const core::journal_batch>(batch_of(*plant, what, operation));
  committing = true;  // nothing is stepped until the CDUs are those of the new declaration
  self->request(with.journal, core::commit_timeout, core::commit_atom_v, core::batch_ptr(batch))
      .then(
          [self, plant, promise, operation, target = what.target](const core::commit_ptr&) mutable {
            plant_shell& shell = self->state;
            shell.committing = false;
            shell.spec = plant->spec;
            for (const std::string& gone : plant->removed) {
              shell.cdus.erase(gone);
              shell.wakes.erase(gone);
              shell.with.board->forget(gone + "/");
            }
            for (const auto& cdu : plant->cdus) {
              // What is known of the device goes on, unless it is another one.
              const auto known = shell.cdus.find(cdu->name());
              const bool same =
                  known != shell.cdus.end() && known->second.cdu.spec().address() == cdu->spec().address();
              if (same) {
                known->second.cdu = *cdu;
              } else {
                shell.cdus[cdu->name()] = restore(*cdu, shell.with.clock());
              }
            }
            shell.bind_drivers();
            auto result = std::make_shared<core::command_result>();
            result->operation_id = operation;
            promise.deliver(core::command_result_ptr(std::move(result)));
            shell.end_at_once(self, operation, target, "SUCCEEDED", "declaration stored");
            shell.pump(self);
          },
          [self, promise](const caf::error& why) mutable {
            self->state.committing = false;
            promise.deliver(why);
            self->state.pump(self);
          });
}

caf::result<core::command_result_ptr> plant_shell::submit(plant_self self, const core::command_ptr& what,
                                                          const std::string& operation) {
  if (const absl::Status refusal = refuse_command(*what, with.instance, cdus, committing); !refusal.ok())
    return core::to_caf(refusal);
  if (what->validate_only) return validated(*what, cdus, spec);
  if (what->verb == "plant_apply") {
    auto promise = self->make_response_promise<core::command_result_ptr>();
    apply(self, *what, operation, promise);
    return promise;
  }
  // The event stands behind those that wait for the journal; what it does is decided when its turn comes.
  if (what->verb == "cdu_set") take(self, what->target, *override_of(*what, operation));
  if (what->verb == "cdu_release") take(self, what->target, override_released{operation});
  auto result = std::make_shared<core::command_result>();
  result->operation_id = operation;
  return core::command_result_ptr(std::move(result));
}

void plant_shell::resume(plant_self self, const journal::Operation& operation) {
  const auto found = cdus.find(operation.target());
  const bool goes_on = operation.verb() == "cdu_set" && found != cdus.end() &&
                       found->second.cdu.operation_id() == operation.id();
  if (goes_on) return;  // its end is what is read of the CDU
  end_at_once(self, operation.id(), operation.target(), "FAILED",
              "the daemon ended before this was begun; ask again");
}

// What is stored becomes the state; the CDUs are adopted as they are read.
void start(plant_self self) {
  plant_shell& shell = self->state;
  const auto stored = shell.with.hub->read();
  if (const auto bytes = stored->record(spec_record)) shell.spec.ParseFromString(*bytes);
  for (const auto& [name, entry] : *stored->cdus)
    shell.cdus[name] = restore(*entry.object, shell.with.clock());
  shell.bind_drivers();
  self->send(self, core::poll_atom_v);
}

plant_actor::behavior_type behavior(plant_self self, plant_dependencies dependencies) {
  self->state.with = std::move(dependencies);
  start(self);
  return {
      [self](core::submit_atom, const core::command_ptr& what, const std::string& operation) {
        return self->state.submit(self, what, operation);
      },
      [self](core::resume_atom, const core::operation_ptr& operation) {
        self->state.resume(self, *operation);
      },
      [self](core::cancel_atom, const std::string& operation) {
        for (const auto& [name, state] : self->state.cdus) {
          if (!operation.empty() && state.cdu.operation_id() == operation)
            return self->state.take(self, name, operation_cancelled{operation});
        }
      },
      [self](const plant_event_ptr& event) { self->state.take(self, event->cdu, event->what); },
      [self](core::observe_atom, const demand_ptr& wanted, const demand_answer_ptr& answer) {
        self->state.hear(self, wanted, answer);
      },
      [self](core::status_atom) {
        core::actor_status status;
        status.ok = self->state.refused == nullptr;
        return status;
      },
      [self](core::stop_atom) { self->quit(caf::exit_reason::user_shutdown); },
      [self](core::tick_atom, std::uint64_t generation) { self->state.tick(self, generation); },
      [self](core::poll_atom) { self->state.poll(self); },
  };
}

}  // namespace

plant_actor spawn_plant(caf::actor_system& system, plant_dependencies dependencies) {
  return system.spawn(behavior, std::move(dependencies));
}

}  // namespace busbar::plant
