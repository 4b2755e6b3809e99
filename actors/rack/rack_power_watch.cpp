// What is shown is read: the power of what is shown as on, and whether the interlock watches it. Driven by
// the heartbeats and the cooling poll, spread over the members; an unchanged reading writes nothing.
#include <fmt/format.h>

#include <algorithm>

#include "actors/rack/rack_engine.hpp"

namespace busbar::rack {
namespace {

constexpr std::int64_t ns_per_s = 1'000'000'000;
constexpr std::int64_t look_interval_ns = 30 * ns_per_s;
constexpr std::int64_t tripped_interval_ns = 2 * ns_per_s;  // of what the interlock acts on
constexpr std::int64_t first_looks_ns = 5 * ns_per_s;       // after a start, spread over the members
constexpr std::int64_t last_look_ns = 30 * ns_per_s;
constexpr std::int64_t not_watched_after_ns = 3 * ns_per_s;

bool is_shown_on(const journal::Node& member) {
  if (member.hold() != journal::HOLD_NONE || member.step() < journal::CREDENTIALED) return false;
  if (!node::is_switched(member)) return false;
  const journal::PowerState seen = member.power().observed();
  return node::is_energised_step(member.step()) || seen == journal::POWER_ON ||
         seen == journal::POWERING_ON ||
         (seen == journal::POWER_UNKNOWN &&
          (member.power().wanted() == journal::POWER_ON || node::is_tripped(member)));
}

const interlock::DeviceStatus* row_of(const interlock::Status& status, const std::string& name) {
  const auto& rows = status.devices();
  const auto found =
      std::find_if(rows.begin(), rows.end(), [&name](const auto& row) { return row.name() == name; });
  return found == rows.end() ? nullptr : &*found;
}

struct concern {
  std::string all;      // changes when anything changes that may have moved its power
  std::string tripped;  // why it may have been turned off
};

concern concern_of(const interlock_view* heard, const std::string& rack, const std::string& name) {
  concern of;
  if (heard == nullptr || heard->status == nullptr) return of;
  for (const interlock::TripStatus& trip : heard->status->open_trips()) {
    if (trip.scope() != rack && trip.scope() != name) continue;
    of.tripped = "the interlock's " + trip_words(trip);
    of.all += fmt::format("trip {} {} {};", trip.number(), trip.closed(), trip.waits_for_size());
  }
  const interlock::DeviceStatus* const row = row_of(*heard->status, name);
  if (row == nullptr) return of;
  if (row->latched()) {
    of.all += "latched;";
    if (of.tripped.empty()) of.tripped = "the interlock latched a leak of it";
  }
  if (!row->gate_open() && !row->blind()) of.all += "gate shut";
  return of;
}

// Nothing: no verdict yet, or judged elsewhere. Empty: watched. Words that stay the same while it lasts.
std::optional<std::string> lost_sight(const interlock_view* heard, std::int64_t silent_ns,
                                      const std::string& name) {
  if (heard == nullptr || heard->status == nullptr) {
    if (silent_ns < not_watched_after_ns) return std::nullopt;
    return "the interlock is not heard";
  }
  if (heard->life != interlock_life::alive) return "the interlock is not heard";
  const interlock::DeviceStatus* const row = row_of(*heard->status, name);
  if (row == nullptr) return "the interlock's record does not hold it";
  if (row->blind()) return std::nullopt;  // announced
  if (row->detectors().empty()) return "the interlock reads no detector of it";
  for (const interlock::DetectorReading& reading : row->detectors()) {
    if (reading.verdict() == interlock::DetectorReading::LEAK) return std::nullopt;  // its latch says so
    if (reading.verdict() != interlock::DetectorReading::DRY)
      return fmt::format("the interlock does not know its detector {}", reading.name());
  }
  if (!row->armed()) return "the interlock does not read its detectors whole and in time";
  return std::string();
}

}  // namespace

void engine::watch_sight(const std::string& name, const journal::Node& member, power_watch& of) {
  if (!is_tray(member)) return;
  const bool told_lost = of.lost.has_value() && !of.lost->empty();
  if (!node::is_energised_step(member.step()) && !told_lost) return;
  const auto lost = lost_sight(run().interlock.get(), now_.monotonic_ns - run().began_ns, name);
  if (!lost.has_value()) return;
  if (lost->empty()) of.lost_since_ns = core::never_ns;
  if (of.lost == lost) return;
  const bool heard = run().interlock != nullptr && run().interlock->life == interlock_life::alive;
  if (!lost->empty() && heard) {  // one late poll is no blindness
    if (of.lost_since_ns == core::never_ns) of.lost_since_ns = now_.monotonic_ns;
    if (now_.monotonic_ns - of.lost_since_ns < not_watched_after_ns) return;
  }
  of.lost = lost;
  act(tell_sight{name, *lost});
}

void engine::watch_power() {
  if (run().began_ns == core::never_ns) run().began_ns = now_.monotonic_ns;
  std::erase_if(run().watched, [this](const auto& row) { return !run().members.contains(row.first); });
  std::int64_t place = 0;
  const auto count = static_cast<std::int64_t>(std::max<std::size_t>(1, run().members.size()));
  for (const auto& [name, member] : run().members) {
    power_watch& of = run().watched[name];
    watch_sight(name, *member, of);
    const std::int64_t spread_ns = first_looks_ns * place++ / count;
    const concern now_is = concern_of(run().interlock.get(), rack().name(), name);
    const bool moved = !now_is.all.empty() && now_is.all != of.seen_of_interlock;
    of.seen_of_interlock = now_is.all;
    if (!is_shown_on(*member)) {
      of.next_ns = now_.monotonic_ns + look_interval_ns;  // it was just read when it came on
      continue;
    }
    if (of.next_ns == INT64_MIN) of.next_ns = now_.monotonic_ns + spread_ns;
    const std::int64_t interval_ns = now_is.tripped.empty() ? look_interval_ns : tripped_interval_ns;
    of.next_ns = std::min(of.next_ns, now_.monotonic_ns + interval_ns);
    if (!moved && now_.monotonic_ns < of.next_ns) continue;
    of.next_ns = now_.monotonic_ns + interval_ns;
    act(look_power{name, now_is.tripped});
  }
}

void engine::take_power(const power_read& read) {
  if (run().looking.waits.erase(read.member) == 0 || (read.known && read.seen == journal::POWER_ON)) return;
  run().looking.bad[read.member] = read.known ? "it is not read on" : "its power could not be read";
}

// Everything is where it should be; whether it still is so, and watched, is read before it is said.
bool engine::last_look_done() {
  last_look& look = run().looking;
  if (!look.begun) {
    look.begun = true;
    look.until_ns = now_.monotonic_ns + last_look_ns;
    for (const auto& [name, member] : run().members) {
      if (is_failed(*member) || !is_shown_on(*member)) continue;
      look.waits.insert(name);
      act(look_power{name, concern_of(run().interlock.get(), rack().name(), name).tripped});
    }
  }
  std::erase_if(look.waits, [this](const std::string& name) {
    const auto found = run().members.find(name);
    return found == run().members.end() || is_failed(*found->second);
  });
  std::string unwatched;
  if (run().interlock == nullptr || run().interlock->life != interlock_life::alive)
    unwatched = "the interlock is not heard";
  for (const auto& [name, of] : run().watched) {
    const auto found = run().members.find(name);
    const bool counts = found != run().members.end() && !is_failed(*found->second);
    if (unwatched.empty() && counts && of.lost.has_value())
      unwatched = of.lost->empty() ? "" : name + ": " + *of.lost;
  }
  const std::string wait =
      !look.waits.empty() ? fmt::format("the power of {} members to be read once more", look.waits.size())
                          : unwatched;
  if (wait.empty()) return true;
  if (now_.monotonic_ns < look.until_ns) {
    if (look.waits.empty() && rack().waits_for() != wait) change().set_waits_for(wait);
    return false;
  }
  for (const std::string& name : look.waits) look.bad[name] = "its power was not read in time";
  look.waits.clear();
  if (!unwatched.empty()) look.bad[rack().name()] = unwatched;
  return true;
}

// The members do the same with the view that follows: what lost its power is turned on again in the order
// of the rack, behind the gate.
void engine::take_up_lost() {
  bool any = false;
  for (auto& [name, member] : run().members) {
    if (!node::lost_its_power(*member) || member->operation_id() == rack().operation_id()) continue;
    auto again = std::make_shared<journal::Node>(*member);
    again->clear_failure();
    member = std::move(again);
    any = true;
  }
  if (!any || rack().step() <= journal::COOLED) return;
  change().set_step(journal::COOLED);  // what was proven of the whole no longer holds
  change().mutable_suite()->Clear();
}

}  // namespace busbar::rack
