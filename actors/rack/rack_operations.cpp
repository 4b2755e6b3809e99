// How operations on a rack begin, show their rows and end: bring-up, shutdown in reverse, cancel, a member's
// retry.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "actors/rack/rack_engine.hpp"

namespace busbar::rack {

using core::fault;

// One row a member: what it has reached, and how it ended.
void engine::report_rows() {
  const std::string& operation = rack().operation_id();
  if (operation.empty()) return;
  for (const auto& [name, member] : run().members) {
    core::component_update row{operation, name, "RUNNING", {}, {}, {}};
    row.step = journal::NodeStep_Name(member->step());
    std::transform(row.step.begin(), row.step.end(), row.step.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    const bool down = rack().shutting_down() && is_off(*member);  // off is off, whatever failed before
    const bool arrived = down || member->step() >= journal::PRODUCTION;
    if (is_failed(*member) && !down) {
      row.state = "FAILED";
      row.fault = member->failure().fault();
      row.message = member->failure().message();
    } else if (arrived) {
      row.state = "SUCCEEDED";
    }
    const std::string key = row.state + row.step + row.fault;
    if (run().reported[name] == key) continue;
    run().reported[name] = key;
    act(row);
  }
}

void engine::finish_bringup() {
  if (!is_bringing_up() || rack().step() != journal::RACK_PRODUCTION) return;
  bool any_failed = false;
  for (const auto& [name, member] : run().members) {
    if (is_failed(*member)) {
      any_failed = true;
    } else if (member->step() < journal::PRODUCTION && wanted_goal(*member) >= journal::PRODUCTION) {
      return;
    } else if (member->step() < wanted_goal(*member)) {
      return;
    } else if (member->step() < journal::PRODUCTION) {
      any_failed = true;  // outside the run that was judged
    }
  }
  if (!last_look_done()) return;
  any_failed = any_failed || !run().looking.bad.empty();
  journal::Rack& changed = change();
  changed.set_state(any_failed ? std::string("degraded") : ceiling_of(changed.spec(), run().members));
  std::string fault_name, message = fmt::format("rack is {}", changed.state());
  for (const auto& [name, member] : run().members) {
    if (!is_failed(*member) || !fault_name.empty()) continue;
    fault_name = member->failure().fault();
    message += fmt::format("; {}: {}", name, member->failure().message());
  }
  for (const auto& [name, why] : run().looking.bad) {
    if (fault_name.empty())
      fault_name = core::name_of(name == rack().name() ? fault::POWER_INTERLOCK_NOT_ARMED
                                                       : fault::POWER_ON_NOT_CONFIRMED);
    message += fmt::format("; {}: {}", name, why);
  }
  run().looking = last_look{};
  if (any_failed && fault_name.empty()) {
    fault_name = core::name_of(fault::SUITE_INCOMPLETE);
    message += "; a member was outside the rack suite's run: bring up again";
  }
  act(core::operation_end{changed.operation_id(), any_failed ? "FAILED" : "SUCCEEDED", fault_name, message});
  tell("bringup_ended", fmt::format("rack is {}", changed.state()), any_failed ? "error" : "info");
  changed.clear_operation_id();
  run().reported.clear();
}

void engine::finish_member_operations() {
  for (auto it = run().member_operations.begin(); it != run().member_operations.end();) {
    const auto found = run().members.find(it->first);
    const journal::Node* const member = found == run().members.end() ? nullptr : found->second.get();
    const bool begun = member != nullptr && member->operation_id() == it->second;  // before: its old failure
    const bool failed = begun && is_failed(*member);
    // One that is handed back has no goal to reach.
    const bool released = begun && member->hold() == journal::RELEASED;
    const bool arrived = begun && !failed &&
                         (released || (member->hold() == journal::HOLD_NONE && member->step() >= member->goal()));
    if (!failed && !arrived) {
      ++it;
      continue;
    }
    const std::string why = failed ? member->failure().fault() : "";
    act(core::component_update{it->second,
                               it->first,
                               failed ? "FAILED" : "SUCCEEDED",
                               {},
                               why,
                               failed ? member->failure().message() : ""});
    act(core::operation_end{it->second, failed ? "FAILED" : "SUCCEEDED", why,
                            failed     ? member->failure().message()
                            : released ? node::released_words(*member)
                                       : "the member reached its goal"});
    it = run().member_operations.erase(it);
  }
}

void engine::begin_bringup_now(const begin_bringup& command) {
  journal::Rack& changed = change();
  changed.set_operation_id(command.operation_id);
  changed.set_goal(journal::RACK_PRODUCTION);
  changed.set_shutting_down(false);
  changed.clear_failure();
  run().looking = last_look{};
  take_up_lost();
  if (changed.step() == journal::RACK_STEP_UNSPECIFIED) changed.set_step(journal::PLANNED);
  const auto& ran = changed.suite().members();
  const auto outside = [&ran](const auto& tray) {
    return !is_failed(*tray) && std::find(ran.begin(), ran.end(), tray->name()) == ran.end();
  };
  const auto trays = of_kind(run().members, journal::COMPUTE_TRAY);
  if (changed.step() >= journal::RACK_VALIDATED && std::any_of(trays.begin(), trays.end(), outside)) {
    changed.mutable_suite()->Clear();
    changed.set_step(journal::NVLINK_READY);  // a member was mended: the run is declared again, with it
  }
  const bool arrived = changed.step() == journal::RACK_PRODUCTION;  // begun again after a restart of ours
  changed.set_state(arrived ? ceiling_of(changed.spec(), run().members) : step_word(changed.step()));
  run().reported.clear();
  run().deadline_ns = core::never_ns;
  tell("bringup_started", "towards production");
}

void engine::cancel(const std::string& operation_id) {
  for (auto it = run().member_operations.begin(); it != run().member_operations.end(); ++it) {
    if (it->second != operation_id) continue;
    act(core::operation_end{operation_id, "CANCELLED", {}, "cancelled"});
    run().member_operations.erase(it);
    return;
  }
  if (rack().operation_id() != operation_id) return;
  journal::Rack& changed = change();
  changed.set_goal(changed.step());
  if (changed.shutting_down()) stop_shutdown();
  stop_suite();
  changed.set_waits_for("an operator: cancelled, bring up again to go on");
  tell("cancelled", "members end the step they are in and stay there", "warning");
  act(core::operation_end{
      operation_id, "CANCELLED", {}, "cancelled; every member stays at the step it is in"});
  changed.clear_operation_id();
}

// A shutdown that ends halfway: members stay as they are, and what was proven of the whole rack no longer
// holds.
void engine::stop_shutdown() {
  journal::Rack& changed = change();
  changed.set_shutting_down(false);
  changed.set_goal(journal::PLANNED);  // nothing goes on again by itself
  if (changed.step() <= journal::COOLED) return;
  changed.set_step(journal::COOLED);
  changed.set_state(step_word(changed.step()));
  changed.mutable_suite()->Clear();
}

void engine::drive_shutdown() {
  if (!rack().shutting_down()) return;
  bool failed = false;
  for (const auto& [name, member] : run().members) {
    const bool off = is_off(*member);
    const bool tried =
        member->goal() < journal::STAGED;  // before it was told, its failure is that of another day
    const bool stuck = tried && is_failed(*member) && member->failure().step() == member->step();
    failed = failed || stuck;
    if (!off && !stuck) return;
    if (stuck && member->spec().kind() != journal::POWER_SHELF)
      break;  // a host that is not read off keeps its supply
  }
  if (failed) {
    stop_shutdown();
    fail(fault::POWER_OFF_NOT_CONFIRMED, "a member is not read back off; see the failed rows");
    return;
  }
  journal::Rack& changed = change();
  changed.set_shutting_down(false);
  changed.set_goal(journal::PLANNED);
  changed.set_step(journal::PLANNED);
  changed.set_state("planned");
  changed.set_step_entered_wall_ns(now_.wall_ns);
  changed.mutable_suite()->Clear();
  changed.clear_gates();
  tell("shutdown_ended", "every member is read back off");
  if (!changed.operation_id().empty())
    act(core::operation_end{changed.operation_id(), "SUCCEEDED", {}, "every member is read back off"});
  changed.clear_operation_id();
  run().reported.clear();
  run().deadline_ns = core::never_ns;
}

}  // namespace busbar::rack
