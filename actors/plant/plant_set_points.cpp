// Which set-points a CDU shall have, and whether it is read to have them: intent, write, read-back.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "actors/core/mutant.hpp"
#include "actors/plant/plant_engine.hpp"

namespace busbar::plant {

namespace {

constexpr double usual_supply_k_per_min = 1.0;
constexpr double usual_dp_kpa_per_s = 5.0;  // up: racks wait for it
constexpr double dp_down_kpa_per_s = 0.2;
constexpr std::int64_t supply_pause_ns = 10 * ns_per_s;
constexpr std::int64_t dp_pause_ns = 2 * ns_per_s;
constexpr double longest_step_s = 3.0;

instant at(std::int64_t monotonic_ns) {
  return instant(monotonic_ns);
}

measurement measured(const std::optional<double>& value, std::int64_t read_at_ns) {
  return value.has_value() ? good(*value, at(read_at_ns)) : measurement{};
}

std::string verb_of(const channel& of) {
  return fmt::format("set_{}", of.word);
}

// What a CDU's register holds.
double rounded(double value) {
  return std::round(value * 10) / 10;
}

void approach(std::optional<double>& target, double goal, double most_down, double most_up) {
  target = target.has_value() ? *target + std::clamp(goal - *target, -most_down, most_up) : goal;
}

bool is_answer(const absl::Status& status) {  // else the write may have taken: what is read tells
  return !absl::IsUnavailable(status) && !absl::IsDeadlineExceeded(status);
}

}  // namespace

channel plant_engine::supply() {
  return {devices::cdu_value::supply_set_point,
          "supply",
          "C",
          0.1,
          0.1,
          supply_pause_ns,
          *state_.cdu.mutable_supply(),
          run().supply,
          fresh() ? run().facts->supply_set_point.value : std::nullopt,
          spec().supply_min_c(),
          spec().supply_max_c()};
}

channel plant_engine::dp() {
  return {devices::cdu_value::dp_set_point,
          "dp",
          "kPa",
          0.5,
          2.0,
          dp_pause_ns,
          *state_.cdu.mutable_dp(),
          run().dp,
          fresh() ? run().facts->dp_set_point.value : std::nullopt,
          spec().dp_min_kpa(),
          spec().dp_max_kpa()};
}

bool plant_engine::may_write() const {
  return is_fresh(state_.run, now_) && state_.run.adopted && spec().authority() != "bms";
}

void plant_engine::take_read(const cdu_read& read) {
  if (!read.facts.ok()) {
    if (run().last_error.empty()) run().last_error = std::string(read.facts.status().message());
    return;
  }
  run().facts = *read.facts;
  run().read_at_ns = now_.monotonic_ns;
  run().last_error.clear();
  if (run().adopted) return;
  run().adopted = true;
  adopt(supply());
  adopt(dp());
}

// The first reading of a life. Nothing is written because this daemon began: the set-points in force are the
// ones that it goes on from, and an intent of the last life is closed by what is read.
void plant_engine::adopt(channel of) {
  if (BUSBAR_MUTANT(plant_bump_at_restart)) return;
  if (!of.read) return;
  of.run.target = *of.read;
  if (of.row.proof() == "waiting") {
    const bool took = std::abs(*of.read - of.row.asked()) <= of.tolerance;
    return conclude(
        of, took ? "proven" : "failed",
        took ? "" : fmt::format("the daemon ended in between; the CDU is read at {} {}", *of.read, of.unit));
  }
  if (cdu().has_lease() && of.row.has_asked()) return;  // the holder's word stays; prove() compares
  const bool known = of.row.has_asked() && std::abs(of.row.asked() - *of.read) <= of.tolerance;
  if (known && of.row.proof() == "proven") return;
  of.row.set_asked(*of.read);
  conclude(of, "proven", fmt::format("adopted: {} {}", *of.read, of.unit));
}

void plant_engine::conclude(channel& of, std::string_view proof, const std::string& why) {
  journal::Cdu& changed = change();
  const std::string verb = verb_of(of);
  auto& intents = *changed.mutable_intents();
  for (int i = intents.size() - 1; i >= 0; --i) {
    if (intents[i].verb() != verb) continue;
    out_.intents_closed.push_back(intents[i].id());
    intents.DeleteSubrange(i, 1);
  }
  of.row.set_proof(std::string(proof));
  of.row.set_since_wall_ns(now_.wall_ns);
  of.row.set_why(proof == "proven" ? std::string() : why);
  of.run.prove_by_ns = core::never_ns;
  if (proof == "proven") of.row.set_proven(of.row.asked());
  if (proof != "proven") of.run.next_write_ns = now_.monotonic_ns + retry_pause_ns;
  tell(fmt::format("set_point_{}", proof),
       fmt::format("{} {} {}: {}{}{}", of.word, of.row.asked(), of.unit, proof, why.empty() ? "" : ": ", why),
       proof == "proven" ? "info" : "warning");
}

void plant_engine::prove(channel of) {
  const std::string& proof = of.row.proof();
  const bool equal = of.read && of.row.has_asked() && std::abs(*of.read - of.row.asked()) <= of.tolerance;
  if (proof == "waiting") {
    if (!run().adopted && of.run.prove_by_ns == core::never_ns)
      of.run.prove_by_ns = now_.monotonic_ns + proof_time_ns;
    if (equal) return conclude(of, "proven", "");
    if (now_.monotonic_ns < of.run.prove_by_ns) return wake_by(of.run.prove_by_ns);
    if (of.read) return conclude(of, "failed", fmt::format("it is read at {} {}", *of.read, of.unit));
    return conclude(of, "unproven", fresh() ? "the CDU does not show this set-point" : "the CDU is not read");
  }
  if (proof == "failed" || proof == "unproven") {
    if (equal) conclude(of, "proven", "");
    return;
  }
  if (proof != "proven" || equal || !of.read || !run().adopted) return;
  if (BUSBAR_MUTANT(plant_setpoint_assumed_proven)) return;
  // Its own panel, the BMS, a reset of the device: somebody else's hand.
  const std::string what =
      fmt::format("{} was {} {} and is read at {} {}", of.word, of.row.asked(), of.unit, *of.read, of.unit);
  tell("set_point_changed_elsewhere", what, "warning");
  if (cdu().has_lease()) return conclude(of, "failed", "changed elsewhere: " + what);
  of.run.target = *of.read;
  change();
  of.row.set_asked(*of.read);
  of.row.set_proven(*of.read);
  of.row.set_since_wall_ns(now_.wall_ns);
  of.run.next_write_ns = now_.monotonic_ns + retry_pause_ns;
}

void plant_engine::ask(channel& of, double value, std::string_view why) {
  journal::Cdu& changed = change();
  const std::string verb = verb_of(of);
  auto& intents = *changed.mutable_intents();
  for (int i = intents.size() - 1; i >= 0; --i) {
    if (intents[i].verb() != verb) continue;
    out_.intents_closed.push_back(intents[i].id());
    intents.DeleteSubrange(i, 1);
  }
  changed.set_next_intent(changed.next_intent() + 1);
  journal::Intent& intent = *changed.add_intents();
  intent.set_id(fmt::format("{}/{}/{}", changed.name(), verb, changed.next_intent()));
  intent.set_object(changed.name());
  intent.set_verb(verb);
  (*intent.mutable_arguments())["value"] = fmt::format("{}", value);
  intent.set_operation_id(changed.operation_id());
  out_.intents_opened.push_back(intent);
  of.row.set_asked(value);
  of.row.set_proof("waiting");
  of.row.set_since_wall_ns(now_.wall_ns);
  of.row.set_why("");
  of.row.set_operation_id(changed.operation_id());
  of.run.prove_by_ns = now_.monotonic_ns + proof_time_ns;
  of.run.next_write_ns = now_.monotonic_ns + of.least_pause_ns;
  tell("set_point_asked", fmt::format("{} {} {}: {}", of.word, value, of.unit, why));
  act(write_set_point{of.what, value});
}

void plant_engine::take_answer(const write_answered& answer) {
  for (channel of : {supply(), dp()}) {
    const bool ours = of.what == answer.what && of.row.proof() == "waiting" &&
                      std::abs(of.row.asked() - answer.value) < 1e-9;
    if (!ours) continue;
    if (!answer.status.ok() && is_answer(answer.status))
      conclude(of, "failed", std::string(answer.status.message()));
    if (answer.status.ok() && BUSBAR_MUTANT(plant_setpoint_assumed_proven)) conclude(of, "proven", "");
  }
}

void plant_engine::move_supply(double dt_s) {
  channel of = supply();
  if (!of.run.target && !BUSBAR_MUTANT(plant_bump_at_restart)) return;  // what is in force is not known
  const double wanted = spec().supply_c() > 0 ? spec().supply_c() : of.run.target.value_or(of.least);
  const double per_min = spec().supply_k_per_min() > 0 ? spec().supply_k_per_min() : usual_supply_k_per_min;
  const double goal = std::clamp(std::max(wanted, run().floor.floor_c), of.least, of.most);
  approach(of.run.target, goal, per_min / 60 * dt_s, per_min / 60 * dt_s);
}

void plant_engine::move_dp(double dt_s) {
  channel of = dp();
  if (!of.run.target && !BUSBAR_MUTANT(plant_bump_at_restart)) return;
  std::vector<rack_demand> valves;
  std::vector<asked_flow> flows;
  bool any_valve = false;
  for (const journal::FedRack& rack : spec().racks()) {
    const double asked = counted_flow_lpm(state_, rack, now_);
    const auto found = run().needs.find(rack.rack());
    const bool live = found != run().needs.end() && found->second.until_ns > now_.monotonic_ns;
    std::optional<double> opening;
    if (live && found->second.valve_percent) opening = *found->second.valve_percent / 100;
    any_valve = any_valve || opening.has_value();
    valves.push_back({true, asked, measured(opening, live ? found->second.heard_ns : 0),
                      live && found->second.short_of_flow});
    asked_flow flow{asked, rack.rated_lpm(), std::nullopt};
    for (const devices::connector_facts& one : run().facts->connectors) {
      if (one.id == rack.rack()) flow.measured_lpm = one.flow_lpm;
    }
    flows.push_back(flow);
  }
  demand_pressure_gains by_demand;
  by_demand.rated_kpa = spec().dp_kpa();
  by_demand.least_kpa = of.least;
  by_demand.most_kpa = of.most;
  double goal = of.run.target.value_or(spec().dp_kpa());
  if (any_valve) {
    supervisor_gains gains;
    gains.least_kpa = of.least;
    gains.most_kpa = of.most;
    auto moved = step(gains, run().supervisor, valves, goal, at(now_.monotonic_ns));
    run().supervisor = std::move(moved.state);
    goal = moved.outputs.set_point_kpa;
  } else {
    const auto moved = step(by_demand, run().pressure, flows, dt_s);
    run().pressure = moved.state;
    goal = moved.set_point_kpa;
  }
  const double per_s = spec().dp_kpa_per_s() > 0 ? spec().dp_kpa_per_s() : usual_dp_kpa_per_s;
  approach(of.run.target, std::clamp(goal, of.least, of.most), std::min(per_s, dp_down_kpa_per_s) * dt_s,
           per_s * dt_s);
}

void plant_engine::write_if_due(channel of) {
  const bool waits = of.row.proof() == "waiting" || now_.monotonic_ns < of.run.next_write_ns;
  if (waits) return;
  if (cdu().has_lease()) {  // the holder's word again, where it was not taken; up to the floor where the air
                            // has become damp
    const bool too_cold = of.what == devices::cdu_value::supply_set_point && of.row.has_asked() &&
                          of.row.asked() < run().floor.floor_c - of.tolerance;
    if (too_cold)
      return ask(of, std::min(of.most, rounded(run().floor.floor_c)),
                 "the dew point has risen above the override");
    if (of.row.proof() == "failed" || of.row.proof() == "unproven")
      ask(of, of.row.asked(), "again: it was not taken");
    return;
  }
  if (!of.run.target) return;
  const double value = std::clamp(rounded(*of.run.target), of.least, of.most);
  const bool again = of.row.proof() == "failed" || of.row.proof() == "unproven";
  const bool away = !of.row.has_asked() || std::abs(value - of.row.asked()) >= of.dead_band - 1e-9;
  if (again || away) ask(of, value, again ? "again: it was not taken" : "automatic");
}

void plant_engine::decide() {
  if (!fresh()) return;
  const double dt_s =
      run().stepped_ns
          ? std::min(longest_step_s, static_cast<double>(now_.monotonic_ns - *run().stepped_ns) / 1e9)
          : 0.0;
  run().stepped_ns = now_.monotonic_ns;
  const devices::cdu_facts& facts = *run().facts;
  const std::int64_t read_at = run().read_at_ns;
  auto damp = step(dew_point_limits{}, run().dew, measured(facts.air_c, read_at),
                   measured(facts.humidity_percent, read_at), measured(facts.supply_c, read_at),
                   at(now_.monotonic_ns));
  run().dew = damp.state;
  run().floor = damp.outputs;
  if (!may_write()) return;
  if (!cdu().has_lease()) {
    move_supply(dt_s);
    move_dp(dt_s);
  }
  write_if_due(supply());
  write_if_due(dp());
}

void plant_engine::finish_operation() {
  const std::string& id = cdu().operation_id();
  if (id.empty()) return;
  std::string bad, good_ones;
  for (const channel& of : {supply(), dp()}) {
    if (of.row.operation_id() != id) continue;
    if (of.row.proof() == "waiting") return;
    const std::string text = fmt::format("{} {} {}: {}{}{}", of.word, of.row.asked(), of.unit, of.row.proof(),
                                         of.row.why().empty() ? "" : ", ", of.row.why());
    std::string& list = of.row.proof() == "proven" ? good_ones : bad;
    list += (list.empty() ? "" : "; ") + text;
  }
  if (bad.empty()) return end_operation("SUCCEEDED", {}, good_ones);
  end_operation("FAILED", core::name_of(core::fault::SETPOINT_NOT_PROVEN), bad);
}

}  // namespace busbar::plant
