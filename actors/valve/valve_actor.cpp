#include "actors/valve/valve_actor.hpp"

#include <fmt/format.h>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <deque>
#include <utility>

#include "actors/core/error_bridge.hpp"
#include "actors/core/log.hpp"
#include "actors/core/mutant.hpp"

namespace busbar::valve {
namespace {

using valve_self = valve_actor::stateful_pointer<struct valve_shell>;

constexpr auto commit_retry = std::chrono::seconds(1);
constexpr std::int64_t session_again_ns = 5'000'000'000;
constexpr std::uint64_t retry_commit = UINT64_MAX;  // in place of a timer's generation

using result_promise = caf::typed_response_promise<core::command_result_ptr>;

struct waiting_command {
  core::command_ptr what;
  std::string operation;
  result_promise promise;
};

struct valve_shell {
  static inline const char* name = "valve";

  valve_dependencies with;
  keeper kept;
  std::shared_ptr<devices::valve_port> port;
  bool reading = false;
  std::int64_t asked_session_ns = INT64_MIN / 2;
  std::deque<keeping_event_ptr> inbox;
  std::deque<waiting_command> asked;  // decided when what came before is durable
  bool committing = false;
  core::batch_ptr refused;
  std::vector<keeping_effect> effects_after;
  std::uint64_t timer = 0;

  void take(valve_self self, const keeping_event_ptr& news);
  void pump(valve_self self);
  void step_one(valve_self self, const keeping_event& news);
  void commit(valve_self self, core::batch_ptr batch);
  void committed(valve_self self);
  void run(valve_self self, const keeping_effect& wanted);
  void poll(valve_self self);
  void put_readings(const port_read& read);
  result_promise submit(valve_self self, const core::command_ptr& what, const std::string& operation);
  void decide(valve_self self, waiting_command asked);
  void resume(valve_self self, const journal::Operation& operation);
};

void valve_shell::take(valve_self self, const keeping_event_ptr& news) {
  if (const auto* read = std::get_if<port_read>(news.get())) {
    reading = false;
    put_readings(*read);
  }
  inbox.push_back(news);
  pump(self);
}

void valve_shell::pump(valve_self self) {
  while (!committing && !inbox.empty()) {
    const keeping_event_ptr news = inbox.front();
    inbox.pop_front();
    step_one(self, *news);
  }
  if (committing || asked.empty()) return;
  waiting_command next = std::move(asked.front());
  asked.pop_front();
  decide(self, std::move(next));
}

void valve_shell::step_one(valve_self self, const keeping_event& news) {
  keeping_step made = step(kept, news, with.look(), with.clock());
  if (!made.durable) {
    for (const keeping_effect& wanted : made.effects) run(self, wanted);
    return;
  }
  if (BUSBAR_MUTANT(valve_written_before_durable)) {
    for (const keeping_effect& wanted : made.effects) run(self, wanted);
    made.effects.clear();
  }
  auto batch = std::make_shared<core::journal_batch>();
  batch->put(std::make_shared<const journal::Valve>(kept.record));
  batch->events = std::move(made.events);
  batch->intents_opened = std::move(made.intents_opened);
  batch->intents_closed = std::move(made.intents_closed);
  effects_after = std::move(made.effects);
  commit(self, batch);
}

void valve_shell::commit(valve_self self, core::batch_ptr batch) {
  committing = true;
  refused = batch;
  self->request(with.journal, core::commit_timeout, core::commit_atom_v, batch)
      .then([self](const core::commit_ptr&) { self->state.committed(self); },
            [self](const caf::error& why) {
              core::log_warning("commit_refused",
                                {{"object", self->state.kept.record.name()}, {"why", caf::to_string(why)}});
              self->delayed_send(self, commit_retry, core::tick_atom_v, retry_commit);
            });
}

void valve_shell::committed(valve_self self) {
  committing = false;
  refused.reset();
  with.tell(std::make_shared<const journal::Valve>(kept.record));
  const std::vector<keeping_effect> effects = std::exchange(effects_after, {});
  for (const keeping_effect& wanted : effects) run(self, wanted);
  pump(self);
}

void valve_shell::run(valve_self self, const keeping_effect& wanted) {
  if (const auto* row = std::get_if<core::component_update>(&wanted)) {
    self->send(with.operations,
               core::component_update_ptr(std::make_shared<const core::component_update>(*row)));
    return;
  }
  if (const auto* end = std::get_if<core::operation_end>(&wanted)) {
    self->send(with.operations, core::operation_end_ptr(std::make_shared<const core::operation_end>(*end)));
    return;
  }
  const auto& act = std::get<send_write>(wanted);
  const valve_actor me = self;
  const auto answered = [me, id = act.id](absl::Status status) {
    caf::anon_send(me, make_event(port_wrote{id, std::move(status)}));
  };
  if (port == nullptr) return answered(absl::UnavailableError("its controller has no driver yet"));
  port->write(act.percent, answered);
}

void valve_shell::put_readings(const port_read& read) {
  if (with.board == nullptr) return;
  const core::instant now = with.clock();
  const std::string& full = kept.record.name();
  const std::size_t slash = full.find('/');
  const std::string base = full.substr(0, slash) + "/valves" + full.substr(slash);
  if (!read.facts.ok()) {
    with.board->mark_stale(base + "/", now.wall_ns - kept.spec.read_age.count());
    return;
  }
  std::vector<core::named_reading> rows;
  const auto add = [&rows, &base, &now](const char* point, const std::optional<double>& value,
                                        const char* unit, bool always) {
    if (!value && !always) return;
    core::reading made;
    made.value = value;
    made.unit = unit;
    made.quality = value ? core::reading_quality::good : core::reading_quality::unknown;
    made.source = "controller";
    made.received_wall_ns = now.wall_ns;
    rows.push_back({base + "/" + point, std::move(made)});
  };
  add("position", read.facts->position_percent, "%", true);
  add("flow", read.facts->flow_lpm, "L/min", false);
  add("dp", read.facts->dp_kpa, "kPa", false);
  with.board->put(rows);
}

// One read at a time: a slow controller is read at its own pace.
void valve_shell::poll(valve_self self) {
  const bool moves = kept.logic.proven == proof::moving;
  self->delayed_send(self, moves ? poll_moving : poll_at_rest, core::tick_atom_v, ++timer);
  take(self, make_event(tick{}));
  const core::instant now = with.clock();
  const bool silent = !kept.logic.heard || kept.logic.mode == valve_mode::fail_safe;
  if (silent && now.monotonic_ns - asked_session_ns > session_again_ns) {
    asked_session_ns = now.monotonic_ns;
    with.want_session();
  }
  if (port == nullptr || reading) return;
  reading = true;
  const valve_actor me = self;
  port->read([me](absl::StatusOr<devices::valve_facts> facts) {
    caf::anon_send(me, make_event(port_read{std::move(facts)}));
  });
}

result_promise valve_shell::submit(valve_self self, const core::command_ptr& what,
                                   const std::string& operation) {
  auto promise = self->make_response_promise<core::command_result_ptr>();
  asked.push_back({what, operation, promise});
  pump(self);
  return promise;
}

void valve_shell::decide(valve_self self, waiting_command next) {
  const core::command& what = *next.what;
  const surroundings around = with.look();
  const absl::Status no = refuse(kept, what, around, with.clock());
  if (!no.ok()) {
    next.promise.deliver(core::to_caf(no));
    return pump(self);
  }
  auto answer = std::make_shared<core::command_result>();
  if (what.validate_only) {
    answer->message = would_do(kept, what, around);
    next.promise.deliver(core::command_result_ptr(answer));
    return pump(self);
  }
  answer->operation_id = next.operation;
  next.promise.deliver(core::command_result_ptr(answer));
  take(self, make_event(operation_began{what, next.operation}));
}

void valve_shell::resume(valve_self self, const journal::Operation& operation) {
  if (kept.record.operation_id() == operation.id()) return;  // it goes on by what is read
  const std::string text = "the daemon ended before this was begun; ask again";
  run(self, core::component_update{operation.id(), kept.record.name(), "FAILED", {}, {}, text});
  run(self, core::operation_end{operation.id(), "FAILED", {}, text});
}

valve_actor::behavior_type behavior(valve_self self, valve_dependencies dependencies,
                                    const std::shared_ptr<journal::Valve>& stored) {
  self->state.with = std::move(dependencies);
  self->state.kept = begin_keeping(std::move(*stored), self->state.with.clock());
  self->send(self, core::tick_atom_v, self->state.timer);
  return {
      [self](core::submit_atom, const core::command_ptr& what, const std::string& operation) {
        return self->state.submit(self, what, operation);
      },
      [self](core::resume_atom, const core::operation_ptr& operation) {
        self->state.resume(self, *operation);
      },
      [self](core::cancel_atom, const std::string& operation) {
        self->state.take(self, make_event(operation_cancelled{operation}));
      },
      [self](const keeping_event_ptr& news) { self->state.take(self, news); },
      [self](const bound_port_ptr& bound) {
        self->state.port = bound->port;
        self->state.reading = false;
      },
      [self](core::status_atom) {
        core::actor_status status;
        status.ok = self->state.refused == nullptr;
        status.detail = status.ok ? "" : "a commit is not taken yet";
        return status;
      },
      [self](core::tick_atom, std::uint64_t generation) {
        valve_shell& shell = self->state;
        if (generation == retry_commit && shell.refused != nullptr) return shell.commit(self, shell.refused);
        if (generation == shell.timer) shell.poll(self);
      },
  };
}

}  // namespace

valve_actor spawn_valve(caf::actor_system& system, valve_dependencies dependencies, journal::Valve stored) {
  return system.spawn(behavior, std::move(dependencies), std::make_shared<journal::Valve>(std::move(stored)));
}

}  // namespace busbar::valve
