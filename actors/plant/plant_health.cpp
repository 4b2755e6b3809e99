// What is said of a CDU: its conditions, its health, and whether it is short of what its racks ask for.
#include <fmt/format.h>

#include <algorithm>

#include "actors/plant/plant_engine.hpp"

namespace busbar::plant {

namespace {

constexpr double warm_k = 3.0;                        // above the set-point
constexpr std::int64_t warm_time_ns = 60 * ns_per_s;  // load steps pass
constexpr double starved_share = 0.90;                // of what racks ask for
constexpr std::int64_t starved_time_ns = 30 * ns_per_s;

journal::Health health_of(const std::string& word) {
  if (word == "OK") return journal::HEALTH_GOOD;
  if (word == "Warning" || word == "Critical") return journal::HEALTH_BAD;
  return journal::HEALTH_UNKNOWN;
}

// True for so long; forgets when it is not true.
bool lasts(std::optional<std::int64_t>& since, bool is_so, std::int64_t now_ns, std::int64_t length_ns) {
  if (!is_so) since.reset();
  if (is_so && !since) since = now_ns;
  return is_so && now_ns - *since >= length_ns;
}

}  // namespace

void plant_engine::set_condition(std::string_view type, journal::Health health, const std::string& message) {
  for (journal::Condition& row : *state_.cdu.mutable_conditions()) {
    if (row.type() != type) continue;
    // Words of a standing condition may carry values; they are told once.
    if (row.health() == health) return;
    change();
    row.set_health(health);
    row.set_message(message);
    row.set_since_wall_ns(now_.wall_ns);
    tell("condition_set", fmt::format("{}: {}", type, message),
         health == journal::HEALTH_BAD ? "warning" : "info");
    return;
  }
  journal::Condition& row = *change().add_conditions();
  row.set_type(std::string(type));
  row.set_health(health);
  row.set_message(message);
  row.set_since_wall_ns(now_.wall_ns);
  if (health != journal::HEALTH_GOOD) tell("condition_set", fmt::format("{}: {}", type, message), "warning");
}

void plant_engine::judge_short() {
  run().short_why.clear();
  if (!fresh()) return;  // not known is not short: the racks see the age
  const devices::cdu_facts& facts = *run().facts;
  double asked = 0;
  for (const journal::FedRack& rack : spec().racks()) asked += counted_flow_lpm(state_, rack, now_);
  const bool warm = facts.supply_c && facts.supply_set_point.value &&
                    *facts.supply_c > *facts.supply_set_point.value + warm_k;
  const bool starved = facts.flow_lpm && asked > 0 && *facts.flow_lpm < starved_share * asked;
  const bool is_warm = lasts(run().warm_since_ns, warm, now_.monotonic_ns, warm_time_ns);
  const bool is_starved = lasts(run().starved_since_ns, starved, now_.monotonic_ns, starved_time_ns);
  const bool stopped =
      !facts.pumps.empty() && std::all_of(facts.pumps.begin(), facts.pumps.end(),
                                          [](const auto& pump) { return pump.running == false; });
  if (stopped) {
    run().short_why = fmt::format("every pump of {} stands", cdu().name());
  } else if (is_warm) {
    run().short_why = fmt::format("{} gives {:.1f} C, its set-point is {:.1f} C", cdu().name(),
                                  *facts.supply_c, *facts.supply_set_point.value);
  } else if (is_starved) {
    run().short_why =
        fmt::format("{} gives {:.0f} L/min, its racks ask for {:.0f}", cdu().name(), *facts.flow_lpm, asked);
  }
}

journal::Health plant_engine::judge_detectors() {
  using journal::HEALTH_BAD, journal::HEALTH_GOOD, journal::HEALTH_UNKNOWN;
  const devices::cdu_facts& facts = *run().facts;
  journal::Health dry = facts.detectors.empty() ? HEALTH_UNKNOWN : HEALTH_GOOD;
  std::string wet = facts.detectors.empty() ? "it shows no detectors" : "every detector is dry";
  google::protobuf::RepeatedPtrField<journal::Detector> rows;
  for (const devices::detector_facts& one : facts.detectors) {
    journal::Detector& row = *rows.Add();
    row.set_name(one.name);
    row.set_verdict(one.verdict);
    row.set_detail(one.detail);
    if (one.verdict == journal::Detector::DRY || dry == HEALTH_BAD) continue;
    dry = one.verdict == journal::Detector::LEAK ? HEALTH_BAD : HEALTH_UNKNOWN;
    wet = fmt::format("{}: {}", one.name, one.detail);
  }
  const auto same = [](const auto& a, const auto& b) {
    return a.name() == b.name() && a.verdict() == b.verdict();
  };
  if (!std::equal(rows.begin(), rows.end(), cdu().detectors().begin(), cdu().detectors().end(), same))
    *change().mutable_detectors() = rows;
  set_condition("CDU_DETECTORS_DRY", dry, wet);
  return dry;
}

void plant_engine::judge() {
  using journal::HEALTH_BAD, journal::HEALTH_GOOD, journal::HEALTH_UNKNOWN;
  const bool waited = now_.monotonic_ns - run().began_ns > cdu_stale_ns;
  if (!fresh() && !waited) return;  // just begun: nothing is known, and nothing new is said
  judge_short();
  journal::Health worst = HEALTH_GOOD;
  const auto take = [&worst](journal::Health health) {
    if (health == HEALTH_BAD) worst = HEALTH_BAD;
    if (health == HEALTH_UNKNOWN && worst == HEALTH_GOOD) worst = HEALTH_UNKNOWN;
  };
  const auto say = [this, &take](std::string_view type, journal::Health health, const std::string& message) {
    set_condition(type, health, message);
    take(health);
  };
  say("CDU_READ", fresh() ? HEALTH_GOOD : HEALTH_BAD,
      fresh()                    ? "readings are fresh"
      : run().last_error.empty() ? "it does not answer"
                                 : run().last_error);
  for (const channel& of : {supply(), dp()}) {
    const std::string& proof = of.row.proof();
    if (proof.empty() || proof == "waiting") continue;
    const std::string type =
        of.what == devices::cdu_value::supply_set_point ? "SUPPLY_SET_POINT" : "PRESSURE_SET_POINT";
    say(type,
        proof == "proven"   ? HEALTH_GOOD
        : proof == "failed" ? HEALTH_BAD
                            : HEALTH_UNKNOWN,
        proof == "proven" ? "read as asked" : fmt::format("{}: {}", proof, of.row.why()));
  }
  if (!fresh()) {
    if (cdu().health() != HEALTH_BAD) change().set_health(HEALTH_BAD);
    return;
  }
  const devices::cdu_facts& facts = *run().facts;
  say("CDU_HEALTH", health_of(facts.health),
      facts.health.empty() ? "the CDU does not say" : "the CDU says " + facts.health);
  const auto turning = std::count_if(facts.pumps.begin(), facts.pumps.end(),
                                     [](const auto& pump) { return pump.running == true; });
  if (spec().pumps() > 0) {
    const bool enough = turning >= static_cast<std::ptrdiff_t>(spec().pumps());
    say("PUMPS",
        facts.pumps.empty() ? HEALTH_UNKNOWN
        : enough            ? HEALTH_GOOD
                            : HEALTH_BAD,
        fmt::format("{} of {} pumps are read running", turning, spec().pumps()));
  }
  take(judge_detectors());
  if (run().floor.alarm.has_value()) {
    say("DEW_POINT", *run().floor.alarm ? HEALTH_BAD : HEALTH_GOOD,
        *run().floor.alarm
            ? fmt::format("supply is near the dew point of {:.1f} C", run().floor.dew_point_c.value_or(0))
            : "supply is above the dew point with its margin");
  }
  say("COOLING_SHORT", run().short_why.empty() ? HEALTH_GOOD : HEALTH_BAD,
      run().short_why.empty() ? "the CDU gives what is asked" : run().short_why);
  if (cdu().health() != worst) change().set_health(worst);
}

}  // namespace busbar::plant
