#include "actors/shelf/cap_actor.hpp"

#include <fmt/format.h>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <map>
#include <utility>

#include "actors/core/error_bridge.hpp"
#include "actors/core/log.hpp"

namespace busbar::shelf {
namespace {

using cap_self = cap_actor::stateful_pointer<struct cap_shell>;

constexpr auto look_interval = std::chrono::milliseconds(500);
constexpr auto commit_retry = std::chrono::seconds(1);

struct cap_shell {
  static inline const char* name = "caps";

  cap_dependencies with;
  caps_keeper kept;
  std::map<std::string, std::shared_ptr<devices::bmc>> drivers;
  bool committing = false;
  core::batch_ptr refused;
  std::vector<caps_effect> effects_after;
  std::uint64_t timer = 0;

  std::string record() const { return "caps/" + kept.setting.rack; }
  void take(cap_self self, const caps_event& what);
  void commit(cap_self self, core::batch_ptr batch);
  void committed(cap_self self);
  void run(cap_self self, const caps_effect& wanted);
  void tick(cap_self self);
  caf::result<core::command_result_ptr> submit(cap_self self, const core::command& what,
                                               const std::string& operation);
};

void cap_shell::take(cap_self self, const caps_event& what) {
  caps_step made = step(kept, what, with.clock());
  if (!made.durable) {
    for (const caps_effect& wanted : made.effects) run(self, wanted);
    return;
  }
  auto batch = std::make_shared<core::journal_batch>();
  batch->put_record(record(), stored_form(kept));
  batch->events = std::move(made.events);
  effects_after = std::move(made.effects);
  commit(self, batch);
}

void cap_shell::commit(cap_self self, core::batch_ptr batch) {
  committing = true;
  refused = batch;
  self->request(with.journal, core::commit_timeout, core::commit_atom_v, batch)
      .then([self](const core::commit_ptr&) { self->state.committed(self); },
            [self](const caf::error& why) {
              core::log_warning("commit_refused",
                                {{"object", self->state.record()}, {"why", caf::to_string(why)}});
              self->delayed_send(self, commit_retry, core::tick_atom_v, UINT64_MAX);
            });
}

void cap_shell::committed(cap_self self) {
  committing = false;
  refused.reset();
  const std::vector<caps_effect> effects = std::exchange(effects_after, {});
  for (const caps_effect& wanted : effects) run(self, wanted);
}

void cap_shell::run(cap_self self, const caps_effect& wanted) {
  if (const auto* told = std::get_if<limit_tray>(&wanted)) {
    const auto driver = drivers.find(told->tray);
    if (driver == drivers.end() || driver->second == nullptr) return;  // not read back: told again
    driver->second->write_device(
        {{"gpu_power_limit_w", fmt::format("{:g}", told->gpu_w)}},
        [tray = told->tray](const absl::Status& status) {
          if (!status.ok())
            core::log_warning("cap_not_taken", {{"object", tray}, {"why", std::string(status.message())}});
        });
  } else if (const auto* judged = std::get_if<condition_judged>(&wanted)) {
    with.tell(*judged);
  } else if (const auto* row = std::get_if<core::component_update>(&wanted)) {
    self->send(with.operations,
               core::component_update_ptr(std::make_shared<const core::component_update>(*row)));
  } else if (const auto* end = std::get_if<core::operation_end>(&wanted)) {
    self->send(with.operations, core::operation_end_ptr(std::make_shared<const core::operation_end>(*end)));
  }
}

void cap_shell::tick(cap_self self) {
  self->delayed_send(self, look_interval, core::tick_atom_v, ++timer);
  if (committing || with.board == nullptr) return;  // what was asked is durable before it is told
  take(self, sight_taken{sight_of(kept.setting, *with.hub->read(), *with.board)});
}

caf::result<core::command_result_ptr> cap_shell::submit(cap_self self, const core::command& what,
                                                        const std::string& operation) {
  if (committing) return core::to_caf(absl::UnavailableError("the caps are just being written; ask again"));
  const absl::Status no = refuse(kept, what, with.clock());
  if (!no.ok()) return core::to_caf(no);
  auto answer = std::make_shared<core::command_result>();
  if (what.validate_only) {
    answer->message = would_do(kept, what);
  } else {
    answer->operation_id = operation;
    take(self, cap_commanded{what, operation});
  }
  return core::command_result_ptr(answer);
}

void resume(cap_self self, const journal::Operation& operation) {
  cap_shell& shell = self->state;
  const auto asked = shell.kept.asked.find(operation.target());
  if (asked != shell.kept.asked.end() && asked->second.operation == operation.id())
    return;  // ends by what is read
  const std::string text = "the daemon ended before this was begun; ask again";
  shell.run(self, core::component_update{operation.id(), operation.target(), "FAILED", {}, {}, text});
  shell.run(self, core::operation_end{operation.id(), "FAILED", {}, text});
}

cap_actor::behavior_type behavior(cap_self self, cap_dependencies dependencies) {
  cap_shell& shell = self->state;
  shell.with = std::move(dependencies);
  const auto stored = shell.with.hub->read()->record("caps/" + shell.with.setting.rack);
  shell.kept =
      begin_caps_keeping(shell.with.setting, stored == nullptr ? std::string() : *stored, shell.with.clock());
  self->send(self, core::tick_atom_v, shell.timer);
  return {
      [self](core::submit_atom, const core::command_ptr& what, const std::string& operation) {
        return self->state.submit(self, *what, operation);
      },
      [self](core::resume_atom, const core::operation_ptr& operation) { resume(self, *operation); },
      // A limit stays until it lapses or is taken back: power cap --off.
      [](core::cancel_atom, const std::string&) {},
      [self](const bound_driver_ptr& bound) { self->state.drivers[bound->member] = bound->driver; },
      [self](core::status_atom) {
        core::actor_status status;
        status.ok = self->state.refused == nullptr;
        return status;
      },
      [self](core::tick_atom, std::uint64_t generation) {
        cap_shell& held = self->state;
        if (generation == UINT64_MAX && held.refused != nullptr) return held.commit(self, held.refused);
        if (generation == held.timer) held.tick(self);
      },
  };
}

}  // namespace

cap_actor spawn_caps(caf::actor_system& system, cap_dependencies dependencies) {
  return system.spawn(behavior, std::move(dependencies));
}

}  // namespace busbar::shelf
