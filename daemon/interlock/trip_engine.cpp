#include "daemon/interlock/trip_engine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "actors/core/mutant.hpp"

namespace busbar::interlock {
namespace {

constexpr std::int64_t repeat_max_ns = 5 * s_in_ns;
constexpr std::int64_t read_first_ns = 20 * ms_in_ns;   // after a command was answered
constexpr std::int64_t read_every_ns = 100 * ms_in_ns;  // while a final state is waited for
constexpr int alarm_at_command = 3;
constexpr std::int64_t power_again_ns = 5 * s_in_ns;  // trays' power, while the coolant is beyond a limit
constexpr std::int64_t watch_every_ns = 5 * s_in_ns;  // the power of trays that a trip holds off

std::string_view end_of(target_kind kind) {
  switch (kind) {
    case target_kind::tray:
      return "off";
    case target_kind::shelf:
      return "cut";
    case target_kind::valve:
      return "closed";
  }
  return "?";
}

// A valve starts with ForceOff, but a fast one late enough to be at most 40 % closed at the cut: no plate
// runs dry under load.
std::int64_t valve_start_ns(const trip_plan& plan, const trip_target& valve) {
  if (BUSBAR_MUTANT(trip_closes_a_fast_valve_first)) return 0;
  const auto early = static_cast<std::int64_t>(stroke_at_cut * static_cast<double>(valve.stroke_ns));
  return std::max<std::int64_t>(0, plan.cut_after_ns - early);
}

}  // namespace

bool holds(const trips&, const trip_state& trip, const trip_target& target) {
  if (!trip.rack) return trip.scope == target.key;
  const cause_rule rule = rule_of(trip.cause);
  if (target.kind == target_kind::shelf) return rule.cuts_shelves;
  return target.kind == target_kind::tray || rule.closes_valves;
}

bool watches(const trips& of, const target_state& target) {
  if (target.what.kind != target_kind::tray || (target.wanted && !target.final)) return false;
  return std::any_of(of.open.begin(), of.open.end(),
                     [&of, &target](const auto& entry) { return holds(of, entry.second, target.what); });
}

std::vector<std::string> waits_for(const trips& of, const trip_state& trip) {
  std::vector<std::string> list;
  for (const target_state& each : of.targets) {
    if (!holds(of, trip, each.what) || each.final || trip.closed) continue;
    list.push_back(fmt::format("{} {}", each.what.key, end_of(each.what.kind)));
  }
  return list;
}

target_state* engine::find(const std::string& key) {
  const auto found = std::find_if(of_.targets.begin(), of_.targets.end(),
                                  [&key](const target_state& each) { return each.what.key == key; });
  return found == of_.targets.end() ? nullptr : &*found;
}

// What is known of a target stays; one that the record drops waits for nobody any more.
void engine::adopt(const trip_plan& plan) {
  std::vector<target_state> next;
  for (const trip_target& each : plan.targets) {
    target_state state;
    if (const target_state* old = find(each.key); old != nullptr) state = *old;
    state.what = each;
    next.push_back(std::move(state));
  }
  of_.targets = std::move(next);
  of_.plan = plan;
  // A device that joined while its rack is tripped goes down with it.
  for (const auto& [number, trip] : of_.open) {
    for (target_state& each : of_.targets) {
      const bool now_due = each.what.kind == target_kind::tray || trip.cut;
      if (!each.wanted && now_due && !trip.closed && holds(of_, trip, each.what)) want(each);
    }
  }
}

void engine::write(Latch line) {
  line.set_number(++of_.last_number);
  rest_.push_back(note{std::move(line)});
}

void engine::command_now(target_state& target) {
  ++target.commands;
  target.read_at_ns = now_ns_ + read_every_ns;
  const std::int64_t wait = of_.plan.repeat_after_ns << std::min(target.commands - 1, 3);
  target.repeat_at_ns = now_ns_ + std::min(wait, std::max(repeat_max_ns, of_.plan.repeat_after_ns));
  commands_.push_back(
      command{target.what.key, target.what.device, target.what.valve, target.what.kind, target.commands});
  if (target.commands < alarm_at_command || target.alarmed) return;
  target.alarmed = true;
  say(true, fmt::format("{} is not {} after {} commands, last answer {}; commands go on", target.what.key,
                        end_of(target.what.kind), target.commands - 1,
                        target.last_http <= 0 ? "none" : fmt::format("HTTP {}", target.last_http)));
}

void engine::want(target_state& target) {
  const trip_target what = target.what;
  target = {};
  target.what = what;
  target.wanted = true;
  target.wanted_ns = now_ns_;
  command_now(target);
}

void engine::open(const std::string& scope, Cause cause, const std::string& detail) {
  const bool rack = scope == of_.plan.rack;
  for (const auto& [number, each] : of_.open) {
    if (each.rack && !each.closed && (!rack || each.cause == cause)) return;  // it is on its way already
  }
  trip_state trip;
  trip.number = ++of_.last_number;
  trip.cause = cause;
  trip.scope = scope;
  trip.detail = detail;
  trip.opened_ns = now_ns_;
  trip.rack = rack;
  std::vector<target_state*> trays;
  for (target_state& each : of_.targets) {
    if (each.what.kind == target_kind::tray && holds(of_, trip, each.what)) trays.push_back(&each);
  }
  if (BUSBAR_MUTANT(trip_reverses_the_order)) std::reverse(trays.begin(), trays.end());
  for (target_state* each : trays) {
    if (each->wanted && !each->final) continue;  // another trip commands it already
    want(*each);
  }
  Latch line;
  line.set_number(trip.number);
  line.set_trip(trip.number);
  line.set_kind(Latch::TRIP_OPENED);
  line.set_cause(cause);
  line.set_device(scope);
  line.set_detail(detail);
  rest_.push_back(tell{
      true, fmt::format("TRIP {} of {}: {}: {}", trip.number, scope, std::string(name_of(cause)), detail)});
  rest_.push_back(note{line});
  rest_.push_back(keep_evidence{trip.number});
  of_.open[trip.number] = std::move(trip);
}

// After a restart: latches stand, an open trip goes on where the devices are. Its age is that of the wall
// clock, so that shelves are not left on for another cut_after.
void engine::restore(const std::vector<Latch>& lines, std::int64_t wall_ns) {
  for (const Latch& line : lines) {
    of_.last_number = std::max(of_.last_number, line.number());
    if (line.kind() == Latch::LEAK_SEEN) of_.leaking.insert(line.device());
    if (line.kind() == Latch::TRIP_OPENED) {
      trip_state& trip = of_.open[line.trip()];
      trip.number = line.trip();
      trip.cause = line.cause();
      trip.scope = line.device();
      trip.detail = line.detail();
      trip.rack = line.device() == of_.plan.rack || line.device().find('/') == std::string::npos;
      trip.durable = true;
      trip.opened_ns = now_ns_ - std::clamp<std::int64_t>(wall_ns - line.wall_time_ns(), 0, 3600 * s_in_ns);
    }
    if (line.kind() == Latch::TRIP_CLOSED && of_.open.contains(line.trip()))
      of_.open[line.trip()].closed = true;
    if (line.kind() == Latch::RESET) {
      const bool rack = line.device().find('/') == std::string::npos;
      std::erase_if(of_.open, [&line, rack](const auto& each) {
        return rack ? each.second.rack : each.second.scope == line.device();
      });
      std::erase_if(of_.leaking, [&line, rack, this](const std::string& device) {
        return rack ? of_.plan.rack_sensors.contains(device) : device == line.device();
      });
    }
    if (line.kind() == Latch::BYPASS && line.until_wall_ns() > wall_ns) {
      const std::int64_t left =
          std::min(line.until_wall_ns() - wall_ns, line.until_wall_ns() - line.wall_time_ns());
      of_.bypasses[{line.device(), line.detector()}] = {line.principal(), line.detail(), now_ns_ + left};
    }
    if (line.kind() == Latch::BYPASS_ENDED) of_.bypasses.erase({line.device(), line.detector()});
  }
  if (BUSBAR_MUTANT(trip_forgets_open_trips_at_restart)) of_.open.clear();
  // A leak whose trip did not reach the disk any more (or that an older version only latched) trips now.
  const std::set<std::string> leaking =
      BUSBAR_MUTANT(trip_forgets_open_trips_at_restart) ? std::set<std::string>{} : of_.leaking;
  for (const std::string& device : leaking) {
    const bool rack_sensor = of_.plan.rack_sensors.contains(device);
    const bool covered = std::any_of(of_.open.begin(), of_.open.end(), [&device](const auto& each) {
      return each.second.rack || each.second.scope == device;
    });
    if (!covered) open(rack_sensor ? of_.plan.rack : device, LEAK, "latched before the restart");
  }
  for (const auto& [number, trip] : of_.open) {
    if (!trip.closed)
      say(true, fmt::format("trip {} of {} was open at the restart and is carried on", number, trip.scope));
  }
  // In the order of the record, however many trips hold a tray.
  for (target_state& each : of_.targets) {
    const bool held = std::any_of(of_.open.begin(), of_.open.end(), [this, &each](const auto& entry) {
      return !entry.second.closed && holds(of_, entry.second, each.what);
    });
    if (each.what.kind != target_kind::tray || !held || each.wanted) continue;
    want(each);
    rest_.push_back(read_back{each.what.device});
  }
}

void engine::reached(const std::string& key) {
  target_state* target = find(key);
  if (target == nullptr || !target->wanted || target->final) return;
  target->final = true;
  target->watch_at_ns = now_ns_ + watch_every_ns;
  for (const auto& [number, trip] : of_.open) {
    if (trip.closed || !holds(of_, trip, target->what)) continue;
    Latch line;
    line.set_kind(Latch::STEP_DONE);
    line.set_trip(number);
    line.set_cause(trip.cause);
    line.set_device(key);
    line.set_detail(fmt::format("{} after {} ms, {} commands", end_of(target->what.kind),
                                (now_ns_ - target->wanted_ns) / ms_in_ns, target->commands));
    write(line);
  }
}

// A power-on that was on its way when the trip came, a BMC that restores power, a hand at its console: what a
// trip holds off goes off again, as long as nobody has reset the trip.
void engine::seen_on(const std::string& device) {
  if (BUSBAR_MUTANT(trip_lets_a_host_come_on_again)) return;
  target_state* target = find(device);
  if (target == nullptr || !watches(of_, *target)) return;
  want(*target);
  say(true, fmt::format("{} is on again while a trip holds it off: it is turned off again", device));
}

void engine::watch_held() {
  for (target_state& each : of_.targets) {
    if (now_ns_ < each.watch_at_ns || !watches(of_, each)) continue;
    each.watch_at_ns = now_ns_ + watch_every_ns;
    rest_.push_back(read_back{each.what.device});
  }
}

// An answer is never the end, good or bad: "already off" is read back like anything else.
void engine::command_ended(const std::string& key, int http) {
  target_state* target = find(key);
  if (target == nullptr || !target->wanted || target->final) return;
  target->last_http = http;
  target->read_at_ns = std::min(target->read_at_ns, now_ns_ + (http >= 400 ? 0 : read_first_ns));
  if (http >= 200 && http < 300 && BUSBAR_MUTANT(trip_takes_an_answer_for_the_end)) reached(key);
  if (http >= 400 && BUSBAR_MUTANT(trip_gives_up_at_a_refusal)) target->read_at_ns = INT64_MAX;
}

void engine::move_rack_trip(trip_state& trip) {
  bool trays_off = true;
  for (const target_state& each : of_.targets) {
    if (each.what.kind == target_kind::tray && each.wanted && !each.final) trays_off = false;
  }
  const bool late = now_ns_ >= trip.opened_ns + of_.plan.cut_after_ns;
  const bool cut = trays_off || (late && !BUSBAR_MUTANT(trip_waits_for_every_tray));
  for (target_state& each : of_.targets) {
    if (each.wanted || !holds(of_, trip, each.what)) continue;
    const bool valve = each.what.kind == target_kind::valve;
    if (valve && (cut || now_ns_ >= trip.opened_ns + valve_start_ns(of_.plan, each.what))) want(each);
    if (each.what.kind == target_kind::shelf && cut) want(each);
  }
  trip.cut = trip.cut || cut;
}

void engine::move_target(target_state& target) {
  if (!target.wanted || target.final) return;
  // A tray without power has no BMC to ask: the shelves' own word and its silence together are its off.
  const auto reach = of_.reach.find(target.what.device);
  const bool silent = reach == of_.reach.end() || !reach->second;
  if (target.what.kind == target_kind::tray && silent && every_shelf_is_off(of_))
    return reached(target.what.key);
  if (now_ns_ >= target.repeat_at_ns && !BUSBAR_MUTANT(trip_never_repeats)) command_now(target);
  if (now_ns_ < target.read_at_ns) return;
  target.read_at_ns = now_ns_ + read_every_ns;
  rest_.push_back(read_back{target.what.device});
}

// A wet detector is asked again when its confirm time is over, not at the next poll. Nothing is believed
// without a reading: a flap between two readings stays a flap.
void engine::confirm_due() {
  for (auto& [device, detectors] : of_.sensors) {
    if (of_.leaking.contains(device)) continue;
    for (auto& [detector, sensor] : detectors) {
      if (!sensor.wet_since_ns || sensor.asked) continue;
      const auto rows = of_.plan.confirm_ns.find(device);
      if (rows == of_.plan.confirm_ns.end() || !rows->second.contains(detector)) continue;
      if (now_ns_ < *sensor.wet_since_ns + rows->second.at(detector)) continue;
      sensor.asked = true;
      rest_.push_back(read_detectors{device});
    }
  }
}

void engine::hazard_seen(Cause cause, bool beyond, const std::string& detail) {
  hazard& seen = of_.hazards[cause];
  if (!beyond) {
    seen = {};
    return;
  }
  if (!seen.since_ns) seen.since_ns = now_ns_;
  // Whether anything is on decides whether there is energy to remove.
  if (now_ns_ >= of_.power_asked_ns + power_again_ns || *seen.since_ns == now_ns_) {
    of_.power_asked_ns = now_ns_;
    for (const target_state& each : of_.targets) {
      if (each.what.kind == target_kind::tray) rest_.push_back(read_back{each.what.device});
    }
  }
  if (now_ns_ - *seen.since_ns < of_.plan.coolant_confirm_ns) return;
  const bool tripped = std::any_of(of_.open.begin(), of_.open.end(), [cause](const auto& entry) {
    return entry.second.rack && entry.second.cause == cause;
  });
  if (tripped) return;
  const bool all_off =
      std::all_of(of_.targets.begin(), of_.targets.end(), [this, &seen](const target_state& each) {
        const auto power = of_.power.find(each.what.device);
        const auto reach = of_.reach.find(each.what.device);
        const bool silent = reach == of_.reach.end() || !reach->second;
        // Without a shelf that is on, a silent tray has nothing to run from: so it is after a shutdown.
        return each.what.kind != target_kind::tray || (silent && every_shelf_is_off(of_)) ||
               (power != of_.power.end() && power->second.first == power_seen::off &&
                power->second.second >= *seen.since_ns);
      });
  if (!all_off) return open(of_.plan.rack, cause, detail);
  if (!std::exchange(seen.told, true)) {
    say(true, fmt::format("{}: {}; every host is read off, there is nothing to trip",
                          std::string(name_of(cause)), detail));
  }
}

void engine::bypass_ended(const std::string& device, const std::string& detector, const std::string& why) {
  Latch line;
  line.set_kind(Latch::BYPASS_ENDED);
  line.set_device(device);
  line.set_detector(detector);
  line.set_detail(why);
  write(line);
  say(true, fmt::format("the bypass of {} of {} has ended: {}", detector, device, why));
}

void engine::expire_bypasses() {
  if (BUSBAR_MUTANT(trip_keeps_a_bypass_for_ever)) return;
  for (auto each = of_.bypasses.begin(); each != of_.bypasses.end();) {
    const auto current = each++;
    if (now_ns_ < current->second.until_ns) continue;
    const auto [device, detector] = current->first;
    of_.bypasses.erase(current);
    bypass_ended(device, detector, "its time is over");
  }
}

void engine::release_unheld() {
  for (target_state& each : of_.targets) {
    const bool held = std::any_of(of_.open.begin(), of_.open.end(), [this, &each](const auto& entry) {
      return holds(of_, entry.second, each.what);
    });
    if (!held) {
      const trip_target what = each.what;
      each = {};
      each.what = what;
    }
  }
}

bool engine::all_final(const trip_state& trip) const {
  return std::all_of(of_.targets.begin(), of_.targets.end(), [this, &trip](const target_state& each) {
    return !holds(of_, trip, each.what) || (each.wanted && each.final);
  });
}

void engine::close_finished() {
  for (auto& [number, trip] : of_.open) {
    if (trip.closed || !all_final(trip)) continue;
    trip.closed = true;
    Latch line;
    line.set_kind(Latch::TRIP_CLOSED);
    line.set_trip(number);
    line.set_cause(trip.cause);
    line.set_device(trip.scope);
    line.set_detail(fmt::format("after {} ms", (now_ns_ - trip.opened_ns) / ms_in_ns));
    write(line);
    say(false, fmt::format("trip {} of {} has done its work after {} ms; it stays latched", number,
                           trip.scope, (now_ns_ - trip.opened_ns) / ms_in_ns));
  }
}

void engine::advance() {
  expire_bypasses();
  confirm_due();
  for (auto& [number, trip] : of_.open) {
    if (trip.rack && !trip.closed) move_rack_trip(trip);
  }
  for (target_state& each : of_.targets) move_target(each);
  watch_held();
  // The last tray that goes off is the moment of the cut.
  for (auto& [number, trip] : of_.open) {
    if (trip.rack && !trip.closed) move_rack_trip(trip);
  }
  close_finished();
}

std::vector<trip_effect> engine::take() {
  std::vector<trip_effect> all = std::move(commands_);
  std::move(rest_.begin(), rest_.end(), std::back_inserter(all));
  return all;
}

std::optional<std::int64_t> next_due_ns(const trips& of) {
  std::optional<std::int64_t> due;
  const auto consider = [&due](std::int64_t when) { due = std::min(due.value_or(when), when); };
  for (const target_state& each : of.targets) {
    if (watches(of, each)) consider(each.watch_at_ns);
    if (!each.wanted || each.final) continue;
    consider(each.repeat_at_ns);
    consider(each.read_at_ns);
  }
  for (const auto& [number, trip] : of.open) {
    if (!trip.rack || trip.closed) continue;
    if (!trip.cut) consider(trip.opened_ns + of.plan.cut_after_ns);
    for (const target_state& each : of.targets) {
      if (!each.wanted && each.what.kind == target_kind::valve && holds(of, trip, each.what))
        consider(trip.opened_ns + valve_start_ns(of.plan, each.what));
    }
  }
  for (const auto& [device, detectors] : of.sensors) {
    const auto rows = of.plan.confirm_ns.find(device);
    if (rows == of.plan.confirm_ns.end() || of.leaking.contains(device)) continue;
    for (const auto& [detector, sensor] : detectors) {
      const auto row = rows->second.find(detector);
      if (sensor.wet_since_ns && !sensor.asked && row != rows->second.end())
        consider(*sensor.wet_since_ns + row->second);
    }
  }
  for (const auto& [key, bypass] : of.bypasses) consider(bypass.until_ns);
  return due;
}

}  // namespace busbar::interlock
