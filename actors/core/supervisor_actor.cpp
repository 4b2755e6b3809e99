#include "actors/core/supervisor_actor.hpp"

#include <caf/actor_cast.hpp>
#include <caf/actor_system.hpp>
#include <caf/atom.hpp>
#include <caf/behavior.hpp>
#include <caf/exit_reason.hpp>
#include <caf/sec.hpp>
#include <caf/send.hpp>

#include <algorithm>
#include <chrono>
#include <utility>
#include <variant>

#include "actors/core/log.hpp"

namespace busbar::core {
namespace {

using self_pointer = caf::stateful_actor<supervisor_state>*;

bool is_normal(const caf::error& why) {
  return !why || why == caf::exit_reason::normal || why == caf::exit_reason::user_shutdown;
}

// std::visit with one handler an effect.
template <class... Ts>
struct overloaded : Ts... {
  using Ts::operator()...;
};

}  // namespace

void supervisor_state::carry_out(self_pointer self, const supervisor_effects& effects) {
  for (const supervisor_effect& effect : effects) {
    std::visit(overloaded{
                   [this, self](const start_child& one) { start(self, one.index); },
                   [this, self](const stop_child& one) {
                     log_info("child_stop", {{"supervisor", label}, {"child", specs[one.index].plan.name}});
                     self->send_exit((*running)[one.index], caf::exit_reason::user_shutdown);
                   },
                   [this, self](const kill_child& one) {
                     log_error("child_kill", {{"supervisor", label}, {"child", specs[one.index].plan.name}});
                     self->send_exit((*running)[one.index], caf::exit_reason::kill);
                   },
                   [this, self](const end_supervisor& last) { end(self, last.failure); },
               },
               effect);
  }
  set_timer(self);
}

void supervisor_state::start(self_pointer self, std::size_t index) {
  const std::string& child = specs[index].plan.name;
  auto started = specs[index].start(self);
  if (!started) {
    const std::string why = self->system().render(started.error());
    log_error("child_start_failed", {{"supervisor", label}, {"child", child}, {"why", why}});
    carry_out(self, logic->child_down(index, false, why, self->clock().now()));
    return;
  }
  (*running)[index] = std::move(*started);
  self->monitor((*running)[index]);
  log_info("child_started", {{"supervisor", label}, {"child", child}, {"starts", logic->starts(index)}});
  carry_out(self, logic->child_started(index, self->clock().now()));
}

void supervisor_state::end(self_pointer self, const std::string& failure) {
  if (failure.empty()) {
    log_info("supervisor_stopped", {{"supervisor", label}});
    self->quit(caf::exit_reason::user_shutdown);
    return;
  }
  log_error("supervisor_escalates", {{"supervisor", label}, {"why", failure}});
  self->quit(caf::make_error(caf::sec::runtime_error, label + ": " + failure));
}

void supervisor_state::went_down(self_pointer self, const caf::actor_addr& who, const caf::error& why) {
  for (std::size_t i = 0; i < running->size(); ++i) {
    caf::actor& child = (*running)[i];
    if (child == nullptr || child.address() != who) continue;
    child = nullptr;
    const std::string reason = self->system().render(why);
    log_info("child_down", {{"supervisor", label}, {"child", specs[i].plan.name}, {"why", reason}});
    carry_out(self, logic->child_down(i, is_normal(why), reason, self->clock().now()));
    return;
  }
}

void supervisor_state::set_timer(self_pointer self) {
  const auto deadline = logic->next_deadline();
  ++timer;
  if (!deadline.has_value()) return;
  const auto wait = std::max(*deadline - self->clock().now(), std::chrono::steady_clock::duration::zero());
  self->delayed_send(self, wait, caf::tick_atom::value, timer);
}

caf::behavior supervisor(self_pointer self, supervisor_plan plan, std::vector<child_spec> children) {
  std::vector<child_plan> plans;
  for (const child_spec& one : children) plans.push_back(one.plan);
  self->state.label = plan.name;
  self->state.specs = std::move(children);
  self->state.running->resize(plans.size());
  self->state.logic = std::make_unique<supervisor_logic>(std::move(plan), std::move(plans));
  // A supervisor that was killed leaves no orphans; after an ordered stop there is nobody left to kill.
  self->attach_functor([running = self->state.running](const caf::error&) {
    for (const caf::actor& child : *running) {
      if (child != nullptr) caf::anon_send_exit(child, caf::exit_reason::kill);
    }
  });
  self->set_down_handler([self](caf::down_msg& down) { self->state.went_down(self, down.source, down.reason); });
  self->set_exit_handler([self](caf::exit_msg&) {
    self->state.carry_out(self, self->state.logic->stop(self->clock().now()));
  });
  self->state.carry_out(self, self->state.logic->begin(self->clock().now()));
  return {[self](caf::tick_atom, std::uint64_t generation) {
    if (generation != self->state.timer) return;
    self->state.carry_out(self, self->state.logic->tick(self->clock().now()));
  }};
}

}  // namespace busbar::core
