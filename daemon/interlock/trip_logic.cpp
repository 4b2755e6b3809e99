#include "daemon/interlock/trip_logic.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "actors/core/mutant.hpp"
#include "daemon/interlock/trip_engine.hpp"

namespace busbar::interlock {
namespace {

using verdict = DetectorReading;

constexpr std::int64_t wet_gap_ns = s_in_ns;  // beside the confirm time, between two wet readings

std::int64_t confirm_ns(const trips& of, const std::string& device, const std::string& detector) {
  if (BUSBAR_MUTANT(trip_ignores_confirm_time)) return 0;
  const auto found = of.plan.confirm_ns.find(device);
  if (found == of.plan.confirm_ns.end()) return 0;
  const auto row = found->second.find(detector);
  return row == found->second.end() ? 0 : row->second;
}

// The first believed detector of a device latches it: one leak, one latch, however long it stays wet.
void leak_confirmed(engine& with, const std::string& device, const std::string& detector,
                    const reading& seen) {
  trips& of = with.of();
  if (!of.leaking.insert(device).second) return;
  const bool of_rack =
      of.plan.rack_sensors.contains(device) && !BUSBAR_MUTANT(trip_takes_rack_leak_for_a_tray);
  const auto trays = std::count_if(of.leaking.begin(), of.leaking.end(), [&of](const std::string& each) {
    return !of.plan.rack_sensors.contains(each);
  });
  const bool many = trays >= rack_leak_trays && !BUSBAR_MUTANT(trip_counts_one_leak_at_a_time);
  Latch line;
  line.set_kind(Latch::LEAK_SEEN);
  line.set_device(device);
  line.set_detector(detector);
  line.set_detail(seen.detail);
  with.write(line);
  if (of_rack || many) {
    with.open(of.plan.rack, LEAK,
              fmt::format("{} at {}{}", detector, device, many ? ", a further tray" : ""));
  } else if (BUSBAR_MUTANT(trip_takes_every_tray_for_one)) {
    with.open(of.plan.rack, LEAK, detector);
  } else {
    with.open(device, LEAK, fmt::format("{} at {}", detector, device));
  }
}

void take_reading(engine& with, const std::string& device, const std::string& detector, const reading& seen,
                  std::int64_t took_ns) {
  trips& of = with.of();
  sensor_state& sensor = of.sensors[device][detector];
  if (seen.seen == verdict::DRY) {
    sensor = {};
    return;
  }
  // Unknown is no answer: it neither starts nor ends nor confirms what was seen before.
  const bool wet = seen.seen == verdict::LEAK ||
                   (seen.seen == verdict::UNKNOWN && BUSBAR_MUTANT(trip_takes_unknown_for_a_leak));
  if (!wet) {
    if (BUSBAR_MUTANT(trip_takes_unknown_for_dry)) sensor = {};
    return;
  }
  const std::int64_t confirm = confirm_ns(of, device, detector);
  // Two flaps with a gap between them in which nothing was known are not one long leak.
  if (!sensor.wet_since_ns || with.now() - sensor.wet_last_ns > confirm + wet_gap_ns)
    sensor.wet_since_ns = with.now();
  sensor.wet_last_ns = with.now();
  sensor.asked = false;
  // What confirms was read after the confirm time, every part of it: a poll that began before proves nothing.
  const std::int64_t age = with.now() - *sensor.wet_since_ns - (confirm > 0 ? took_ns : 0);
  if (age >= confirm) leak_confirmed(with, device, detector, seen);
}

void on(engine& with, const plan_changed& what) {
  with.adopt(what.plan);
}

void on(engine& with, const sensors_read& what) {
  trips& of = with.of();
  bool all_dry = !what.readings.empty();
  for (const auto& [detector, seen] : what.readings) {
    if (is_bypassed(of, what.device, detector)) continue;
    all_dry = all_dry && seen.seen == verdict::DRY;
    take_reading(with, what.device, detector, seen, what.took_ns);
  }
  if (all_dry && BUSBAR_MUTANT(trip_clears_its_latch_when_dry)) {
    of.leaking.erase(what.device);
    std::erase_if(of.open, [&what](const auto& each) { return each.second.scope == what.device; });
  }
}

void on(engine& with, const coolant_read& what) {
  trips& of = with.of();
  const trip_plan& plan = of.plan;
  const auto judge = [&with](Cause cause, std::optional<double> value, std::optional<double> limit,
                             bool below) {
    if (!limit || !value) return;  // not watched, or not known
    with.hazard_seen(cause, below ? *value < *limit : *value > *limit,
                     fmt::format("{:.1f}, limit {:.1f}", *value, *limit));
  };
  judge(NO_FLOW, what.flow_lpm, plan.flow_min_lpm, true);
  judge(OVER_TEMPERATURE, what.supply_c, plan.supply_max_c, false);
  judge(OVER_PRESSURE, what.pressure_kpa, plan.pressure_max_kpa, false);
  of.suspicion.add(with.now(), what.pressure_kpa, what.level_percent);
  // A detector that sees the leak has tripped already; the suspicion is for the leak that none sees.
  const bool suspected = of.suspicion.suspected() && of.leaking.empty();
  if (suspected == of.suspected) return;
  of.suspected = suspected;
  with.say(suspected, suspected ? "suspected leak: pressure and level fall and no detector sees a leak"
                                : "the suspicion of a leak has ended");
}

void on(engine& with, const power_read& what) {
  with.of().power[what.device] = {what.seen, with.now()};
  if (what.seen == power_seen::off) with.reached(what.device);
  if (what.seen == power_seen::on) with.seen_on(what.device);
}

void on(engine& with, const valve_read& what) {
  if (what.open_percent && *what.open_percent <= valve_closed_percent) with.reached(what.key);
}

void on(engine& with, const command_ended& what) {
  with.command_ended(what.key, what.http);
}

// What a BMC said before it was lost and what it says afterwards are not one reading: a flap on each side of a
// restart is no leak that lasted.
void on(engine& with, const reach_changed& what) {
  trips& of = with.of();
  of.reach[what.device] = what.online;
  if (what.online) return;
  for (auto& [detector, sensor] : of.sensors[what.device]) sensor = {};
}

void on(engine& with, const trip_asked& what) {
  with.open(what.scope, what.cause, what.detail);
}

void on(engine& with, const trips_restored& what) {
  with.restore(what.lines, what.wall_ns);
}

void on(engine& with, const latch_reset& what) {
  trips& of = with.of();
  const bool rack = what.scope == of.plan.rack;
  std::erase_if(of.open, [&what, rack](const auto& each) {
    return each.second.closed && (rack ? each.second.rack : each.second.scope == what.scope);
  });
  std::erase_if(of.leaking, [&what, rack, &of](const std::string& device) {
    return rack ? of.plan.rack_sensors.contains(device) : device == what.scope;
  });
  for (auto& [device, detectors] : of.sensors) {
    if (rack ? of.plan.rack_sensors.contains(device) : device == what.scope) detectors.clear();
  }
  with.release_unheld();
}

void on(engine& with, const bypass_set& what) {
  trips& of = with.of();
  const auto key = std::pair(what.device, what.detector);
  if (what.until_ns <= with.now()) {
    if (of.bypasses.erase(key) != 0) with.bypass_ended(what.device, what.detector, "by " + what.owner);
    return;
  }
  of.bypasses[key] = {what.owner, what.reason, what.until_ns};
  of.sensors[what.device].erase(what.detector);
  Latch line;
  line.set_kind(Latch::BYPASS);
  line.set_device(what.device);
  line.set_detector(what.detector);
  line.set_principal(what.owner);
  line.set_detail(what.reason);
  line.set_until_wall_ns(what.until_wall_ns);
  with.write(line);
  with.say(true, fmt::format("{} of {} is bypassed by {} for {} s: {}", what.detector, what.device,
                             what.owner, (what.until_ns - with.now()) / s_in_ns, what.reason));
}

void on(engine&, const tick&) {}

}  // namespace

std::vector<trip_effect> step(trips& of, const trip_event& what, std::int64_t now_ns) {
  engine with(of, now_ns);
  std::visit([&with](const auto& each) { on(with, each); }, what);
  with.advance();
  return with.take();
}

bool is_bypassed(const trips& of, const std::string& device, const std::string& detector) {
  return of.bypasses.contains({device, detector});
}

const trip_state* trip_over(const trips& of, const std::string& device) {
  for (const auto& [number, each] : of.open) {
    if (each.rack || each.scope == device) return &each;
  }
  return nullptr;
}

bool every_shelf_is_off(const trips& of) {
  bool any = false;
  for (const target_state& each : of.targets) {
    if (each.what.kind != target_kind::shelf) continue;
    const auto seen = of.power.find(each.what.device);
    if (seen == of.power.end() || seen->second.first != power_seen::off) return false;
    any = true;
  }
  return any;
}

}  // namespace busbar::interlock
