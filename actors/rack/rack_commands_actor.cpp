#include <utility>

#include "actors/core/error_bridge.hpp"
#include "actors/core/mutant.hpp"
#include "actors/rack/rack_commands.hpp"
#include "actors/rack/rack_members.hpp"
#include "actors/rack/rack_shell_actor.hpp"

namespace busbar::rack {

// ---- commands
// ---------------------------------------------------------------------------------------------------------------------------

void rack_shell::end_at_once(rack_self self, const std::string& operation, const std::string& target,
                             const std::string& message) {
  run(self, core::component_update{operation, target, "SUCCEEDED", {}, {}, message});
  run(self, core::operation_end{operation, "SUCCEEDED", {}, message});
}

void rack_shell::apply_manifest(rack_self self, const core::command& what, const std::string& operation,
                                result_promise promise) {
  const applied_spec applied =
      apply_spec(*what.spec, logic.rack.has_spec() ? &logic.rack : nullptr, logic.run.members, with.new_uuid);
  auto batch = std::make_shared<core::journal_batch>();
  batch->put(applied.rack);
  for (const auto& one : applied.members) batch->put(one);
  for (const std::string& gone : applied.removed) batch->erase(core::object_kind::node, gone);
  apply_equipment(*what.spec, *with.hub->read(), with.new_uuid, *batch);
  batch->events.push_back(spec_event(*what.spec, operation, what.principal));
  committing = true;  // nothing is stepped until the members are those of the new spec
  self->request(with.journal, core::commit_timeout, core::commit_atom_v, core::batch_ptr(batch))
      .then(
          [self, applied, promise, operation, target = what.target](const core::commit_ptr&) mutable {
            rack_shell& shell = self->state;
            shell.committing = false;
            shell.stop_members(self);
            shell.stop_equipment(self, *shell.with.hub->read());
            shell.logic.rack = *applied.rack;
            shell.logic.run.members.clear();
            for (const auto& one : applied.members) shell.logic.run.members[one->name()] = one;
            shell.start_members(self);
            promise.deliver(accepted(operation));
            shell.end_at_once(self, operation, target, "spec stored");
            shell.take(self, wake{});
          },
          [self, promise](const caf::error& why) mutable {
            self->state.committing = false;
            promise.deliver(why);
            self->state.pump(self);
          });
}

// A look with a driver of its own that knows no pin and has no login; it lives until it has answered.
void rack_shell::look_for_trust(rack_self self, const core::command_ptr& what, const std::string& operation,
                                result_promise promise) {
  const bool cdu = is_cdu(*what, logic);
  const journal::Node* const tray = cdu ? nullptr : logic.run.members.at(what->target).get();
  const std::uint64_t look = ++last_look;
  looks.emplace(look, trust_look{what, operation, std::move(promise)});
  const rack_actor me = self;
  const std::shared_ptr<devices::bmc> eye =
      cdu ? with.drivers->make_bmc(logic.rack.spec().manifest().cooling().address(), journal::RACK_CONTROLLER)
          : with.drivers->make_bmc(tray->identity().address(), tray->spec().kind());
  eye->probe([me, look, eye](absl::StatusOr<devices::probe_facts> facts) {
    caf::anon_send(me, make_event(certificate_shown{look, std::move(facts)}));
  });
}

void rack_shell::trust_or_refuse(rack_self self, const certificate_shown& shown) {
  auto found = looks.extract(shown.look);
  if (found.empty()) return;
  trust_look& asked = found.mapped();
  auto* to = member(asked.what->target);
  const bool cdu = is_cdu(*asked.what, logic);
  const absl::Status refusal = to == nullptr && !cdu ? absl::UnavailableError("the member is gone")
                                                     : refuse_trust(*asked.what, shown.facts);
  if (!refusal.ok()) {
    asked.promise.deliver(core::to_caf(refusal));
    return;
  }
  if (asked.what->validate_only) {
    asked.promise.deliver(validated(*asked.what, logic.rack));
    return;
  }
  const std::string& pin = asked.what->arguments.at("pin");
  if (cdu) {
    if (cooling != nullptr) cooling->pin(pin);
    take(self, trust_cdu{pin, asked.what->reason});
  } else {
    self->send(*to, node::make_event(node::trust_pin{pin, asked.what->reason}));
  }
  asked.promise.deliver(accepted(asked.operation));
  end_at_once(self, asked.operation, asked.what->target,
              cdu ? "pin trusted; the CDU is read under it" : "pin trusted; the member goes on by itself");
}

caf::result<core::command_result_ptr> rack_shell::submit(rack_self self, const core::command_ptr& what,
                                                         const std::string& operation) {
  if (is_equipment_verb(what->verb)) return submit_equipment(self, what, operation);
  const auto refusal = refuse_command(*what, logic, committing);
  if (!refusal.ok()) return core::to_caf(refusal);
  if (what->verb == "manifest_apply") {
    const auto in_use = refuse_equipment_changes(*what->spec, *with.hub->read());
    if (!in_use.ok()) return core::to_caf(in_use);
  }
  if (what->verb == "node_trust") {
    auto promise = self->make_response_promise<core::command_result_ptr>();
    look_for_trust(self, what, operation, promise);
    return promise;
  }
  if (what->validate_only) return validated(*what, logic.rack);
  if (what->verb == "manifest_apply") {
    auto promise = self->make_response_promise<core::command_result_ptr>();
    apply_manifest(self, *what, operation, promise);
    return promise;
  }
  if (what->verb == "rack_bringup") take(self, begin_bringup{operation});
  if (what->verb == "rack_shutdown") take(self, begin_shutdown{operation});
  if (what->verb == "node_retry") {
    self->send(*member(what->target), node::make_event(node::retry{step_argument(*what), operation}));
    take(self, watch_member{operation, what->target});
  }
  if (what->verb == "bmc_release") {
    self->send(*member(what->target), node::make_event(node::release_bmc{operation, what->reason}));
    take(self, watch_member{operation, what->target});
  }
  if (what->verb == "bmc_unlock") {
    self->send(*member(what->target), node::make_event(node::unlock_logins{what->reason}));
    end_at_once(self, operation, what->target, "logins allowed again");
  }
  return accepted(operation);
}

void rack_shell::resume(rack_self self, const journal::Operation& operation) {
  if (BUSBAR_MUTANT(operation_forgotten_at_restart)) return;
  if (operation.verb() == "rack_bringup") return take(self, begin_bringup{operation.id()});
  if (operation.verb() == "rack_shutdown") return take(self, begin_shutdown{operation.id()});
  if (operation.verb() == "node_retry" && member(operation.target()) != nullptr) {
    const auto& stored = logic.run.members.at(operation.target());
    if (stored->operation_id() != operation.id()) {
      self->send(*member(operation.target()),
                 node::make_event(node::retry{journal::NODE_STEP_UNSPECIFIED, operation.id()}));
    }
    return take(self, watch_member{operation.id(), operation.target()});
  }
  if (operation.verb() == "bmc_release" && member(operation.target()) != nullptr) {
    const auto& stored = logic.run.members.at(operation.target());
    if (stored->operation_id() != operation.id())
      self->send(*member(operation.target()),
                 node::make_event(node::release_bmc{operation.id(), operation.reason()}));
    return take(self, watch_member{operation.id(), operation.target()});
  }
  run(self,
      core::operation_end{operation.id(), "FAILED", {}, "the daemon ended before this was begun; ask again"});
}

}  // namespace busbar::rack
