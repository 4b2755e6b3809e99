// The interlock's arming record against the one it had: an older one, put back with its disk, is noticed by
// the generation that the journal keeps, shown, and replaced; until then no host is turned on. Its latch file
// likewise, by the number of its last line: that one is for a person, for nobody knows what it had latched.
#include <fmt/format.h>

#include <algorithm>

#include "actors/rack/rack_engine.hpp"
#include "actors/rack/rack_members.hpp"

namespace busbar::rack {
namespace {

constexpr std::string_view kept_type = "INTERLOCK_LATCHES_KEPT";
constexpr std::int64_t arm_again_ns = 10'000'000'000;  // an answer takes two seconds at most

}  // namespace

std::optional<refusal> record_is_old(const journal::Rack& rack, const interlock_view& heard) {
  if (heard.life != interlock_life::alive || heard.status == nullptr)
    return std::nullopt;  // judged elsewhere
  const std::uint64_t had = armed_generation(rack), holds = heard.status->generation();
  if (holds >= had) return std::nullopt;
  return refusal{core::fault::INTERLOCK_RECORD_OLD,
                 holds == 0
                     ? fmt::format("the interlock holds no arming record, it had generation {}", had)
                     : fmt::format("the interlock holds arming record {}, it had generation {}", holds, had)};
}

void engine::watch_record() {
  if (run().interlock == nullptr || run().interlock->life != interlock_life::alive ||
      run().interlock->status == nullptr)
    return;
  const std::uint64_t holds = run().interlock->status->generation();
  if (holds > armed_generation(rack()))
    (*change().mutable_facts())[std::string(generation_fact)] = std::to_string(holds);
  constexpr std::string_view type = "INTERLOCK_RECORD_CURRENT";
  const auto old = record_is_old(rack(), *run().interlock);
  const auto& shown = rack().conditions();
  const bool told =
      std::any_of(shown.begin(), shown.end(), [type](const auto& row) { return row.type() == type; });
  if (!old.has_value()) {
    if (told) set_condition(type, true, fmt::format("the interlock holds arming record {}", holds));
    run().arm_again_at_ns = INT64_MIN;
    return;
  }
  set_condition(type, false, old->why + ": its state was put back; no host power until it is armed anew");
  if (now_.monotonic_ns < run().arm_again_at_ns) return;
  run().arm_again_at_ns = now_.monotonic_ns + arm_again_ns;
  act(arm_anew{});
}

std::optional<refusal> latches_are_old(const journal::Rack& rack, const interlock_view& heard) {
  if (heard.life != interlock_life::alive || heard.status == nullptr)
    return std::nullopt;  // judged elsewhere
  const std::uint64_t had = known_latch_number(rack), holds = heard.status->last_record_number();
  if (holds >= had) return std::nullopt;
  return refusal{
      core::fault::POWER_INTERLOCK_NOT_ARMED,
      fmt::format("the interlock's latch file was put back or lost: it ends at line {}, line {} was "
                  "seen of it",
                  holds, had)};
}

// The interlock is told the number that it should have: it closes every gate and goes on above it, and by
// that stays closed also for a busbard that starts later.
void engine::watch_latch_file() {
  if (run().interlock == nullptr || run().interlock->life != interlock_life::alive ||
      run().interlock->status == nullptr)
    return;
  const interlock::Status& status = *run().interlock->status;
  const auto& shown = rack().conditions();
  const bool told =
      std::any_of(shown.begin(), shown.end(), [](const auto& row) { return row.type() == kept_type; });
  constexpr std::string_view advice =
      "no host power until a person has looked at every tray and says so: busbar-interlock reset \"*\" "
      "--instance {} --reason TEXT";
  if (const auto old = latches_are_old(rack(), *run().interlock)) {
    set_condition(kept_type, false, fmt::format("{}; {}", old->why, fmt::format(advice, rack().name())));
    if (run().reading_latches || now_.monotonic_ns < run().tell_number_at_ns) return;
    run().tell_number_at_ns = now_.monotonic_ns + arm_again_ns;
    run().reading_latches = true;
    act(read_latches{known_latch_number(rack())});
    return;
  }
  run().tell_number_at_ns = INT64_MIN;
  if (status.last_record_number() > known_latch_number(rack()))
    (*change().mutable_facts())[std::string(latch_number_fact)] = std::to_string(status.last_record_number());
  if (!status.latch_file_ok() && status.last_record_number() > 0) {
    set_condition(kept_type, false,
                  fmt::format("{}; {}", status.reason(), fmt::format(advice, rack().name())));
  } else if (told && status.latch_file_ok()) {
    set_condition(kept_type, true, "the interlock's latch file holds what was seen of it");
  }
}

// A person has acknowledged that lines were lost, with every tray that answers read dry. What is latched here
// and not at the interlock had its reset, or its leak, among those lines: no other line will come for it.
void engine::acknowledge_lost_latches(const std::string& text) {
  if (run().interlock == nullptr || run().interlock->status == nullptr) return;
  const auto& open = run().interlock->status->latches();
  for (const auto& [name, member] : run().members) {
    const bool held = std::any_of(open.begin(), open.end(),
                                  [&name](const interlock::Latch& latch) { return latch.device() == name; });
    if (member->leak_latched() && !held) act(tell_latch{name, false, text, {}});
  }
}

}  // namespace busbar::rack
