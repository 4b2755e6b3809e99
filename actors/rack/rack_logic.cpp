#include "actors/rack/rack_logic.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "actors/core/mutant.hpp"
#include "actors/rack/rack_engine.hpp"
#include "actors/rack/rack_members.hpp"

namespace busbar::rack {

using core::fault;

namespace {

// The arrow out of each step: its deadline (a key of the baseline, default in seconds) and the fault that a
// late one is named by.
struct arrow {
  journal::RackStep from;
  std::string_view deadline_key;
  std::int64_t default_s;
  fault late;
};

constexpr std::array arrows{
    arrow{journal::PLANNED, "standby", 900, fault::DEADLINE},
    arrow{journal::STANDBY, "ingested", 1800, fault::DEADLINE},
    arrow{journal::INGESTED, "cooled", 600, fault::POWER_FLOW_NOT_PROVEN},
    arrow{journal::COOLED, "powered", 1800, fault::DEADLINE},
    arrow{journal::POWERED, "nvlink_ready", 14400, fault::NVLINK_LINK_COUNT},
    arrow{journal::NVLINK_READY, "node_validated", 3600, fault::SUITE_INCOMPLETE},
    arrow{journal::NODE_VALIDATED, "rack_validated", 1800, fault::SUITE_INCOMPLETE},
    arrow{journal::RACK_VALIDATED, "production", 600, fault::DEADLINE},
};

constexpr bool has_no_gap() {
  for (std::size_t i = 0; i < arrows.size(); ++i) {
    if (arrows[i].from != static_cast<journal::RackStep>(journal::PLANNED + static_cast<int>(i)))
      return false;
  }
  return arrows.size() == static_cast<std::size_t>(journal::RACK_PRODUCTION - journal::PLANNED);
}
static_assert(has_no_gap(), "every rack step has one arrow out, with a deadline");

const arrow* arrow_from(journal::RackStep step) {
  const auto found =
      std::find_if(arrows.begin(), arrows.end(), [step](const arrow& row) { return row.from == step; });
  return found == arrows.end() ? nullptr : &*found;
}

// The configuration phases run between powered and nvlink_ready: their deadlines are the members' own and add
// to the fabric's.
std::int64_t limit_ns(const journal::RackSpec& spec, const arrow& row) {
  constexpr std::int64_t ns_per_s = 1'000'000'000;
  const auto find = [&spec](std::string_view key, std::int64_t otherwise_s) {
    const auto found = spec.baseline().deadlines().find(std::string(key));
    return found == spec.baseline().deadlines().end()
               ? otherwise_s * ns_per_s
               : found->second.seconds() * ns_per_s + found->second.nanos();
  };
  if (row.from == journal::POWERED) {
    return find("nvlink_ready", 600) + find("inspected", 600) + find("firmware", 10800) +
           find("configured", 1800);
  }
  if (row.from == journal::NVLINK_READY) return find("node_validated", 0) + find("validated", 1800);
  return find(row.deadline_key, row.default_s);
}

}  // namespace

journal::Event& engine::tell(std::string_view type, std::string message, std::string_view severity) {
  out_.durable = true;
  journal::Event& event = out_.events.emplace_back();
  event.set_object(rack().name());
  event.set_kind("rack");
  event.set_type(std::string(type));
  event.set_severity(std::string(severity));
  event.set_message(std::move(message));
  event.set_operation_id(rack().operation_id());
  return event;
}

bool engine::is_bringing_up() const {
  return !rack().operation_id().empty() && !rack().shutting_down() &&
         rack().goal() == journal::RACK_PRODUCTION;
}

void engine::set_condition(std::string_view type, bool good, std::string_view message) {
  set_condition(type, good ? journal::HEALTH_GOOD : journal::HEALTH_BAD, message);
}

void engine::set_condition(std::string_view type, journal::Health health, std::string_view message) {
  const bool good = health == journal::HEALTH_GOOD;
  for (const journal::Condition& known : rack().conditions()) {
    if (known.type() != type) continue;
    if (known.health() == health && (good || known.message() == message)) return;
  }
  journal::Rack& changed = change();
  auto& rows = *changed.mutable_conditions();
  for (int i = rows.size() - 1; i >= 0; --i) {
    if (rows[i].type() == type) rows.DeleteSubrange(i, 1);
  }
  journal::Condition& row = *rows.Add();
  row.set_type(std::string(type));
  row.set_message(std::string(message));
  row.set_health(health);
  row.set_since_wall_ns(now_.wall_ns);
  tell("condition_set", fmt::format("{}: {}", type, message), good ? "info" : "warning");
}

bool engine::is_shown(std::string_view type) const {
  const auto& rows = rack().conditions();
  return std::any_of(rows.begin(), rows.end(), [type](const auto& row) { return row.type() == type; });
}

void engine::watch_conditions() {
  const journal::CoolingSpec& limits = rack().spec().manifest().cooling();
  // While flow soaks or the first reading is out, the state is unknown: shown as not proven, never as good.
  const auto flow = flow_not_proven(run().cooling, limits, now_);
  if (!flow.has_value()) set_condition("FLOW_PROVEN", true, "flow and pressure in band");
  // Told once: its words carry readings, and readings are not state.
  const auto bad =
      std::find_if(rack().conditions().begin(), rack().conditions().end(), [](const journal::Condition& row) {
        return row.type() == "FLOW_PROVEN" && row.health() == journal::HEALTH_BAD;
      });
  if (flow.has_value() && run().cooling.in_band_since_ns == core::never_ns &&
      bad == rack().conditions().end()) {
    set_condition("FLOW_PROVEN", false, flow->why);
  }
  const auto wet = rack_detectors_not_dry(run().cooling, now_);
  set_condition("RACK_DETECTORS_DRY", !wet.has_value(), wet.has_value() ? wet->why : "rope and pan are dry");
  if (run().interlock != nullptr) {
    const gate_verdict armed = judge_rack(*run().interlock);
    const std::string word = armed.allowed ? "true" : "false";
    const auto known = rack().facts().find("interlock_armed");
    if (known == rack().facts().end() || known->second != word)
      (*change().mutable_facts())["interlock_armed"] = word;
    set_condition("INTERLOCK_ARMED", armed.allowed, armed.allowed ? "armed for the rack" : armed.reason);
  }
}

// At rest the reason is on the row as well: the first condition that is not good, else the first failed
// member.
void engine::show_why() {
  if (is_bringing_up() || rack().shutting_down() || rack().has_failure()) return;
  std::string why;
  for (const journal::Condition& row : rack().conditions()) {
    if (row.health() != journal::HEALTH_GOOD && why.empty()) why = row.message();
  }
  for (const auto& [name, member] : run().members) {
    if (is_failed(*member) && why.empty()) why = fmt::format("{}: {}", name, member->failure().fault());
  }
  const bool ours = rack().step() == journal::RACK_PRODUCTION || rack().goal() == journal::PLANNED;
  if (ours && rack().waits_for() != why) change().set_waits_for(why);
}

void engine::enter_step(journal::RackStep step) {
  journal::Rack& changed = change();
  const std::string from = step_word(changed.step());
  changed.set_step(step);
  changed.set_step_entered_wall_ns(now_.wall_ns);
  // `production` is said when the members have arrived there too (finish_bringup).
  changed.set_state(step == journal::RACK_PRODUCTION ? step_word(journal::RACK_VALIDATED) : step_word(step));
  changed.set_waits_for("");
  journal::Event& event = tell("step_entered", fmt::format("{} -> {}", from, step_word(step)));
  (*event.mutable_details())["from"] = from;
  (*event.mutable_details())["to"] = step_word(step);
  run().deadline_ns = core::never_ns;
  if (step == journal::NODE_VALIDATED)
    (*changed.mutable_gates())["node"] = is_gate("node") ? "passed" : "NOT_REQUIRED";
}

bool engine::is_gate(std::string_view gate) const {
  const auto& gates = rack().spec().manifest().gates();
  return std::find(gates.begin(), gates.end(), gate) != gates.end();
}

void engine::fail(fault code, const std::string& message) {
  journal::Rack& changed = change();
  journal::Failure& failure = *changed.mutable_failure();
  failure.set_fault(std::string(core::name_of(code)));
  failure.set_message(message);
  failure.set_wall_time_ns(now_.wall_ns);
  changed.set_state(ceiling_of(changed.spec(), run().members) == "cordoned" ? "cordoned" : "troubleshooting");
  journal::Event& event = tell("step_failed", message, "error");
  event.set_fault(failure.fault());
  (*event.mutable_details())["step"] = step_word(changed.step());
  stop_suite();
  if (!changed.operation_id().empty()) {
    report_rows();
    act(core::operation_end{changed.operation_id(), "FAILED", failure.fault(), message});
    changed.clear_operation_id();
  }
}

void engine::check_deadline() {
  const arrow* const row = arrow_from(rack().step());
  if (row == nullptr || !is_bringing_up() || rack().has_failure()) return;
  if (run().deadline_ns == core::never_ns)
    run().deadline_ns = now_.monotonic_ns + limit_ns(rack().spec(), *row);
  if (now_.monotonic_ns < run().deadline_ns) return;
  fail(row->late,
       fmt::format("{} not left in its time; it waits for {}", step_word(rack().step()), rack().waits_for()));
}

// What the arrow out of the present step still waits for; empty: it may be taken.
std::string engine::what_it_waits_for() {
  const journal::RackSpec& spec = rack().spec();
  const std::string members = members_wait(rack().step(), spec, run().members);
  if (!members.empty()) return members;
  if (rack().step() == journal::PLANNED) {
    if (run().interlock == nullptr) return "the interlock's first heartbeat";
    const gate_verdict armed = judge_rack(*run().interlock);
    if (!armed.allowed) return "the interlock: " + armed.reason;
    if (const auto wet = rack_detectors_not_dry(run().cooling, now_)) return wet->why;
  }
  if (rack().step() == journal::INGESTED) {
    if (const auto flow = flow_not_proven(run().cooling, spec.manifest().cooling(), now_)) return flow->why;
  }
  if (rack().step() == journal::POWERED) {
    if (const auto fabric = prove_fabric()) return fabric->why;
  }
  if (rack().step() == journal::NODE_VALIDATED) {
    if (const auto suite_wait = drive_suite()) return suite_wait->why;
  }
  return {};
}

bool engine::try_arrow() {
  const std::string wait = what_it_waits_for();
  if (rack().has_failure()) return false;
  if (!wait.empty()) {
    if (rack().waits_for() != wait) change().set_waits_for(wait);
    return false;
  }
  enter_step(static_cast<journal::RackStep>(rack().step() + 1));
  return true;
}

void engine::advance() {
  const std::string ceiling = ceiling_of(rack().spec(), run().members);
  if (rack().ceiling() != ceiling) change().set_ceiling(ceiling);
  const bool in_service =
      rack().step() == journal::RACK_PRODUCTION && !rack().shutting_down() && rack().operation_id().empty();
  const bool lower = (ceiling == "cordoned" && rack().state() != "cordoned") ||
                     (ceiling == "degraded" && rack().state() == "production");
  if (in_service && lower) {
    change().set_state(ceiling);  // raised again only by a bring-up
    tell("state_lowered", fmt::format("members failed: the rack is {}", ceiling), "error");
  }
  if (!is_bringing_up() || rack().has_failure()) return;
  if (ceiling == "cordoned") {
    const auto bad = std::find_if(run().members.begin(), run().members.end(),
                                  [](const auto& row) { return is_failed(*row.second); });
    const fault first = bad == run().members.end()
                            ? fault::DEADLINE
                            : core::fault_named(bad->second->failure().fault()).value_or(fault::DEADLINE);
    fail(first, "too few members are left for the SKU's minimum; see the failed rows");
    return;
  }
  // What the step waits for whole, and what has failed of it, needs no deadline to be told.
  const bool at_shelves = rack().step() == journal::PLANNED, at_valves = rack().step() == journal::STANDBY;
  const auto whole = of_kind(run().members, at_shelves ? journal::POWER_SHELF : journal::RACK_CONTROLLER);
  const auto bad = std::find_if(whole.begin(), whole.end(), [](const auto& one) { return is_failed(*one); });
  if ((at_shelves || at_valves) && bad != whole.end()) {
    fail(core::fault_named((*bad)->failure().fault()).value_or(fault::DEADLINE),
         at_shelves
             ? fmt::format("shelf {} failed before standby: {}", (*bad)->name(), (*bad)->failure().message())
             : fmt::format("{} failed, and without it a trip cannot close the rack's valves: {}",
                           (*bad)->name(), (*bad)->failure().message()));
    return;
  }
  while (rack().step() < journal::RACK_PRODUCTION && try_arrow()) {
  }
  check_deadline();
}

journal::NodeStep engine::wanted_goal(const journal::Node& member) const {
  if (!node::is_switched(member) && (rack().shutting_down() || rack().goal() != journal::RACK_PRODUCTION))
    return std::max(member.step(), journal::DECLARED);  // a shutdown leaves it alone
  // Under a trip what is on is the interlock's to turn off, in its order: nothing is asked for that would do
  // it.
  const bool tripped = open_trip(run().interlock.get(), rack().name()) != nullptr;
  if (tripped && !rack().shutting_down() && member.leak_latched())
    return std::max(member.step(), journal::STAGED);
  if (rack().shutting_down()) {
    const auto all_off = [this](journal::MemberKind kind) {
      const auto found = of_kind(run().members, kind);
      return std::all_of(found.begin(), found.end(), [](const auto& node) { return is_off(*node); });
    };
    const bool compute_off = all_off(journal::COMPUTE_TRAY);
    const bool switches_off = compute_off && all_off(journal::SWITCH_TRAY);
    const bool may = member.spec().kind() == journal::COMPUTE_TRAY ||
                     (member.spec().kind() == journal::SWITCH_TRAY && compute_off) || switches_off ||
                     BUSBAR_MUTANT(shelves_cut_first);
    return may ? journal::CREDENTIALED : std::max(member.step(), journal::STAGED);
  }
  if (rack().goal() != journal::RACK_PRODUCTION) return std::max(member.step(), journal::DECLARED);
  return goal_of(rack().step(), rack(), member);
}

void engine::tell_goals() {
  for (const auto& [name, member] : run().members) {
    node::rack_view view;
    view.goal = wanted_goal(*member);
    const auto own = run().member_operations.find(name);
    view.operation_id = own == run().member_operations.end() ? rack().operation_id() : own->second;
    view.bringing_up = is_bringing_up();
    const auto before = run().told.find(name);
    if (before != run().told.end() && before->second.goal == view.goal &&
        before->second.operation_id == view.operation_id && before->second.bringing_up == view.bringing_up)
      continue;
    run().told[name] = view;
    act(tell_member{name, view});
  }
}

void engine::take_command(const rack_event& event) {
  if (const auto* up = std::get_if<begin_bringup>(&event)) {
    begin_bringup_now(*up);
  } else if (const auto* down = std::get_if<begin_shutdown>(&event)) {
    journal::Rack& changed = change();
    changed.set_operation_id(down->operation_id);
    changed.set_shutting_down(true);
    changed.set_goal(journal::PLANNED);
    stop_suite();
    changed.clear_failure();
    changed.set_state("shutting_down");
    run().reported.clear();
    tell("shutdown_started", "compute trays, then switch trays, then shelves");
  } else if (const auto* stop = std::get_if<cancel_operation>(&event)) {
    cancel(stop->operation_id);
  } else if (const auto* watched = std::get_if<watch_member>(&event)) {
    run().member_operations[watched->member] = watched->operation_id;
  } else if (const auto* trusted = std::get_if<trust_cdu>(&event)) {
    journal::Rack& changed = change();
    (*changed.mutable_facts())[std::string(cdu_pin_fact)] = trusted->pin;
    (*changed.mutable_facts())[std::string(cdu_address_fact)] = rack().spec().manifest().cooling().address();
    tell("pin_trusted", fmt::format("certificate pin of the CDU set by an operator: {}", trusted->reason),
         "warning");
  }
}

void engine::take_observation(const rack_event& event) {
  if (const auto* changed = std::get_if<member_changed>(&event)) {
    run().members[changed->node->name()] = changed->node;
  } else if (const auto* cooling = std::get_if<cooling_read>(&event)) {
    take_cooling(run().cooling, rack().spec().manifest().cooling(), cooling->facts, now_);
    keep_cdu_pin();
    keep_rack_detectors();
  } else if (const auto* heard = std::get_if<interlock_heard>(&event)) {
    run().interlock = heard->view;
    end_stale_blind_windows();
  } else if (const auto* latches = std::get_if<latches_read>(&event)) {
    import_latches(latches->latches);
  } else if (const auto* answered = std::get_if<record_answered>(&event)) {
    take_record_answer(*answered);
  } else if (const auto* of_plant = std::get_if<plant_heard>(&event)) {
    plant::take_answer(run().plant, of_plant->view, now_);
  } else if (const auto* wanted = std::get_if<permit_wanted>(&event)) {
    want(*wanted);
  } else if (const auto* released = std::get_if<permit_released>(&event)) {
    release(released->member);
  } else if (const auto* fabric = std::get_if<nvlink_read>(&event)) {
    run().nvlink[fabric->member] = fabric->facts;
  } else if (const auto* power = std::get_if<power_read>(&event)) {
    take_power(*power);
  } else if (const auto* of_power = std::get_if<power_judged>(&event)) {
    const auto& rows = rack().conditions();
    const bool shown = std::any_of(rows.begin(), rows.end(), [of_power](const auto& row) { return row.type() == of_power->type; });
    if (of_power->holds || shown) set_condition(of_power->type, !of_power->holds, of_power->message);
  } else if (const auto* said = std::get_if<agent_said>(&event)) {
    take_suite_agent(said->event);
  } else if (const auto* judged = std::get_if<suite_judged>(&event)) {
    take_suite_result(judged->result);
  }
}

void engine::take(const rack_event& event) {
  take_command(event);
  take_observation(event);
  if (rack().has_spec()) {
    watch_conditions();
    watch_latches();
    watch_record();
    watch_shape();
    watch_plant();
    watch_latch_file();
    watch_trips();
    watch_power();
    show_why();
    advance();
    report_rows();
    drive_shutdown();
    withdraw_permits();
    grant_permits();
    tell_goals();
    finish_bringup();
    finish_member_operations();
  }
  if (!is_bringing_up() || rack().has_failure()) return;  // nothing of these would be judged
  wake_by(run().deadline_ns);
  wake_by(run().nvlink_again_ns);
  wake_by(run().test_deadline_ns);
  wake_by(run().looking.until_ns);
}

step_result step(rack_state& state, const rack_event& event, core::instant now) {
  step_result out;
  engine(state, now, out).take(event);
  return out;
}

}  // namespace busbar::rack
