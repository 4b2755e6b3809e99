#include "tests/unit/interlock/trip_world.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tests/unit/interlock/trip_rig.hpp"

namespace busbar::interlock::test {
namespace {

constexpr std::int64_t step_ns = 25 * ms_in_ns;
constexpr std::int64_t poll_ns = 250 * ms_in_ns;
constexpr std::int64_t length_ns = 40 * s_in_ns;
constexpr std::int64_t wall_offset_ns = 1'700'000'000 * s_in_ns;
const std::vector<std::string> trays{"r01/c01", "r01/c02", "r01/c03", "r01/s01"};
const std::vector<std::string> shelves{"r01/p01", "r01/p02"};
const std::vector<std::string> valves{"r01/m01/supply", "r01/m01/return"};

std::vector<std::string> detectors_of(const std::string& device) {
  if (device == "cdu01") return {"r01_rope", "r01_pan"};
  return device == "r01/s01" ? std::vector<std::string>{"leakage1", "leakage2"} : four_detectors;
}

ArmingRecord record_of(unsigned stroke_ms, int confirm_ms) {
  ArmingRecord record = trip_record(stroke_ms, confirm_ms);
  record.mutable_devices(3)->add_detectors("leakage2");
  if (confirm_ms > 0) {
    Confirm* row = record.mutable_devices(3)->add_confirm();
    row->set_detector("leakage2");
    row->set_confirm_ms(confirm_ms);
  }
  return record;
}

int place_of(const std::string& key) {
  const auto found = std::find(trays.begin(), trays.end(), key);
  return found == trays.end() ? -1 : static_cast<int>(found - trays.begin());
}

}  // namespace

trip_world::trip_world(std::uint64_t seed) : seed_(seed), random_(seed) {
  draw();
}

std::int64_t trip_world::pick(std::int64_t least, std::int64_t most) {
  return least + static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(most - least + 1));
}

void trip_world::draw() {
  stroke_ms_ = static_cast<unsigned>(
      std::vector<int>{300, 1'000, 4'000, 5'000, 15'000}[static_cast<std::size_t>(pick(0, 4))]);
  confirm_ms_ = chance(50) ? 0 : static_cast<int>(pick(100, 1'500));
  leak_kind_ = static_cast<int>(pick(0, 3));
  for (const std::string& each : trays) {
    body& of = bodies_[each];
    of.ignores = chance(25) ? static_cast<int>(pick(1, 3)) : 0;
    of.on = chance(85);
    of.says_already = chance(30);
    if (chance(15)) {
      of.deaf_from_ns = start_ns_;
      of.deaf_until_ns = start_ns_ + pick(5'000, 12'000) * ms_in_ns;
    }
  }
  for (const std::string& each : shelves) bodies_[each].ignores = chance(15) ? 1 : 0;
  for (const std::string& each : valves) bodies_[each].ignores = chance(15) ? 1 : 0;
  if (chance(40)) restart_at_ns_ = start_ns_ + pick(1'000, 16'000) * ms_in_ns;
  draw_operation();
  draw_sensors();
}

void trip_world::draw_operation() {
  operation_ = static_cast<operation>(pick(0, 3));
  operation_at_ns_ = start_ns_ + pick(500, 8'000) * ms_in_ns;
  if (operation_ == operation::none) return;
  operation_tray_ = operation_ == operation::firmware ? static_cast<std::size_t>(pick(0, 3)) : 0;
  if (operation_ != operation::bring_up) return;
  for (const std::string& each : trays) bodies_[each].on = false;
}

// What the rack daemon does: it asks before each act whether a trip is open, and its request is then on its
// way for a while.
void trip_world::run_operation() {
  for (const power_on_due& each : std::exchange(power_ons_, {})) {
    if (each.at_ns > now_ns_) {
      power_ons_.push_back(each);
      continue;
    }
    body& host = bodies_[each.tray];
    if (!fed() || host.on || now_ns_ < host.deaf_until_ns) continue;
    host.on = true;
    host.came_on_ns = now_ns_;
  }
  if (operation_ == operation::none || now_ns_ < operation_at_ns_ || operation_stopped_) return;
  operation_at_ns_ = now_ns_ + pick(200, 900) * ms_in_ns;
  if (!of_.open.empty()) {
    operation_stopped_ = true;
    return;
  }
  if (operation_ == operation::firmware) {
    body& bmc = bodies_[trays[operation_tray_]];
    bmc.deaf_from_ns = now_ns_;
    bmc.deaf_until_ns = now_ns_ + pick(2'000, 6'000) * ms_in_ns;
    operation_ = operation::validation;  // what follows it touches no device
  }
  if (operation_ == operation::bring_up && operation_tray_ < trays.size())
    power_ons_.push_back({now_ns_ + pick(25, 400) * ms_in_ns, trays[operation_tray_++]});
}

void trip_world::draw_sensors() {
  const std::int64_t from = start_ns_ + pick(2'000, 8'000) * ms_in_ns;
  std::vector<std::pair<std::string, std::string>> wet;
  if (leak_kind_ == 1 || leak_kind_ == 2)
    wet.emplace_back(trays[static_cast<std::size_t>(pick(0, 1))], "0_Manifold");
  if (leak_kind_ == 2) wet.emplace_back("r01/s01", "leakage1");
  if (leak_kind_ == 3) wet.emplace_back("cdu01", "r01_rope");
  for (const auto& each : wet) wet_from_ns_[each] = from + pick(0, 4'000) * ms_in_ns;
  if (chance(40)) dries_after_ns_ = pick(10'000, 15'000) * ms_in_ns;
  flickers_ = chance(30);
  for (const char* device : {"r01/c01", "r01/c02", "r01/c03", "r01/s01", "cdu01"}) {
    for (const std::string& detector : detectors_of(device)) {
      if (wet_from_ns_.contains({device, detector}) || !chance(20)) continue;
      const int kind = static_cast<int>(pick(1, 3));
      fault_[{device, detector}] = kind == 2 && confirm_ms_ == 0 ? 1 : kind;
    }
  }
  // A detector of a tray that does not leak is bypassed for a while, and wet for ever: its end is a leak.
  if (leak_kind_ == 0 && chance(30)) {
    bypassed_ = {"r01/c03", "1_ColdPlate"};
    fault_.erase(bypassed_);
    bypass_at_ns_ = start_ns_ + s_in_ns;
    bypass_until_ns_ = start_ns_ + pick(5'000, 15'000) * ms_in_ns;
    wet_from_ns_[bypassed_] = start_ns_ + 2 * s_in_ns;
    leak_kind_ = 4;
    dries_after_ns_ = 3'600 * s_in_ns;
  }
}

void trip_world::fail(const std::string& what) {
  if (!broken_) broken_ = fmt::format("seed {} at {} ms: {}", seed_, (now_ns_ - start_ns_) / ms_in_ns, what);
}

bool trip_world::fed() const {
  return std::any_of(shelves.begin(), shelves.end(),
                     [this](const auto& each) { return bodies_.at(each).on; });
}

bool trip_world::answers(const std::string& device) const {
  const auto found = bodies_.find(device);
  if (found == bodies_.end()) return true;  // CDU, rack controller: fed from elsewhere
  if (place_of(device) >= 0 && !fed()) return false;
  return now_ns_ < found->second.deaf_from_ns || now_ns_ >= found->second.deaf_until_ns;
}

bool trip_world::truly_wet(const std::string& device, const std::string& detector) const {
  const auto found = wet_from_ns_.find({device, detector});
  return found != wet_from_ns_.end() && now_ns_ >= found->second && now_ns_ < found->second + dries_after_ns_;
}

reading trip_world::seen(const std::string& device, const std::string& detector) {
  if (truly_wet(device, detector)) {
    // A bus that loses every other answer of the one detector that sees the leak.
    if (flickers_ && ++wet_readings_[device] % 2 == 0) return {DetectorReading::UNKNOWN, "lost"};
    return {DetectorReading::LEAK, "wet"};
  }
  const auto fault = fault_.find({device, detector});
  const int kind = fault == fault_.end() ? 0 : fault->second;
  if (kind == 1 || (kind == 3 && chance(50))) return {DetectorReading::UNKNOWN, "broken"};
  // A flap is shorter than the confirm time: wet for less than it, then dry.
  const std::int64_t phase = (now_ns_ / ms_in_ns) % (confirm_ms_ + 600);
  if (kind == 2 && phase < confirm_ms_ - 30) return {DetectorReading::LEAK, "a flap"};
  return {DetectorReading::DRY, "dry"};
}

void trip_world::move_bodies() {
  for (auto& [key, each] : bodies_) {
    if (each.off_at_ns != 0 && now_ns_ >= each.off_at_ns) {
      each.on = false;
      each.off_at_ns = 0;
    }
    if (each.closing_since_ns != 0) {
      const double ms = static_cast<double>((now_ns_ - each.closing_since_ns) / ms_in_ns);
      each.open = std::max(0.0, 100 - 100 * ms / stroke_ms_);
    }
  }
  for (const std::string& tray : trays) bodies_[tray].on = bodies_[tray].on && fed();
}

void trip_world::obey(const command& what) {
  body& of = bodies_[what.key];
  if (!answers(what.device)) {
    answers_.push_back({now_ns_ + 500 * ms_in_ns, what});
    return;
  }
  answers_.push_back({now_ns_ + 20 * ms_in_ns, what});
  if (of.ignores > 0) {
    --of.ignores;
    return;
  }
  if (what.kind == target_kind::valve) {
    if (of.closing_since_ns == 0) of.closing_since_ns = now_ns_;
  } else if (of.on && of.off_at_ns == 0) {
    of.off_at_ns = now_ns_ + pick(50, 400) * ms_in_ns;
  }
}

// Order and scope of what is commanded.
void trip_world::check_command(const command& what) {
  const bool tray = place_of(what.key) >= 0;
  const trip_state* rack = nullptr;
  for (const auto& [number, trip] : of_.open) {
    if (trip.rack) rack = &trip;
  }
  if (of_.open.empty()) return fail("a command without a trip: " + what.key);
  if (rack == nullptr && trip_over(of_, what.key) == nullptr)
    return fail(what.key + " is commanded and its tray does not leak");
  if (rack == nullptr || tray) return;
  const bool all_off = std::all_of(of_.targets.begin(), of_.targets.end(), [](const target_state& each) {
    return each.what.kind != target_kind::tray || each.final;
  });
  const std::int64_t age = now_ns_ - rack->opened_ns;
  if (what.kind == target_kind::shelf) {
    if (!all_off && age < 2 * s_in_ns) fail("shelves are cut before 2 s and before every tray is read off");
    cut_ns_.emplace(rack->number, now_ns_);
    for (const std::string& valve : valves) {
      const bool first = what.attempt == 1 && restarts_ == 0;
      if (first && bodies_[valve].open < 59 && !all_off) fail(valve + " is over 40 % closed at the cut");
    }
  }
}

void trip_world::take(const std::vector<trip_effect>& effects) {
  int last_place = -1;
  std::set<std::string> batch;
  for (const trip_effect& each : effects) {
    if (const auto* order = std::get_if<command>(&each)) {
      check_command(*order);
      if (order->attempt == 1) {
        const int place = place_of(order->key);
        if (place >= 0 && place < last_place) fail(order->key + " is commanded after a tray behind it");
        if (place < 0 && order->kind == target_kind::valve && last_place < 0 && batch.empty() &&
            commands_.empty())
          fail("a valve moves before any tray was turned off");
        last_place = std::max(last_place, place);
      }
      batch.insert(order->key);
      ++commands_[order->key];
      last_command_ns_[order->key] = now_ns_;
      obey(*order);
    }
    if (const auto* line = std::get_if<note>(&each)) {
      file_.push_back(line->line);
      file_.back().set_wall_time_ns(now_ns_ + wall_offset_ns);
    }
    if (const auto* text = std::get_if<tell>(&each)) any_alarm_ = any_alarm_ || text->alarm;
    if (const auto* again = std::get_if<read_detectors>(&each))
      poll_at_ns_[again->device] = now_ns_ + step_ns;
    if (const auto* back = std::get_if<read_back>(&each)) {
      if (!answers(back->device)) continue;
      poll_at_ns_[back->device + "#"] = now_ns_ + step_ns;
    }
  }
}

void trip_world::feed(const trip_event& what) {
  take(step(of_, what, now_ns_));
  for (const auto& [number, trip] : of_.open) {
    if (known_trips_.insert(number).second) opened_ns_[number] = now_ns_;
  }
  check_state();
}

void trip_world::check_state() {
  for (const std::uint64_t number : known_trips_) {
    if (!of_.open.contains(number))
      return fail(fmt::format("the latch of trip {} is gone and nobody reset it", number));
  }
  bool ever_wet = false;
  for (const auto& [key, from] : wet_from_ns_) ever_wet = ever_wet || now_ns_ >= from;
  if (!of_.open.empty() && !ever_wet) return fail("a trip without a leak");
  if (leak_kind_ == 4 && !of_.open.empty() && now_ns_ < bypass_until_ns_)
    return fail("a bypassed detector trips");
  if (leak_kind_ == 1 || leak_kind_ == 4) {
    for (const auto& [number, trip] : of_.open) {
      if (trip.rack) fail("one leaking tray takes the rack down");
    }
  }
  for (const auto& [number, trip] : of_.open) {
    if (!trip.closed) continue;
    for (const target_state& each : of_.targets) {
      const bool mine = trip.rack || trip.scope == each.what.key;
      const body& truth = bodies_[each.what.key];
      if (!mine) continue;
      // One that a late request turned on is found within 5 s, and goes off like any.
      const bool late = truth.came_on_ns != 0 && now_ns_ - truth.came_on_ns < 11 * s_in_ns;
      const bool done = each.what.kind == target_kind::valve ? truth.open <= 1 : !truth.on || late;
      if (!done) fail(fmt::format("trip {} is called done and {} is not", number, each.what.key));
    }
  }
}

void trip_world::poll(const std::string& device) {
  if (!answers(device)) return feed(reach_changed{device, false});
  feed(reach_changed{device, true});
  std::map<std::string, reading> readings;
  for (const std::string& detector : detectors_of(device)) readings[detector] = seen(device, detector);
  if (place_of(device) >= 0 || device == "cdu01") feed(sensors_read{device, readings});
}

void trip_world::restart() {
  ++restarts_;
  const std::set<std::uint64_t> before = known_trips_;
  of_ = {};
  of_.plan.rack = "r01";
  take(step(of_, plan_changed{plan_of(record_of(stroke_ms_, confirm_ms_))}, now_ns_));
  take(step(of_, trips_restored{file_, now_ns_ + wall_offset_ns}, now_ns_));
  for (const std::uint64_t number : before) {
    if (!of_.open.contains(number)) fail(fmt::format("trip {} is forgotten at the restart", number));
  }
}

void trip_world::check_end() {
  // Every leak that a healthy detector has shown for long enough has tripped.
  for (const auto& [key, from] : wet_from_ns_) {
    const std::int64_t seen_for = now_ns_ - std::max(from, leak_kind_ == 4 ? bypass_until_ns_ : from);
    if (seen_for < (confirm_ms_ + 2'000) * ms_in_ns) continue;
    const bool held = key.first == "cdu01" ? !of_.open.empty() : trip_over(of_, key.first) != nullptr;
    if (!held) fail("a leak was missed at " + key.first);
    bool rack = false;
    for (const auto& [number, trip] : of_.open) rack = rack || trip.rack;
    if ((leak_kind_ == 2 || leak_kind_ == 3) && !rack) fail("a leak of the rack did not trip the rack");
  }
  for (const auto& [number, trip] : of_.open) {
    if (!trip.closed && !any_alarm_) fail("a trip neither ended nor complained");
    for (const target_state& each : of_.targets) {
      if (trip.closed || !each.wanted || each.final) continue;
      if (now_ns_ - last_command_ns_[each.what.key] > 6 * s_in_ns)
        fail("nobody commands " + each.what.key + " any more");
    }
    const std::int64_t age = now_ns_ - opened_ns_[number];
    if (!trip.closed && age > 24 * s_in_ns)
      fail(fmt::format("trip {} has not ended after {} ms", number, age / ms_in_ns));
  }
}

std::optional<std::string> trip_world::run() {
  of_.plan.rack = "r01";
  take(step(of_, plan_changed{plan_of(record_of(stroke_ms_, confirm_ms_))}, now_ns_));
  const std::vector<std::string> polled{"r01/c01", "r01/c02", "r01/c03", "r01/s01",
                                        "cdu01",   "r01/p01", "r01/p02", "r01/m01"};
  for (const std::string& each : polled) poll_at_ns_[each] = now_ns_ + pick(0, 249) * ms_in_ns;
  for (; now_ns_ < start_ns_ + length_ns && !broken_; now_ns_ += step_ns) {
    move_bodies();
    if (restart_at_ns_ != 0 && now_ns_ >= restart_at_ns_) {
      restart_at_ns_ = 0;
      restart();
    }
    if (bypass_at_ns_ != 0 && now_ns_ >= bypass_at_ns_) {
      bypass_at_ns_ = 0;
      feed(bypass_set{bypassed_.first, bypassed_.second, "uid 7", "broken", bypass_until_ns_,
                      bypass_until_ns_ + wall_offset_ns});
    }
    run_operation();
    const std::vector<answer_due> due = std::exchange(answers_, {});
    for (const answer_due& each : due) {
      if (each.at_ns > now_ns_) {
        answers_.push_back(each);
        continue;
      }
      const bool already = bodies_[each.what.key].says_already && !bodies_[each.what.key].on;
      feed(command_ended{each.what.key, !answers(each.what.device) ? 0 : already ? 400 : 204});
    }
    for (const auto& [name, at] : std::map(poll_at_ns_)) {
      if (at > now_ns_) continue;
      if (name.back() == '#') {
        poll_at_ns_.erase(name);
        const std::string device = name.substr(0, name.size() - 1);
        if (!answers(device)) continue;
        if (device == "r01/m01") {
          for (const std::string& valve : valves) feed(valve_read{valve, bodies_[valve].open});
        } else {
          feed(power_read{device, bodies_[device].on ? power_seen::on : power_seen::off});
        }
        continue;
      }
      poll_at_ns_[name] = now_ns_ + poll_ns;
      poll(name);
    }
    const auto wanted = next_due_ns(of_);
    if (wanted && *wanted <= now_ns_) feed(tick{});
  }
  if (!broken_) check_end();
  return broken_;
}

}  // namespace busbar::interlock::test
