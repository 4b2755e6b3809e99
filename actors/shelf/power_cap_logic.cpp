#include "actors/shelf/power_cap_logic.hpp"

#include <algorithm>
#include <cmath>
#include <set>

namespace busbar::shelf {
namespace {

using effects = std::vector<cap_effect>;

bool usable(const std::optional<double>& value) {
  return value.has_value() && std::isfinite(*value) && *value >= 0;
}

// What a GPU may draw as far as is proven: after a cut is asked and before it is read back, still the old
// cap.
double may_draw(const gpu_state& gpu) {
  return std::max(gpu.wanted_w, gpu.proven_w.value_or(gpu.limits.max_w));
}

double others_of(const cap_state& state) {
  return state.others_w.value_or(state.policy.others_w);
}

double floor_to_step(const cap_state& state, const gpu_limits& limits, double watts) {
  const double stepped = std::floor(watts / state.policy.step_w) * state.policy.step_w;
  return std::clamp(stepped, limits.min_w, limits.max_w);
}

void want(const cap_policy& policy, gpu_state& gpu, double watts, std::int64_t now_ns, effects& out) {
  const bool asked_just_now = gpu.asked_at_ns.has_value() && now_ns - *gpu.asked_at_ns < policy.repeat_ns;
  if (gpu.wanted_w == watts && (gpu.proven_w == watts || asked_just_now)) return;
  gpu.asked_at_ns = now_ns;
  gpu.wanted_w = watts;
  out.push_back(set_cap{gpu.limits.name, watts});
}

void tell(bool& held, cap_condition which, bool holds, effects& out) {
  if (held == holds) return;
  held = holds;
  out.push_back(condition_changed{which, holds, 0});
}

void tell_shortfall(cap_state& state, double shortfall_w, effects& out) {
  const double shown = std::ceil(std::max(0.0, shortfall_w));
  if (shown == state.shortfall_w) return;
  state.shortfall_w = shown;
  out.push_back(condition_changed{cap_condition::caps_not_enough, shown > 0, shown});
}

// The level at which the GPUs of one priority together draw no more than the budget: each min(max, max(min,
// level)).
double level_for(const std::vector<gpu_state*>& group, double budget_w) {
  double low = 0;
  double high = 0;
  for (const gpu_state* gpu : group) high = std::max(high, gpu->limits.max_w);
  const auto sum_at = [&group](double level) {
    double sum = 0;
    for (const gpu_state* gpu : group) sum += std::clamp(level, gpu->limits.min_w, gpu->limits.max_w);
    return sum;
  };
  if (sum_at(high) <= budget_w) return high;
  for (int round = 0; round < 60; ++round) {
    const double middle = (low + high) / 2;
    (sum_at(middle) <= budget_w ? low : high) = middle;
  }
  return low;
}

// Caps for all GPUs so that they fit the budget: the highest priority is served first, the rest takes what is
// left. Returns what the least caps still draw above it.
double share_out(cap_state& state, double budget_w, std::int64_t now_ns, effects& out) {
  std::map<int, std::vector<gpu_state*>, std::greater<>> groups;
  double least_w = 0;
  for (auto& [name, gpu] : state.gpus) {
    groups[gpu.limits.priority].push_back(&gpu);
    least_w += gpu.limits.min_w;
  }
  double left_w = budget_w;
  double least_left_w = least_w;
  for (auto& [priority, group] : groups) {
    double least_of_group_w = 0;
    for (const gpu_state* gpu : group) least_of_group_w += gpu->limits.min_w;
    least_left_w -= least_of_group_w;
    const double level = level_for(group, std::max(0.0, left_w - least_left_w));
    for (gpu_state* gpu : group) {
      const double cap =
          floor_to_step(state, gpu->limits, std::clamp(level, gpu->limits.min_w, gpu->limits.max_w));
      want(state.policy, *gpu, cap, now_ns, out);
      left_w -= cap;
    }
  }
  return least_w - budget_w;
}

bool fresh(const cap_state& state, std::int64_t now_ns) {
  return state.ever_measured && now_ns - state.measured_at_ns <= state.policy.stale_ns;
}

void cap_to_aim(cap_state& state, std::int64_t now_ns, effects& out) {
  const double budget_w = state.policy.aim * state.limit_w() - others_of(state);
  const double over_w = share_out(state, budget_w, now_ns, out);
  // The least caps may lie between aim and limit: too little room for a step, but no breach.
  tell_shortfall(state, over_w - (1 - state.policy.aim) * state.limit_w(), out);
  state.low_since_ns.reset();
  tell(state.capped, cap_condition::capped, true, out);
}

// A share of the room between what can be drawn and the limit's upper band goes back to the GPUs.
void release(cap_state& state, std::int64_t now_ns, effects& out) {
  state.released_at_ns = now_ns;
  state.low_since_ns = now_ns;
  double can_w = 0;
  double most_w = 0;
  for (const auto& [name, gpu] : state.gpus) {
    can_w += gpu.wanted_w;
    most_w += gpu.limits.max_w;
  }
  const double more_w = std::max(state.policy.release_share * (most_w - can_w),
                                 state.policy.step_w * static_cast<double>(state.gpus.size()));
  share_out(state, can_w + more_w, now_ns, out);
  tell_shortfall(state, 0, out);
  const bool all_free = std::all_of(state.gpus.begin(), state.gpus.end(), [](const auto& one) {
    return one.second.wanted_w >= one.second.limits.max_w;
  });
  if (all_free) tell(state.capped, cap_condition::capped, false, out);
}

void decide(cap_state& state, std::int64_t now_ns, effects& out) {
  const bool known = fresh(state, now_ns) && usable(state.rack_w);
  tell(state.stale, cap_condition::measurement_stale, !known, out);
  if (!known) {
    // Nobody sees the load: the caps themselves have to hold it.
    if (state.can_draw_w() > state.limit_w()) cap_to_aim(state, now_ns, out);
    return;
  }
  if (*state.rack_w > state.policy.cap_at * state.limit_w()) {
    cap_to_aim(state, now_ns, out);
    return;
  }
  if (!state.capped || *state.rack_w >= state.policy.uncap_at * state.limit_w()) {
    state.low_since_ns.reset();
    return;
  }
  if (!state.low_since_ns.has_value()) state.low_since_ns = now_ns;
  if (now_ns - *state.low_since_ns >= state.policy.hold_ns &&
      now_ns - state.released_at_ns >= state.policy.release_every_ns) {
    release(state, now_ns, out);
  }
}

void take(cap_state& state, const rack_measured& event, std::int64_t now_ns, effects& out) {
  if (usable(event.rack_w)) {
    state.rack_w = event.rack_w;
    state.measured_at_ns = now_ns;
    state.ever_measured = true;
    if (usable(event.gpus_w) && *event.gpus_w <= *event.rack_w)
      state.others_w = *event.rack_w - *event.gpus_w;
  }
  decide(state, now_ns, out);
}

void take(cap_state& state, const supply_changed& event, std::int64_t now_ns, effects& out) {
  const double before_w = state.limit_w();
  state.capacity_w = std::isfinite(event.capacity_w) ? std::max(0.0, event.capacity_w) : 0;
  // Less than before: what can be drawn must fit at once; to wait for a measurement is to wait for the
  // breaker.
  if (state.limit_w() < before_w && state.can_draw_w() > state.policy.aim * state.limit_w()) {
    cap_to_aim(state, now_ns, out);
    return;
  }
  decide(state, now_ns, out);
}

void take(cap_state& state, const cap_read& event, std::int64_t, effects& out) {
  const auto found = state.gpus.find(event.gpu);
  if (found == state.gpus.end()) return;
  gpu_state& gpu = found->second;
  gpu.proven_w = usable(event.cap_w) ? event.cap_w : std::nullopt;
  // Not what was asked: somebody else's hand, a lost write, or a device that rounds. Asked again only where
  // it is more.
  if (gpu.proven_w.has_value() && *gpu.proven_w > gpu.wanted_w + state.policy.step_w) {
    out.push_back(set_cap{gpu.limits.name, gpu.wanted_w});
  }
}

void take(cap_state& state, const tick&, std::int64_t now_ns, effects& out) {
  decide(state, now_ns, out);
}

}  // namespace

double cap_state::limit_w() const {
  return std::min(policy.rack_limit_w, capacity_w);
}

double cap_state::can_draw_w() const {
  double sum = others_of(*this);
  for (const auto& [name, gpu] : gpus) sum += may_draw(gpu);
  return sum;
}

cap_state begin_caps(const cap_policy& policy, double capacity_w, const std::vector<gpu_limits>& gpus) {
  cap_state state;
  state.policy = policy;
  state.capacity_w = capacity_w;
  for (const gpu_limits& limits : gpus) {
    gpu_state gpu;
    gpu.limits = limits;
    gpu.wanted_w = limits.max_w;
    state.gpus.emplace(limits.name, gpu);
  }
  return state;
}

std::vector<cap_effect> step(cap_state& state, const cap_event& event, std::int64_t now_ns) {
  effects out;
  std::visit([&state, now_ns, &out](const auto& one) { take(state, one, now_ns, out); }, event);
  return out;
}

}  // namespace busbar::shelf
