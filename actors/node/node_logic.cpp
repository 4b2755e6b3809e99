#include "actors/node/node_logic.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "actors/core/mutant.hpp"
#include "actors/node/identity_logic.hpp"
#include "actors/node/login_phases.hpp"
#include "actors/node/node_machine.hpp"
#include "actors/node/node_table.hpp"
#include "actors/node/power_watch.hpp"
#include "actors/node/trip_watch.hpp"

namespace busbar::node {
namespace {

using journal::NodeStep;

// Runs one member's phases for one event.
class engine {
 public:
  engine(node_state& state, core::instant now, step_result& out)
      : state_(state), now_(now), out_(out), machine_(state, now, out) {}

  void take(const node_event& event);

 private:
  void on_view(const rack_view& view);
  void on_retry(const retry& command);
  void on_release(const release_bmc& command);
  void on_trust(const trust_pin& command);
  void check_declared_identity();
  void on_agent(const agent_news& news);
  void on_latch(const leak_latch& latch);
  void on_trip(const trip_held& trip);
  void on_look(const call_done& done);
  bool handle_outside_phases(const node_event& event);
  void restart_arrow();
  std::span<const phase> current_phases();
  const arrow* current_arrow() const;
  bool wants_work() const;
  bool wants_down() const;
  void drive();
  void apply(const outcome& result);
  void finish_phases();
  void fail(const outcome& result);
  void check_deadlines();
  void show_waiting(std::string_view text);
  void enter_arrow();
  const phase* phase_at() {
    const auto phases = current_phases();
    return run().phase < phases.size() ? &phases[run().phase] : nullptr;
  }
  run_state& run() { return state_.run; }
  journal::Node& node() { return state_.node; }

  node_state& state_;
  core::instant now_;
  step_result& out_;
  machine machine_;
};

std::string step_word(NodeStep step) {
  std::string word = journal::NodeStep_Name(step);
  std::transform(word.begin(), word.end(), word.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return word;
}

const arrow* engine::current_arrow() const {
  for (const arrow& candidate : arrows_of(state_.node.spec().kind())) {
    if (candidate.from == state_.node.step()) return &candidate;
  }
  return nullptr;
}

bool engine::wants_down() const {
  const journal::Node& now_at = state_.node;
  if (now_at.step() < journal::CREDENTIALED || now_at.hold() != journal::HOLD_NONE) return false;
  if (!is_switched(now_at)) return false;
  if (is_tripped(now_at)) return false;  // the interlock turns it off, in the order of a trip
  // A host whose detectors cannot be seen past the end of the blind window is turned off, whatever its goal.
  const bool blind_too_long =
      now_at.blind_window() && now_at.has_failure() && now_at.power().observed() == journal::POWER_ON;
  if (now_at.goal() >= journal::STAGED && !blind_too_long) return false;
  if (now_at.has_failure() && now_at.failure().step() == now_at.step())
    return false;  // it would not go off: an operator's turn
  return is_energised_step(now_at.step()) || now_at.power().observed() == journal::POWER_ON ||
         now_at.power().observed() == journal::POWERING_ON || now_at.power().wanted() == journal::POWER_ON;
}

bool engine::wants_work() const {
  if (state_.node.hold() == journal::RELEASED) return false;
  if (state_.node.hold() == journal::RELEASING) return !state_.node.has_failure();
  if (wants_down()) return true;
  if (state_.node.has_failure()) return false;
  if ((state_.run.nvlink_waits || state_.run.look_waits) && !state_.run.session_open)
    return true;  // after a restart of ours, at its goal already
  return current_arrow() != nullptr && state_.node.goal() > state_.node.step();
}

std::span<const phase> engine::current_phases() {
  if (node().hold() == journal::RELEASING) return release_phases();
  if (run().reconnecting) return reconnect_phases();
  if (run().going_down) return power_down_phases();
  if (run().recheck) return recheck_phases();
  const arrow* const now_at = current_arrow();
  return now_at == nullptr ? std::span<const phase>{} : now_at->phases;
}

void engine::restart_arrow() {
  if (run().permit_held) machine_.act(release_permit{});
  if (run().test_running) machine_.act(cancel_run{node().suite().run_id()});
  const run_state before = std::exchange(run(), run_state{});
  run().session_open = before.session_open;
  run().own_session = before.own_session;
  run().next_call = before.next_call;  // an answer to an older call matches nothing any more
  run().recheck = before.recheck;
  run().nvlink_call = before.nvlink_call;
  run().nvlink_waits = before.nvlink_waits;
  run().look_call = before.look_call;
  run().look_waits = before.look_waits;
  run().look_tripped = before.look_tripped;
  run().off_reads = before.off_reads;
  run().failed_looks = before.failed_looks;
}

void engine::enter_arrow() {
  run().started = true;
  run().phase = 0;
  run().attempts = 0;
  run().going_down = wants_down();
  const bool has_account = node().step() >= journal::CREDENTIALED || node().access().account_created();
  run().reconnecting = has_account && !run().session_open && node().hold() == journal::HOLD_NONE;
  const arrow* const now_at = current_arrow();
  const std::int64_t limit =
      run().going_down || now_at == nullptr
          ? machine_.deadline_of("graceful_off", 120) + machine_.deadline_of("host_off", 60)
          : machine_.deadline_of(now_at->deadline_key, now_at->default_deadline_s);
  run().deadline_ns = now_.monotonic_ns + limit;
}

void engine::show_waiting(std::string_view text) {
  if (text.empty() || state_.node.waits_for() == text) return;
  machine_.change().set_waits_for(std::string(text));
}

void engine::on_view(const rack_view& view) {
  if (view.operation_id != node().operation_id()) {
    machine_.change().set_operation_id(view.operation_id);
    if (view.bringing_up && lost_its_power(node())) take_up_again(machine_);
    if (view.bringing_up && node().hold() == journal::RELEASED) {
      machine_.change().set_hold(journal::HOLD_NONE);
      machine_.tell("taken_up_again", "a bring-up takes over the BMC that was handed back");
    }
  }
  if (view.goal == node().goal()) return;
  const bool was_down = wants_down();
  const bool rises = view.goal >= journal::STAGED && node().goal() < journal::STAGED;
  machine_.change().set_goal(view.goal);
  // A shutdown asked anew tries anew what did not go off.
  if (view.goal < journal::STAGED && node().has_failure() && node().failure().step() == node().step()) {
    machine_.change().clear_failure();
  }
  if (was_down != wants_down()) restart_arrow();
  // Before a tray is energised anew: it may have been exchanged while it was off.
  if (rises && node().step() == journal::CREDENTIALED) run().recheck = true;
}

void engine::on_retry(const retry& command) {
  journal::Node& changed = machine_.change();
  changed.set_hold(journal::HOLD_NONE);
  // Credentials are for the tray that the manifest means now.
  if (changed.step() == journal::IDENTIFIED && declared_difference(changed).has_value())
    changed.set_step(journal::DISCOVERED);
  const NodeStep failed_from = changed.step();
  if (command.from >= journal::DISCOVERED && command.from <= failed_from) {
    changed.set_step(static_cast<NodeStep>(command.from - 1));  // --from names the step to reach again
    changed.clear_suite();
  }
  changed.clear_failure();
  if (!command.operation_id.empty()) changed.set_operation_id(command.operation_id);
  changed.set_step_entered_wall_ns(now_.wall_ns);
  machine_.tell("retried", fmt::format("goes on at {}", step_word(changed.step())));
  restart_arrow();
  run().recheck = changed.step() >= journal::CREDENTIALED;  // earlier arrows look at identity themselves
}

void engine::on_release(const release_bmc& command) {
  journal::Node& changed = machine_.change();
  changed.set_hold(journal::RELEASING);
  changed.clear_failure();
  changed.set_operation_id(command.operation_id);
  changed.set_step_entered_wall_ns(now_.wall_ns);
  machine_.tell("release_started", fmt::format("the BMC is to be handed back: {}", command.reason),
                "warning");
  restart_arrow();
  run().recheck = false;
}

void engine::on_trust(const trust_pin& command) {
  machine_.change().mutable_identity()->set_pin_sha256(command.pin);
  machine_.change().mutable_access()->set_interlock_armed(false);  // its record has the old pin
  machine_.tell("pin_trusted", fmt::format("certificate pin set by an operator: {}", command.reason),
                "warning");
  run().session_open = false;  // the driver at work holds the old pin
  run().own_session = false;
  on_retry(retry{});
}

// The manifest may have come to mean another tray than the one that was looked at. That one is not in
// production any more, whatever it had reached; its energy is left as it is.
void engine::check_declared_identity() {
  if (node().step() < journal::IDENTIFIED || node().has_failure() || node().hold() != journal::HOLD_NONE)
    return;
  if (run().recheck || BUSBAR_MUTANT(wrong_serial_accepted)) return;  // it is about to be read anew
  const auto other = declared_difference(node());
  if (!other.has_value()) return;
  journal::Node& changed = machine_.change();
  // Credentialed is what a later tray falls to: its host, if it is on, is still ours to turn off.
  changed.set_step(changed.step() >= journal::CREDENTIALED ? journal::CREDENTIALED : journal::DISCOVERED);
  changed.clear_suite();
  fail(outcome::fail(other->code, other->message, other->expected, other->seen));
  changed.mutable_failure()->set_step(journal::IDENTIFIED);
}

// A tray with a latched leak has failed, whatever it had reached, and its power is unknown until it is read
// again: its own reaction may have turned it off. The reset only opens the way for a retry.
void engine::on_latch(const leak_latch& latch) {
  journal::Node& changed = machine_.change();
  changed.set_leak_latched(latch.latched);
  machine_.tell(latch.latched ? "leak_latched" : "leak_latch_reset", latch.detail,
                latch.latched ? "error" : "warning");
  if (!latch.latched) return;
  show_wet(machine_, latch);
  changed.mutable_power()->set_observed(journal::POWER_UNKNOWN);
  changed.mutable_boot()->set_agent_connected(false);
  changed.set_step(std::min(changed.step(), journal::CREDENTIALED));
  if (is_tripped(changed)) changed.clear_failure();  // the leak is the cause, and its latch stays longer
  if (changed.has_failure()) return restart_arrow();
  fail(outcome::fail(core::fault::POWER_LEAK_LATCHED, latch.detail, latch.detector + " dry",
                     latch.detector + " wet"));
}

void engine::on_trip(const trip_held& trip) {
  const auto ended = take_trip(machine_, trip);
  if (!ended.has_value()) return;
  if (node().leak_latched() && node().has_failure()) return restart_arrow();  // its leak is named already
  fail(*ended);  // also over an older failure: this is why it is off
  machine_.change().clear_suite();
}

void engine::on_agent(const agent_news& news) {
  using kind = validation::agent_event::kind;
  if (news.event.what == kind::hello) {
    journal::Boot& boot = *machine_.change().mutable_boot();
    boot.set_boot_id(news.event.hello.boot_id());
    boot.set_agent_serial(news.event.hello.dmi_serial());
    boot.set_agent_connected(true);
  } else if (news.event.what == kind::lost) {
    run().agent_before = false;
    run().went_down = true;
    machine_.change().mutable_boot()->set_agent_connected(false);
  } else if (news.event.what == kind::refused) {
    run().agent_refused = news.event;
  }
}

void engine::on_look(const call_done& done) {
  if (const auto lost = take_look(machine_, done)) fail(*lost);
}

bool engine::handle_outside_phases(const node_event& event) {
  if (const auto* view = std::get_if<rack_view>(&event)) {
    on_view(*view);
  } else if (const auto* again = std::get_if<retry>(&event)) {
    on_retry(*again);
  } else if (const auto* trusted = std::get_if<trust_pin>(&event)) {
    on_trust(*trusted);
  } else if (const auto* handed_back = std::get_if<release_bmc>(&event)) {
    on_release(*handed_back);
  } else if (const auto* unlocked = std::get_if<unlock_logins>(&event)) {
    machine_.change().mutable_access()->set_login_failures(0);
    machine_.change().mutable_access()->clear_wrong_logins();
    machine_.tell("logins_unlocked",
                  fmt::format("login attempts allowed again by an operator: {}", unlocked->reason),
                  "warning");
  } else if (const auto* session = std::get_if<session_opened>(&event)) {
    machine_.change().mutable_access()->set_session_uri(session->uri);  // deleted first after a restart
  } else if (const auto* latch = std::get_if<leak_latch>(&event)) {
    on_latch(*latch);
  } else if (const auto* trip = std::get_if<trip_held>(&event)) {
    on_trip(*trip);
  } else if (const auto* off = std::get_if<interlock_read_off>(&event)) {
    take_read_off(machine_, *off);
  } else if (const auto* news = std::get_if<agent_news>(&event)) {
    on_agent(*news);
    return false;  // phases see it too
  } else if (const auto* conflict = std::get_if<endpoint_conflict>(&event)) {
    if (!node().has_failure() && node().step() <= journal::DISCOVERED) {
      fail(outcome::fail(conflict->fault, conflict->message, conflict->expected, conflict->seen));
    }
  } else if (std::holds_alternative<read_nvlink_now>(event)) {
    run().nvlink_waits = true;
  } else if (const auto* done = std::get_if<call_done>(&event);
             done != nullptr && done->id == run().nvlink_call && done->id != 0) {
    take_nvlink(machine_, *done);
  } else if (const auto* look = std::get_if<look_at_power>(&event)) {
    want_look(machine_, *look);
  } else if (const auto* sight = std::get_if<interlock_sight>(&event)) {
    take_sight(machine_, *sight);
  } else if (const auto* read = std::get_if<call_done>(&event);
             read != nullptr && read->id == run().look_call && read->id != 0) {
    on_look(*read);
  } else if (const auto* seen = std::get_if<endpoint_seen>(&event);
             seen != nullptr && node().identity().address() != seen->address &&
             node().step() <= journal::DISCOVERED) {
    journal::Identity& identity = *machine_.change().mutable_identity();
    identity.set_address(seen->address);
    identity.set_source(seen->source);
    return false;
  } else {
    return false;
  }
  return true;
}

void engine::fail(const outcome& result) {
  const arrow* const now_at = current_arrow();
  journal::Node& changed = machine_.change();
  journal::Failure& failure = *changed.mutable_failure();
  const bool releasing = changed.hold() == journal::RELEASING;
  failure.set_step(now_at == nullptr || run().going_down || releasing ? changed.step() : now_at->to);
  // Refused before anything was done: the tray is as it was.
  if (releasing && changed.step() > journal::DISCOVERED) changed.set_hold(journal::HOLD_NONE);
  failure.set_fault(std::string(core::name_of(result.fault)));
  failure.set_message(result.message);
  failure.set_expected(result.expected);
  failure.set_seen(result.seen);
  failure.set_wall_time_ns(now_.wall_ns);
  changed.set_health(journal::HEALTH_BAD);
  changed.set_waits_for("an operator: " + std::string(core::text_of(result.fault).next_step));
  journal::Event& event = machine_.tell("step_failed", result.message, "error");
  event.set_fault(failure.fault());
  (*event.mutable_details())["step"] = step_word(failure.step());
  (*event.mutable_details())["expected"] = result.expected;
  (*event.mutable_details())["seen"] = result.seen;
  restart_arrow();
}

void engine::finish_phases() {
  if (run().reconnecting) {
    run().reconnecting = false;
    run().session_open = true;
    run().phase = 0;
    run().waiting = false;
    run().attempts = 0;
    return;
  }
  if (node().hold() != journal::HOLD_NONE) return restart_arrow();  // handed back
  if (run().recheck && !run().going_down) {
    run().recheck = false;
    run().phase = 0;
    return;
  }
  const bool went_down = run().going_down;
  const arrow* const now_at = current_arrow();
  journal::Node& changed = machine_.change();
  const NodeStep from = changed.step();
  const NodeStep to = went_down ? std::min(from, journal::CREDENTIALED) : now_at->to;
  changed.set_step(to);
  changed.set_step_entered_wall_ns(now_.wall_ns);
  changed.set_waits_for("");
  if (!went_down) changed.set_health(journal::HEALTH_GOOD);
  judge_health(machine_);
  if (went_down) changed.clear_suite();
  journal::Event& event =
      machine_.tell("step_entered", fmt::format("{} -> {}", step_word(from), step_word(to)));
  (*event.mutable_details())["from"] = step_word(from);
  (*event.mutable_details())["to"] = step_word(to);
  restart_arrow();
}

void engine::apply(const outcome& result) {
  const auto phases = current_phases();
  run().waiting = false;
  run().again_at_ns = core::never_ns;
  switch (result.kind) {
    case outcome_kind::wait:
      run().waiting = true;
      return;
    case outcome_kind::again:
      run().waiting = true;
      run().open_call = 0;
      ++run().attempts;
      run().again_at_ns = core::after(now_, result.delay);
      return;
    case outcome_kind::next:
      ++run().phase;
      break;
    case outcome_kind::jump: {
      const auto found = std::find_if(phases.begin(), phases.end(),
                                      [&result](const phase& p) { return p.id == result.target; });
      if (found == phases.end())
        return fail(outcome::fail(core::fault::DEADLINE, "the table has no phase to go on with"));
      run().phase = static_cast<std::size_t>(found - phases.begin());
      break;
    }
    case outcome_kind::arrow_done:
      run().phase = phases.size();
      break;
    case outcome_kind::fail:
      fail(result);
      return;
  }
  run().open_call = 0;
  run().attempts = 0;
  run().phase_deadline_ns = core::never_ns;
  if (run().phase >= phases.size()) finish_phases();
}

void engine::check_deadlines() {
  if (!run().started || now_.monotonic_ns < run().deadline_ns) return;
  if (run().reconnecting && run().look_waits && give_look_up(machine_)) return restart_arrow();
  const phase* const at = phase_at();
  const core::fault phase_fault = at == nullptr ? core::fault::DEADLINE : at->deadline_fault;
  const auto exact = core::fault_of(run().last_error);
  const std::string waited = at == nullptr ? "its work" : std::string(at->waits_for);
  fail(
      outcome::fail(exact.value_or(phase_fault),
                    fmt::format("not reached in its time while waiting for {}{}{}", waited,
                                run().last_error.ok() ? "" : ": ", std::string(run().last_error.message()))));
}

// Enters phases until one waits. Bounded: a cycle of phases that never waits is a fault of the table.
void engine::drive() {
  for (int turns = 0; turns < 64; ++turns) {
    if (!wants_work()) {
      if (run().started) restart_arrow();
      return;
    }
    if (!run().started) enter_arrow();
    if (run().waiting) {
      if (run().again_at_ns > now_.monotonic_ns) return;
      run().again_at_ns = core::never_ns;
      run().waiting = false;
    }
    const phase* const at = phase_at();
    if (at == nullptr) {
      finish_phases();
      continue;
    }
    show_waiting(at->waits_for);
    apply(at->enter(machine_));
  }
}

void engine::take(const node_event& event) {
  check_deadlines();
  // Trouble that is over names no later deadline.
  if (const call_done* const done = machine_.result_of(event); done != nullptr && done->status.ok())
    run().last_error = absl::OkStatus();
  if (const auto* done = std::get_if<call_done>(&event);
      done != nullptr && done->id != 0 &&
      (done->id == run().open_call || done->id == run().nvlink_call || done->id == run().look_call))
    count_refused_login(machine_, *done);
  if (!handle_outside_phases(event) && run().started && run().waiting && wants_work()) {
    const phase* const at = phase_at();
    if (at != nullptr && at->take != nullptr && run().again_at_ns == core::never_ns) {
      const outcome result = at->take(machine_, event);
      if (result.kind != outcome_kind::wait) apply(result);
    }
  }
  check_declared_identity();
  drive();
  ask_beside(machine_, run().going_down);
  if (!run().started) return;
  out_.wake_at_ns = std::min(run().again_at_ns, run().deadline_ns);
  // One that has passed is judged with the answer that is out; waking for it again would be at once, for
  // ever.
  if (run().phase_deadline_ns > now_.monotonic_ns)
    out_.wake_at_ns = std::min(out_.wake_at_ns, run().phase_deadline_ns);
}

}  // namespace

step_result step(node_state& state, const node_event& event, core::instant now) {
  step_result out;
  engine(state, now, out).take(event);
  return out;
}

bool is_energised_step(NodeStep step) {
  return step >= journal::STAGED;
}

}  // namespace busbar::node
