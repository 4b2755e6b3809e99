// The interlock's arming record against the one it had: an older one, put back with its disk, is noticed by
// the generation that the journal keeps, shown, and replaced; until then no host is turned on.
#include <fmt/format.h>

#include <algorithm>

#include "actors/rack/rack_engine.hpp"
#include "actors/rack/rack_members.hpp"

namespace busbar::rack {
namespace {

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

}  // namespace busbar::rack
