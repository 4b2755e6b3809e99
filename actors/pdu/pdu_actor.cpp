#include "actors/pdu/pdu_actor.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <deque>
#include <utility>

#include "actors/core/error_bridge.hpp"
#include "actors/core/log.hpp"

namespace busbar::pdu {
namespace {

using pdu_self = pdu_actor::stateful_pointer<struct pdu_shell>;
using result_promise = caf::typed_response_promise<core::command_result_ptr>;

constexpr auto commit_retry = std::chrono::seconds(1);
constexpr std::uint64_t retry_commit = UINT64_MAX;  // in place of a timer's generation

struct waiting_command {
  core::command_ptr what;
  std::string operation;
  result_promise promise;
};

struct pdu_shell {
  static inline const char* name = "pdu";

  pdu_dependencies with;
  keeper kept;
  bool reading = false;
  bool read_again = false;  // wanted while one was under way
  std::deque<keeping_event_ptr> inbox;
  std::deque<waiting_command> asked;  // decided when what came before is durable
  bool committing = false;
  core::batch_ptr refused;
  std::vector<keeping_effect> effects_after;
  std::uint64_t timer = 0;

  void take(pdu_self self, const keeping_event_ptr& news);
  void pump(pdu_self self);
  void step_one(pdu_self self, const keeping_event& news);
  void commit(pdu_self self, core::batch_ptr batch);
  void committed(pdu_self self);
  void run(pdu_self self, const keeping_effect& wanted);
  void read(pdu_self self);
  void set_timer(pdu_self self, std::int64_t at_ns);
  void put_readings(const outlets_read& read);
  void decide(pdu_self self, waiting_command next);
};

void pdu_shell::take(pdu_self self, const keeping_event_ptr& news) {
  if (const auto* got = std::get_if<outlets_read>(news.get())) {
    reading = false;
    put_readings(*got);
    if (std::exchange(read_again, false)) read(self);
  }
  inbox.push_back(news);
  pump(self);
}

void pdu_shell::pump(pdu_self self) {
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

void pdu_shell::step_one(pdu_self self, const keeping_event& news) {
  keeping_step made = step(kept, news, with.clock());
  set_timer(self, made.wake_at_ns);
  if (!made.durable) {
    for (const keeping_effect& wanted : made.effects) run(self, wanted);
    return;
  }
  auto batch = std::make_shared<core::journal_batch>();
  batch->put(std::make_shared<const journal::Pdu>(kept.record));
  batch->events = std::move(made.events);
  batch->intents_opened = std::move(made.intents_opened);
  batch->intents_closed = std::move(made.intents_closed);
  effects_after = std::move(made.effects);
  commit(self, batch);
}

void pdu_shell::commit(pdu_self self, core::batch_ptr batch) {
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

void pdu_shell::committed(pdu_self self) {
  committing = false;
  refused.reset();
  const std::vector<keeping_effect> effects = std::exchange(effects_after, {});
  for (const keeping_effect& wanted : effects) run(self, wanted);
  pump(self);
}

void pdu_shell::read(pdu_self self) {
  if (reading) {
    read_again = true;
    return;
  }
  reading = true;
  const pdu_actor me = self;
  if (with.bank == nullptr) {
    return caf::anon_send(me, make_event(outlets_read{absl::FailedPreconditionError(with.no_bank)}));
  }
  with.bank->read([me](absl::StatusOr<std::vector<devices::outlet_facts>> outlets) {
    caf::anon_send(me, make_event(outlets_read{std::move(outlets)}));
  });
}

void pdu_shell::run(pdu_self self, const keeping_effect& wanted) {
  const pdu_actor me = self;
  if (std::holds_alternative<read_bank>(wanted)) {
    read(self);
  } else if (const auto* act = std::get_if<ask_outlet>(&wanted)) {
    const auto answered = [me, outlet = act->outlet](absl::Status status) {
      caf::anon_send(me, make_event(outlet_answered{outlet, std::move(status)}));
    };
    if (with.bank == nullptr) return answered(absl::FailedPreconditionError(with.no_bank));
    with.bank->ask(act->outlet, act->act, answered);
  } else if (const auto* row = std::get_if<core::component_update>(&wanted)) {
    self->send(with.operations,
               core::component_update_ptr(std::make_shared<const core::component_update>(*row)));
  } else if (const auto* end = std::get_if<core::operation_end>(&wanted)) {
    self->send(with.operations, core::operation_end_ptr(std::make_shared<const core::operation_end>(*end)));
  }
}

void pdu_shell::set_timer(pdu_self self, std::int64_t at_ns) {
  const std::uint64_t generation = ++timer;
  if (at_ns == core::never_ns) return;
  const auto wait = std::chrono::nanoseconds(std::max<std::int64_t>(0, at_ns - with.clock().monotonic_ns));
  self->delayed_send(self, wait, core::tick_atom_v, generation);
}

void pdu_shell::put_readings(const outlets_read& got) {
  if (with.board == nullptr) return;
  const core::instant now = with.clock();
  const std::string& full = kept.record.name();
  const std::size_t slash = full.find('/');
  const std::string base = full.substr(0, slash) + "/pdus" + full.substr(slash) + "/";
  if (!got.outlets.ok()) return with.board->mark_stale(base, now.wall_ns - unread_after_ns);
  std::vector<core::named_reading> rows;
  const auto add = [&rows, &now](const std::string& point, const std::optional<double>& value,
                                 const char* unit) {
    if (!value) return;
    core::reading made;
    made.value = value;
    made.unit = unit;
    made.quality = core::reading_quality::good;
    made.source = "pdu";
    made.received_wall_ns = now.wall_ns;
    rows.push_back({point, std::move(made)});
  };
  for (const devices::outlet_facts& facts : *got.outlets) {
    if (!kept.outlets.contains(facts.id)) continue;
    add(base + facts.id + "/current", facts.current_a, "A");
    add(base + facts.id + "/power", facts.power_w, "W");
  }
  with.board->put(rows);
}

void pdu_shell::decide(pdu_self self, waiting_command next) {
  const core::command& what = *next.what;
  const absl::Status no = refuse(kept, what, with.needs);
  if (!no.ok()) {
    next.promise.deliver(core::to_caf(no));
    return pump(self);
  }
  auto answer = std::make_shared<core::command_result>();
  if (what.validate_only) {
    answer->message = would_do(kept, what);
    next.promise.deliver(core::command_result_ptr(answer));
    return pump(self);
  }
  answer->operation_id = next.operation;
  next.promise.deliver(core::command_result_ptr(answer));
  take(self, make_event(operation_began{what, next.operation}));
}

void resume(pdu_self self, const journal::Operation& operation) {
  pdu_shell& shell = self->state;
  for (const journal::Intent& open : shell.kept.record.intents()) {
    if (open.operation_id() == operation.id()) return;  // it goes on by what is read
  }
  const std::string text = "the daemon ended before this was begun; ask again";
  shell.run(self, core::component_update{operation.id(), shell.kept.record.name(), "FAILED", {}, {}, text});
  shell.run(self, core::operation_end{operation.id(), "FAILED", {}, text});
}

pdu_actor::behavior_type behavior(pdu_self self, pdu_dependencies dependencies,
                                  const std::shared_ptr<journal::Pdu>& stored) {
  self->state.with = std::move(dependencies);
  self->state.kept = begin_keeping(std::move(*stored), self->state.with.clock());
  self->send(self, core::tick_atom_v, self->state.timer);
  return {
      [self](core::submit_atom, const core::command_ptr& what, const std::string& operation) {
        auto promise = self->make_response_promise<core::command_result_ptr>();
        self->state.asked.push_back({what, operation, promise});
        self->state.pump(self);
        return promise;
      },
      [self](core::resume_atom, const core::operation_ptr& operation) { resume(self, *operation); },
      // A relay that was asked is not called back: the operation ends by what is read.
      [](core::cancel_atom, const std::string&) {},
      [self](const keeping_event_ptr& news) { self->state.take(self, news); },
      [self](core::status_atom) {
        core::actor_status status;
        status.ok = self->state.refused == nullptr;
        status.detail = status.ok ? "" : "a commit is not taken yet";
        return status;
      },
      [self](core::tick_atom, std::uint64_t generation) {
        pdu_shell& shell = self->state;
        if (generation == retry_commit && shell.refused != nullptr) return shell.commit(self, shell.refused);
        if (generation == shell.timer) shell.take(self, make_event(tick{}));
      },
  };
}

}  // namespace

pdu_actor spawn_pdu(caf::actor_system& system, pdu_dependencies dependencies, journal::Pdu stored) {
  return system.spawn(behavior, std::move(dependencies), std::make_shared<journal::Pdu>(std::move(stored)));
}

}  // namespace busbar::pdu
