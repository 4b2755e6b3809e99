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
constexpr std::string_view refused_type = "INTERLOCK_RECORD_REFUSED";
constexpr std::int64_t refused_again_ns = 60'000'000'000;
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
  const bool told = is_shown(type);
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
      core::fault::INTERLOCK_LATCHES_PUT_BACK,
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
  const bool told = is_shown(kept_type);
  constexpr std::string_view advice =
      "no host power until a person has looked at every tray and says so: busbar leak reset \"{}/*\" "
      "--reason TEXT";
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
  const auto& still = run().interlock->status->bypasses();
  auto& rows = *change().mutable_bypasses();
  for (int i = rows.size() - 1; i >= 0; --i) {
    const bool there = std::any_of(still.begin(), still.end(), [&rows, i](const auto& each) {
      return each.device() == rows[i].device() && each.detector() == rows[i].detector();
    });
    if (!there) rows.DeleteSubrange(i, 1);
  }
}

// What no member asks for (CDU, coolant limits, valves, detectors of a changed SKU) comes into the record by
// being compared with what the interlock took last.
void engine::watch_shape() {
  const interlock_view* const heard = run().interlock.get();
  if (heard == nullptr || heard->life != interlock_life::alive || heard->status == nullptr) return;
  if (heard->status->generation() == 0 || now_.monotonic_ns < run().shape_again_at_ns) return;
  const auto wanted = record_shape(rack(), run().members);
  const bool held = std::all_of(wanted.begin(), wanted.end(), [this](const auto& row) {
    const auto found = run().held_record.find(row.first);
    return found != run().held_record.end() && found->second == row.second;
  });
  if (held) return;
  run().shape_again_at_ns = now_.monotonic_ns + arm_again_ns;
  act(arm_anew{});
}

// What would widen or remove is not the interlock's to take from us: it stays as it is, and a person is
// asked.
void engine::take_record_answer(const record_answered& answer) {
  if (answer.status.ok()) {
    run().held_record = answer.shape;
    std::string missing;
    for (const auto& [name, of] : record_shape(rack(), run().members)) {
      if (!answer.shape.contains(name)) missing += (missing.empty() ? "" : ", ") + name;
    }
    if (!missing.empty()) {
      run().shape_again_at_ns = now_.monotonic_ns + refused_again_ns;
      set_condition(
          refused_type, false,
          fmt::format("the interlock's record lacks {}: a login of it cannot be read, see the log; what a "
                      "trip cannot do is said by busbar leak status",
                      missing));
    } else if (is_shown(refused_type)) {
      set_condition(refused_type, true, "the interlock holds what the manifest says");
    }
    return;
  }
  if (!absl::IsFailedPrecondition(answer.status) && !absl::IsInvalidArgument(answer.status)) return;
  run().shape_again_at_ns = now_.monotonic_ns + refused_again_ns;
  set_condition(
      refused_type, false,
      fmt::format("the interlock goes on with the record that it holds, and refuses the present one: {}. "
                  "What removes or widens, only a person of busbar-safety may hand over",
                  std::string(answer.status.message())));
}

}  // namespace busbar::rack
