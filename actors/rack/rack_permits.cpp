// Who may turn on, restart or go blind, and when: dry, cooled, armed, within inrush and budget, in the order
// of the rack.
#include <fmt/format.h>

#include <algorithm>

#include "actors/core/mutant.hpp"
#include "actors/rack/rack_engine.hpp"

namespace busbar::rack {

using core::fault;
using node::permit_kind;

namespace {

void withdraw(const held_permit& held) {
  if (held.lease != nullptr) held.lease->withdraw();
}

}  // namespace

void engine::want(const permit_wanted& event) {
  release_held(event.member);
  run().pending[event.member] = pending_permit{event.kind, {}};
}

void engine::release(const std::string& member) {
  const auto held = run().held.find(member);
  if (held != run().held.end() && held->second.kind == permit_kind::blind_window)
    act(announce_blind{member, false});
  release_held(member);
  run().pending.erase(member);
}

void engine::release_held(const std::string& member) {
  const auto held = run().held.find(member);
  if (held == run().held.end()) return;
  withdraw(held->second);
  run().held.erase(held);
}

// What was granted is judged again with all that comes to be known: an act that has not left yet stays.
void engine::withdraw_permits() {
  for (const auto& [member, held] : run().held) {
    if (held.lease != nullptr && held.lease->holds() && refuse(member, held.kind)) withdraw(held);
  }
}

void withdraw_where_shut(rack_run& run, const interlock_view& heard) {
  for (const auto& [name, held] : run.held) {
    const auto member = run.members.find(name);
    const bool gated = member == run.members.end() || is_tray(*member->second);
    if (gated && !judge_gate(heard, name).allowed && !BUSBAR_MUTANT(gate_ignored)) withdraw(held);
  }
}

// Members that were told they may turn on, and have not said yet that they do.
std::set<std::string> engine::promised() const {
  std::set<std::string> names;
  if (BUSBAR_MUTANT(promises_not_counted)) return names;
  for (const auto& [name, held] : run().held) {
    if (held.kind == permit_kind::power_on && held.lease->holds()) names.insert(name);
  }
  return names;
}

// A daemon that died inside a blind window forgets the permit, not the interlock its window: without its end
// the gate would stay shut for the whole ten minutes.
void engine::end_stale_blind_windows() {
  if (run().interlock == nullptr || run().interlock->status == nullptr) return;
  for (const auto& device : run().interlock->status->devices()) {
    if (!device.blind()) continue;
    const auto held = run().held.find(device.name());
    if (held != run().held.end() && held->second.kind == permit_kind::blind_window) continue;
    const auto member = run().members.find(device.name());
    if (member != run().members.end() && member->second->blind_window()) continue;
    act(announce_blind{device.name(), false});
  }
}

std::optional<refusal> engine::refuse_blind(const journal::Node& member) const {
  std::ptrdiff_t blind = 0;  // ours to give, and those left open by a restart of this daemon
  for (const auto& [name, other] : run().members) {
    const auto held = run().held.find(name);
    const bool ours = held != run().held.end() && held->second.kind == permit_kind::blind_window;
    if (name != member.name() && (ours || other->blind_window())) ++blind;
  }
  if (blind >= static_cast<std::ptrdiff_t>(most_blind_trays)) {
    return refusal{fault::POWER_DETECTOR_UNKNOWN,
                   fmt::format("{} trays are blind already, no more at once", blind)};
  }
  if (member.power().observed() == journal::POWER_OFF)
    return std::nullopt;  // a host that is off needs no eyes
  if (auto wet = rack_detectors_not_dry(run().cooling, now_)) return wet;
  return flow_not_proven(run().cooling, rack().spec().manifest().cooling(), now_);
}

std::optional<refusal> engine::refuse_power(const journal::Node& member) const {
  const journal::RackStep needed =
      member.spec().kind() == journal::POWER_SHELF ? journal::STANDBY : journal::COOLED;
  if (rack().shutting_down()) return refusal{fault::PREEMPTED, "the rack is shutting down"};
  if (const auto* trip = open_trip(run().interlock.get(), rack().name()); trip != nullptr && !BUSBAR_MUTANT(gate_ignored))
    return refusal{fault::TRIP_OPEN, trip_words(*trip)};  // shelves too
  if (rack().step() < needed)
    return refusal{fault::POWER_FLOW_NOT_PROVEN, fmt::format("the rack is not {} yet", step_word(needed))};
  if (auto wet = rack_detectors_not_dry(run().cooling, now_)) return wet;
  if (member.spec().kind() == journal::POWER_SHELF) return std::nullopt;
  if (auto flow = flow_not_proven(run().cooling, rack().spec().manifest().cooling(), now_)) return flow;
  if (!run().shut_valves.empty() && !BUSBAR_MUTANT(shut_valve_ignored))
    return refusal{fault::POWER_FLOW_NOT_PROVEN, run().shut_valves.begin()->second};
  if (run().interlock == nullptr)
    return refusal{fault::POWER_INTERLOCK_NOT_ARMED, "no heartbeat of the interlock yet"};
  if (auto old = record_is_old(rack(), *run().interlock)) return old;
  if (auto old = latches_are_old(rack(), *run().interlock)) return old;
  if (const auto* trip = trip_over(run().interlock.get(), rack().name(), member.name());
      trip != nullptr && !BUSBAR_MUTANT(gate_ignored))
    return refusal{fault::TRIP_OPEN, trip_words(*trip)};
  const gate_verdict gate = judge_gate(*run().interlock, member.name());
  if (!gate.allowed && !BUSBAR_MUTANT(gate_ignored)) {
    return refusal{core::fault_named(gate.fault).value_or(fault::POWER_INTERLOCK_NOT_ARMED),
                   "the interlock's gate: " + gate.reason};
  }
  if (member.leak_latched() && !BUSBAR_MUTANT(latch_ignored)) {
    return refusal{fault::POWER_LEAK_LATCHED, "a leak is latched on this tray"};
  }
  if (member.power().wanted() != journal::POWER_ON) {
    if (auto budget = over_budget(rack().spec(), run().members, promised(), member)) return budget;
  }
  return std::nullopt;
}

std::optional<refusal> engine::refuse(const std::string& member, permit_kind kind) const {
  const auto found = run().members.find(member);
  if (found == run().members.end()) return refusal{fault::UNKNOWN_TARGET, "no such member"};
  const journal::Node& asking = *found->second;
  if (kind == permit_kind::blind_window) return refuse_blind(asking);
  if (auto no = refuse_power(asking)) return no;
  if (kind == permit_kind::power_on && asking.spec().kind() == journal::COMPUTE_TRAY) {
    for (const auto& tray : of_kind(run().members, journal::SWITCH_TRAY)) {
      if (tray->power().observed() == journal::POWER_ON) continue;
      return refusal{fault::DEADLINE, fmt::format("switch tray {} to be on first", tray->name())};
    }
  }
  return std::nullopt;
}

// An inrush group is as many members as the limit holds; the next group waits for the interval.
bool engine::group_has_room() {
  const journal::PowerSpec& power = rack().spec().manifest().power();
  const std::int64_t interval_ns =
      power.group_interval().seconds() * 1'000'000'000 + power.group_interval().nanos();
  if (run().group_used == 0 || now_.monotonic_ns - run().last_group_ns >= interval_ns) {
    run().last_group_ns = now_.monotonic_ns;
    run().group_used = 0;
  }
  const double per_tray_a = power.inrush_per_tray_a();
  const auto room = per_tray_a > 0 ? static_cast<unsigned>(power.inrush_limit_a() / per_tray_a) : 1U;
  if (run().group_used >= std::max(1U, room) && !BUSBAR_MUTANT(inrush_ignored)) {
    wake_by(run().last_group_ns + interval_ns);
    return false;
  }
  ++run().group_used;
  return true;
}

void engine::grant_permits() {
  for (auto it = run().pending.begin(); it != run().pending.end();) {
    const std::string& member = it->first;
    const permit_kind kind = it->second.kind;
    const auto no = refuse(member, kind);
    if (no.has_value()) {
      if (it->second.told != no->why) {
        it->second.told = no->why;
        act(answer_permit{member, node::permit_answer{kind, false, no->why, no->code}});
      }
      ++it;
      continue;
    }
    if (kind != permit_kind::blind_window && !group_has_room()) {
      ++it;
      continue;
    }
    if (kind == permit_kind::blind_window) act(announce_blind{member, true});
    const auto lease =
        kind == permit_kind::blind_window ? nullptr : std::make_shared<node::permit_lease>();
    act(answer_permit{member, node::permit_answer{kind, true, {}, std::nullopt, lease}});
    run().held[member] = held_permit{kind, lease};
    it = run().pending.erase(it);
  }
}

}  // namespace busbar::rack
