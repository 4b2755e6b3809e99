#include "actors/valve/valve_keeping.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "actors/core/errors.hpp"
#include "actors/valve/valve_keeping_parts.hpp"

namespace busbar::valve {
namespace {

using core::fault;

constexpr std::int64_t loop_silent_ns = 5'000'000'000;

class keeping {
 public:
  keeping(keeper& kept, const surroundings& around, core::instant now, keeping_step& out)
      : kept_(kept), around_(around), now_(now), out_(out) {}

  void on(const tick&) { advance(tick{}); }
  void on(const port_read& what);
  void on(const port_wrote& what);
  void on(const operation_began& what);
  void on(const operation_cancelled& what);
  void on(const loop_wants& what);
  void on(const rack_flow& what) {
    kept_.rack_flow = what;
    kept_.rack_flow_at_ns = now_.monotonic_ns;
  }
  void finish();
  void watch_trip();

 private:
  journal::Valve& change() {
    out_.durable = true;
    return kept_.record;
  }
  void advance(const event& what);
  void write(double opening, const std::string& id, bool with_intent);
  void drop_command(std::string_view why);
  void give_back();
  void repeat_if_still(const std::optional<double>& position);
  void close_intents();
  void end_operation(const std::string& state, std::string_view fault_name, const std::string& message);
  journal::Event& tell(std::string_view type, const std::string& message, std::string_view severity = "info");
  void settle_operation();
  void keep_lease();
  void write_lease();
  void keep_conditions();
  bool set_condition(std::string_view type, bool holds, const std::string& message);

  keeper& kept_;
  const surroundings& around_;
  const core::instant now_;
  keeping_step& out_;
};

journal::Event& keeping::tell(std::string_view type, const std::string& message, std::string_view severity) {
  out_.durable = true;
  journal::Event& event = out_.events.emplace_back();
  event.set_object(kept_.record.name());
  event.set_kind("valve");
  event.set_type(std::string(type));
  event.set_severity(std::string(severity));
  event.set_message(message);
  event.set_operation_id(kept_.record.operation_id());
  event.mutable_principal()->set_name("daemon");
  event.mutable_principal()->set_role("system");
  return event;
}

void keeping::close_intents() {
  if (kept_.record.intents().empty()) return;
  for (const journal::Intent& open : kept_.record.intents()) out_.intents_closed.push_back(open.id());
  change().clear_intents();
}

void keeping::end_operation(const std::string& state, std::string_view fault_name,
                            const std::string& message) {
  const std::string id = kept_.record.operation_id();
  if (id.empty()) return;
  change().clear_operation_id();
  const std::string code(fault_name);
  out_.effects.emplace_back(core::component_update{id, kept_.record.name(), state, {}, code, message});
  out_.effects.emplace_back(core::operation_end{id, state, code, message});
}

// The act leaves only with its intent on disk: the shell runs effects after the commit.
void keeping::write(double opening, const std::string& id, bool with_intent) {
  const double percent = std::round(opening * 1e4) / 100.0;
  if (with_intent) {
    const std::string operation = kept_.record.operation_id();
    close_intents();
    journal::Valve& record = change();
    record.set_operation_id(operation);
    record.set_commanded_percent(percent);
    journal::Intent& intent = *record.add_intents();
    intent.set_id(id);
    intent.set_object(record.name());
    intent.set_verb("valve_set");
    (*intent.mutable_arguments())["percent"] = fmt::format("{:g}", percent);
    intent.set_operation_id(operation);
    out_.intents_opened.push_back(intent);
  }
  kept_.seen_before.reset();
  out_.effects.emplace_back(send_write{percent, id});
}

// No command stands any more; where the valve is, it stays.
void keeping::drop_command(std::string_view) {
  kept_.logic.given.reset();
  kept_.logic.proven = proof::none;
  kept_.logic.seen = condition::unknown;
  kept_.may_repeat = false;
  close_intents();
  if (kept_.record.has_commanded_percent()) change().clear_commanded_percent();
}

void keeping::advance(const event& what) {
  const bool was_held = kept_.logic.held.has_value();
  valve_step made = step(kept_.spec, kept_.logic, what, monotonic(now_));
  kept_.logic = std::move(made.state);
  for (const effect& each : made.effects) {
    const auto* position = std::get_if<write_position>(&each);
    const auto* set_point = std::get_if<write_set_point>(&each);
    if (position == nullptr && set_point == nullptr) continue;
    const double opening = position != nullptr ? position->opening : set_point->opening;
    const absl::Status no = refuse_surroundings(kept_, 100.0 * opening, around_);
    if (!no.ok()) {  // the fail position of a valve that was not asked by anybody
      drop_command("withheld");
      tell("fail_position_withheld", std::string(no.message()), "warning");
      continue;
    }
    write(opening, fmt::format("{}/set/{}", kept_.record.name(), kept_.record.next_intent()), true);
    kept_.record.set_next_intent(kept_.record.next_intent() + 1);
  }
  if (was_held && !kept_.logic.held) give_back();
}

// A lease ended. The loops have the valve again; where none speaks, the configured fail position.
void keeping::give_back() {
  const bool loop_lives =
      kept_.loop_at_ns != INT64_MIN && now_.monotonic_ns - kept_.loop_at_ns < loop_silent_ns;
  if (loop_lives || kept_.spec.on_loss == fail_position::in_place) return;
  advance(set_position{"", kept_.spec.on_loss == fail_position::open ? kept_.spec.most : 0.0, "lease-end"});
}

void keeping::on(const port_read& what) {
  reading known;
  if (!what.facts.ok()) return advance(tick{});  // not heard: that is what the watch on communication counts
  if (what.facts->position_percent) known.position = *what.facts->position_percent / 100.0;
  const bool rack_is_fresh = now_.monotonic_ns - kept_.rack_flow_at_ns < kept_.spec.read_age.count();
  const auto either = [rack_is_fresh](const std::optional<double>& own,
                                      const std::optional<double>& of_rack) {
    return own || !rack_is_fresh ? own : of_rack;
  };
  if (kept_.record.spec().rated_lpm() > 0) known.flow_lpm = either(what.facts->flow_lpm, kept_.rack_flow.lpm);
  known.dp_kpa = either(what.facts->dp_kpa, kept_.rack_flow.dp_kpa);
  advance(known);
  repeat_if_still(known.position);
}

// Open whether the valve was asked: two readings that stand still away from the aim say that it was not.
void keeping::repeat_if_still(const std::optional<double>& position) {
  if (!kept_.may_repeat || !kept_.logic.given || kept_.record.intents().empty()) return;
  if (kept_.logic.proven != proof::moving || !position) return;
  const command& given = *kept_.logic.given;
  const std::optional<double> before = std::exchange(kept_.seen_before, position);
  if (std::abs(*position - given.opening) <= kept_.spec.tolerance) {
    kept_.may_repeat = false;
    return;
  }
  if (!before) return;
  if (std::abs(*position - *before) >= kept_.spec.moved) {  // on its way
    kept_.may_repeat = false;
    return;
  }
  kept_.may_repeat = false;
  const absl::Status no = refuse_surroundings(kept_, 100.0 * given.opening, around_);
  if (!no.ok()) {
    end_operation("FAILED", core::name_of(core::fault_of(no).value_or(fault::PREEMPTED)),
                  std::string(no.message()));
    drop_command("withheld");
    return;
  }
  kept_.logic.given->at = monotonic(now_);
  tell("command_repeated",
       fmt::format("asked again for {:g} %: nothing moved since it was to be asked", 100.0 * given.opening));
  write(given.opening, kept_.record.intents(0).id(), false);
}

void keeping::on(const port_wrote& what) {
  if (what.status.ok() || !kept_.logic.given) return advance(tick{});
  const bool ours = !kept_.record.intents().empty() && kept_.record.intents(0).id() == what.id;
  if (!ours) return;
  const bool lost = absl::IsDeadlineExceeded(what.status) || absl::IsUnavailable(what.status);
  if (lost) {  // whether it obeys is read
    kept_.may_repeat = true;
    kept_.seen_before.reset();
    return;
  }
  const auto code = core::fault_of(what.status);
  end_operation("FAILED", code ? core::name_of(*code) : std::string_view(),
                std::string(what.status.message()));
  tell("valve_refused", std::string(what.status.message()), "warning");
  drop_command("refused");
  kept_.logic.proven = proof::failed;
}

void keeping::on(const operation_began& what) {
  const std::string& holder = what.what.principal.name();
  if (what.what.verb == "valve_release") {
    kept_.record.set_operation_id(what.operation_id);
    *tell("lease_released", fmt::format("{} gave the valve back: {}", holder, what.what.reason))
         .mutable_principal() = what.what.principal;
    advance(release_lease{holder});
    if (kept_.record.operation_id() == what.operation_id && kept_.record.intents().empty())
      end_operation("SUCCEEDED", "", fmt::format("given back; mode {}", name_of(kept_.logic.mode)));
    return;
  }
  if (kept_.record.operation_id() != what.operation_id)
    end_operation("CANCELLED", "", "another command of the same holder took its place");
  const double percent = number_in(what.what, "opening_percent").value_or(0);
  change().set_operation_id(what.operation_id);
  advance(take_lease{holder, what.what.reason, lease_of(what.what)});
  write_lease();
  *tell("valve_commanded", fmt::format("{} asks for {:g} %: {}", holder, percent, what.what.reason))
       .mutable_principal() = what.what.principal;
  if (kept_.logic.proven == proof::unproven) kept_.logic.given.reset();  // the same wish is asked anew
  advance(set_position{holder, percent / 100.0, what.operation_id});
  if (kept_.logic.proven == proof::proven)
    end_operation("SUCCEEDED", "", fmt::format("it stands at {:g} % already", percent));
}

void keeping::on(const operation_cancelled& what) {
  if (what.operation_id.empty() || kept_.record.operation_id() != what.operation_id) return;
  // The stem goes on to where it was told: no stroke is stopped halfway by forgetting it.
  end_operation("CANCELLED", "",
                "no longer waited for; the valve goes on to where it was told, the lease stays");
}

void keeping::on(const loop_wants& what) {
  kept_.loop_at_ns = now_.monotonic_ns;
  const double opening = what.percent / 100.0;
  if (kept_.logic.held || kept_.logic.mode != valve_mode::automatic || !kept_.record.intents().empty())
    return;
  if (may_move(kept_.spec, kept_.logic, "", opening, monotonic(now_))) return;
  if (!refuse_surroundings(kept_, what.percent, around_).ok()) return;
  if (kept_.record.has_commanded_percent()) change().clear_commanded_percent();  // the loop's from now on
  valve_step made = step(kept_.spec, kept_.logic, set_position{"", opening, ""}, monotonic(now_));
  kept_.logic = std::move(made.state);
  for (const effect& each : made.effects) {
    if (const auto* position = std::get_if<write_position>(&each)) write(position->opening, "loop", false);
    if (const auto* set_point = std::get_if<write_set_point>(&each)) write(set_point->opening, "loop", false);
  }
}

// What the interlock did is shown, and not fought: commands and leases end, the valve stays where it was put.
void keeping::watch_trip() {
  if (kept_.trip_seen == around_.trip) return;
  kept_.trip_seen = around_.trip;
  if (around_.trip.empty()) {
    set_condition("TRIP_OPEN", false, "");
    tell("trip_over", "the rack's trip is reset; the valve stays where it is until it is commanded");
    return;
  }
  end_operation("FAILED", core::name_of(fault::PREEMPTED), around_.trip);
  drop_command("tripped");
  kept_.logic.held.reset();
  kept_.logic.mode = valve_mode::automatic;
  set_condition("TRIP_OPEN", true, around_.trip);
  tell("held_by_trip", around_.trip, "warning");
}

bool keeping::set_condition(std::string_view type, bool holds, const std::string& message) {
  auto& rows = *kept_.record.mutable_conditions();
  const auto known = std::find_if(rows.begin(), rows.end(),
                                  [type](const journal::Condition& row) { return row.type() == type; });
  if ((known != rows.end()) == holds) return false;
  out_.durable = true;
  if (!holds) {
    rows.erase(known);
    return true;
  }
  journal::Condition& row = *rows.Add();
  row.set_type(std::string(type));
  row.set_message(message);
  row.set_health(journal::HEALTH_BAD);
  row.set_since_wall_ns(now_.wall_ns);
  return true;
}

std::string_view fault_of(condition seen) {
  if (seen == condition::sticking) return core::name_of(fault::VALVE_STICKING);
  if (seen == condition::drifting) return core::name_of(fault::VALVE_DRIFTING);
  if (seen == condition::contradicted) return core::name_of(fault::VALVE_CONTRADICTED);
  return core::name_of(fault::VALVE_STUCK);
}

std::string seen_words(const keeper& kept) {
  std::string text = "position ";
  const std::optional<double> position = position_of(kept);
  text += position ? fmt::format("{:.1f} %", *position) : "unknown";
  if (kept.logic.last && kept.logic.last->flow_lpm)
    text += fmt::format(", flow {:.1f} l/min", *kept.logic.last->flow_lpm);
  return text;
}

void keeping::keep_conditions() {
  struct row {
    condition when;
    fault named;
  };
  for (const row& each :
       {row{condition::stuck, fault::VALVE_STUCK}, row{condition::sticking, fault::VALVE_STICKING},
        row{condition::drifting, fault::VALVE_DRIFTING},
        row{condition::contradicted, fault::VALVE_CONTRADICTED}}) {
    const bool holds = kept_.logic.seen == each.when;
    const std::string message =
        kept_.logic.given
            ? fmt::format("told {:g} %, {}", 100.0 * kept_.logic.given->opening, seen_words(kept_))
            : seen_words(kept_);
    if (!set_condition(core::name_of(each.named), holds, message)) continue;
    journal::Event& event =
        tell(holds ? "condition_set" : "condition_cleared",
             fmt::format("{}: {}", core::name_of(each.named), message), holds ? "warning" : "info");
    event.set_fault(std::string(core::name_of(each.named)));
  }
  const bool bad = !kept_.record.conditions().empty();
  const bool known =
      kept_.logic.heard && kept_.logic.mode != valve_mode::fail_safe && position_of(kept_).has_value();
  const journal::Health health = bad     ? journal::HEALTH_BAD
                                 : known ? journal::HEALTH_GOOD
                                         : journal::HEALTH_UNKNOWN;
  if (kept_.record.health() != health) change().set_health(health);
}

void keeping::keep_lease() {
  const journal::Valve& record = kept_.record;
  if (kept_.logic.held || !record.has_lease()) return;
  const std::string holder = record.lease().holder();
  change().clear_lease();
  tell("lease_ended", fmt::format("the override of {} is over; mode {}", holder, name_of(kept_.logic.mode)));
}

// Written when it is taken or made longer; the wall clock may be set afterwards without being a change of it.
void keeping::write_lease() {
  if (!kept_.logic.held) return;
  const lease& held = *kept_.logic.held;
  journal::Lease& kept = *change().mutable_lease();
  kept.set_holder(held.holder);
  kept.set_reason(held.reason);
  kept.set_until_wall_ns(now_.wall_ns + (held.until - monotonic(now_)).count());
}

// An operation ends by what is read.
void keeping::settle_operation() {
  if (kept_.record.operation_id().empty() || !kept_.logic.given) return;
  const double told = 100.0 * kept_.logic.given->opening;
  if (kept_.logic.proven == proof::proven)
    return end_operation("SUCCEEDED", "", fmt::format("read back at {:g} %: {}", told, seen_words(kept_)));
  if (kept_.logic.proven == proof::failed)
    return end_operation("FAILED", fault_of(kept_.logic.seen),
                         fmt::format("told {:g} %, {}", told, seen_words(kept_)));
  if (kept_.logic.proven == proof::unproven)
    end_operation("FAILED", core::name_of(fault::VALVE_UNPROVEN),
                  fmt::format("told {:g} %, and its position could not be read in time", told));
}

void keeping::finish() {
  const std::string mode(name_of(kept_.logic.mode));
  const std::string proven(name_of(kept_.logic.proven));
  const std::string seen(name_of(kept_.logic.seen));
  const journal::Valve& record = kept_.record;
  const bool moves_by_loop =
      kept_.logic.given && kept_.logic.given->id.empty() && kept_.logic.proven == proof::moving;
  if (record.mode() != mode) change().set_mode(mode);
  if (record.condition() != seen && !moves_by_loop) change().set_condition(seen);
  if (record.proof() != proven && !moves_by_loop) {
    if (kept_.logic.proven == proof::proven) {
      change().set_proven_percent(std::round(position_of(kept_).value_or(0) * 10.0) / 10.0);
      if (!record.operation_id().empty() || !record.intents().empty())
        tell("valve_proven", seen_words(kept_));
    }
    change().set_proof(proven);
  }
  settle_operation();
  const bool decided = kept_.logic.proven == proof::proven || kept_.logic.proven == proof::failed;
  if (decided) close_intents();
  keep_lease();
  keep_conditions();
}

}  // namespace

keeping_step step(keeper& kept, const keeping_event& what, const surroundings& around, core::instant now) {
  keeping_step out;
  keeping next(kept, around, now, out);
  next.watch_trip();
  std::visit([&next](const auto& each) { next.on(each); }, what);
  next.finish();
  return out;
}

}  // namespace busbar::valve
