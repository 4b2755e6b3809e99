#include "actors/valve/valve_logic.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace busbar::valve {

std::string_view name_of(proof what) {
  switch (what) {
    case proof::none:
      return "none";
    case proof::moving:
      return "moving";
    case proof::proven:
      return "proven";
    case proof::unproven:
      return "unproven";
    case proof::failed:
      return "failed";
  }
  return "?";
}

std::string_view name_of(condition what) {
  switch (what) {
    case condition::unknown:
      return "unknown";
    case condition::sound:
      return "sound";
    case condition::sticking:
      return "sticking";
    case condition::stuck:
      return "stuck";
    case condition::drifting:
      return "drifting";
    case condition::contradicted:
      return "contradicted";
  }
  return "?";
}

std::string_view name_of(valve_mode what) {
  switch (what) {
    case valve_mode::automatic:
      return "automatic";
    case valve_mode::manual:
      return "manual";
    case valve_mode::fail_safe:
      return "fail_safe";
  }
  return "?";
}

std::string_view name_of(authority who) {
  switch (who) {
    case authority::busbar:
      return "busbar";
    case authority::bms:
      return "bms";
    case authority::device:
      return "device";
  }
  return "?";
}

namespace {

constexpr int sticks_after = 2;  // late starts in a row

double seconds(instant span) {
  return std::chrono::duration<double>(span).count();
}

bool lapsed(const valve_state& state, instant now) {
  return state.held && now >= state.held->until;
}

std::optional<double> finite(std::optional<double> value) {
  return value && std::isfinite(*value) ? value : std::nullopt;
}

std::optional<double> position_now(const valve_spec& spec, const valve_state& state, instant now) {
  if (!state.last || !state.last->position || now - state.read_at > spec.read_age) return std::nullopt;
  return state.last->position;
}

class stepper {
 public:
  stepper(const valve_spec& spec, valve_state state, instant now) : spec_(spec), now_(now) {
    out_.state = std::move(state);
  }

  void on(const set_position& what);
  void on(const take_lease& what);
  void on(const renew_lease& what);
  void on(const release_lease& what);
  void on(const reading& what);
  void on(const bms_answer& what);
  void on(const tick&) {}
  valve_step finish();

 private:
  valve_state& state() { return out_.state; }
  void refuse(refusal why) { out_.effects.emplace_back(std::move(why)); }
  void give(double opening, const std::string& id);
  void lapse();
  void watch_communication();
  void judge();
  void judge_arrival(double position);
  void note_motion(double position);
  void settle(proof proven, condition seen);

  const valve_spec& spec_;
  instant now_;
  valve_step out_;
};

void stepper::give(double opening, const std::string& id) {
  command next{opening, id, now_, position_now(spec_, state(), now_), std::nullopt, std::nullopt};
  if (state().last) {
    next.from_flow = state().last->flow_lpm;
    next.from_dp = state().last->dp_kpa;
  }
  const double reference = next.from_position.value_or(state().given ? state().given->opening : opening);
  const int direction = opening > reference ? 1 : opening < reference ? -1 : state().direction;
  state().reversal = state().direction != 0 && direction != 0 && direction != state().direction;
  state().direction = direction;
  state().given = next;
  state().moved_at.reset();
  state().moved_from = next.from_position;
  state().proven = proof::moving;
  if (spec_.commanded_by == authority::busbar) out_.effects.emplace_back(write_position{opening, id});
  if (spec_.commanded_by == authority::device) out_.effects.emplace_back(write_set_point{opening, id});
  if (spec_.commanded_by == authority::bms) {
    state().bms_pending = true;
    out_.effects.emplace_back(ask_bms{opening, id});
  }
}

void stepper::on(const set_position& what) {
  if (state().given && !what.id.empty() && state().given->id == what.id) return;  // the same command again
  if (auto why = may_move(spec_, state(), what.holder, what.opening, now_)) return refuse(std::move(*why));
  if (state().given && state().given->opening == what.opening && state().proven != proof::failed) return;
  give(what.opening, what.id);
}

void stepper::on(const take_lease& what) {
  const bool by_another = state().held && !lapsed(state(), now_) && state().held->holder != what.holder;
  if (what.holder.empty() || what.reason.empty() || what.length <= instant::zero() ||
      what.length > spec_.most_lease) {
    return refuse({refusal_kind::malformed, fmt::format("override of valve {} not taken: it needs a holder, "
                                                        "a reason and a length of more than 0 and at most "
                                                        "{:.0f} min; give those",
                                                        spec_.name, seconds(spec_.most_lease) / 60)});
  }
  if (by_another) {
    return refuse(
        {refusal_kind::held,
         fmt::format("valve {} is held by {} ({}) for another {:.0f} s; ask {} to release it, or wait",
                     spec_.name, state().held->holder, state().held->reason,
                     seconds(state().held->until - now_), state().held->holder)});
  }
  state().held = lease{what.holder, what.reason, now_ + what.length};
  state().mode = valve_mode::manual;
}

void stepper::on(const renew_lease& what) {
  if (!state().held || state().held->holder != what.holder || lapsed(state(), now_)) {
    return refuse(
        {refusal_kind::no_lease, fmt::format("override of valve {} not renewed: {} holds none; take it again",
                                             spec_.name, what.holder)});
  }
  if (what.length <= instant::zero() || what.length > spec_.most_lease) {
    return refuse(
        {refusal_kind::malformed,
         fmt::format("override of valve {} not renewed: a length of more than 0 and at most {:.0f} min "
                     "is allowed",
                     spec_.name, seconds(spec_.most_lease) / 60)});
  }
  state().held->until = now_ + what.length;
}

void stepper::on(const release_lease& what) {
  if (!state().held || state().held->holder != what.holder) {
    return refuse(
        {refusal_kind::no_lease,
         fmt::format("valve {} not released: {} does not hold it{}", spec_.name, what.holder,
                     state().held ? fmt::format("; {} does", state().held->holder) : std::string())});
  }
  state().held.reset();
  if (state().mode == valve_mode::manual) state().mode = valve_mode::automatic;
}

void stepper::on(const reading& what) {
  reading known{finite(what.position), finite(what.flow_lpm), finite(what.dp_kpa)};
  if (known.position && (*known.position < -0.05 || *known.position > 1.05)) known.position.reset();
  state().heard = true;
  state().heard_at = now_;
  if (known.position) {
    note_motion(*known.position);
    state().read_at = now_;
  }
  state().last = known;
  if (state().mode == valve_mode::fail_safe)
    state().mode = state().held ? valve_mode::manual : valve_mode::automatic;
}

void stepper::on(const bms_answer& what) {
  if (!state().bms_pending) return;
  state().bms_pending = false;
  if (!what.granted) settle(proof::failed, state().seen);
}

void stepper::note_motion(double position) {
  if (!state().given || state().moved_at) return;
  if (!state().moved_from) state().moved_from = position;
  if (std::abs(position - *state().moved_from) < spec_.moved) return;
  state().moved_at = now_;
  if (!state().reversal) return;
  // Late by more than a small move takes: the stem hung before it came loose.
  const double way = std::abs(state().given->opening - *state().moved_from);
  const double due_s = std::max(2.0, 0.5 * way * seconds(spec_.stroke));
  state().late_starts = seconds(now_ - state().given->at) > due_s ? state().late_starts + 1 : 0;
}

// A lease that ends gives the valve back to the loops.
void stepper::lapse() {
  if (!lapsed(state(), now_)) return;
  state().held.reset();
  if (state().mode == valve_mode::manual) state().mode = valve_mode::automatic;
}

// No answer at all: the configured fail position. In place means: no command.
void stepper::watch_communication() {
  if (!state().heard || now_ - state().heard_at <= spec_.lost_after || state().mode == valve_mode::fail_safe)
    return;
  state().mode = valve_mode::fail_safe;
  settle(state().given ? proof::unproven : state().proven, condition::unknown);
  if (spec_.commanded_by != authority::busbar || spec_.on_loss == fail_position::in_place) return;
  give(spec_.on_loss == fail_position::open ? 1.0 : 0.0, "fail-position");
}

void stepper::settle(proof proven, condition seen) {
  state().proven = proven;
  state().seen = seen;
}

void stepper::judge_arrival(double position) {
  const command& given = *state().given;
  const bool arrived = std::abs(position - given.opening) <= spec_.tolerance;
  const auto flow = state().last->flow_lpm;
  const bool flows = flow && *flow > spec_.closed_flow_share * spec_.rated_lpm;
  const condition sound = state().late_starts >= sticks_after ? condition::sticking : condition::sound;
  if (!arrived) {
    const bool moved = state().moved_at.has_value();
    return settle(proof::failed, moved ? condition::sticking : condition::stuck);
  }
  if (given.opening <= 0.0 && flows) return settle(proof::failed, condition::contradicted);
  // A position that follows while the flow does not: the stem is off its shaft, or the read-back repeats the
  // command.
  const double step_made = given.from_position ? std::abs(given.opening - *given.from_position) : 0.0;
  const bool pressed = state().last->dp_kpa && given.from_dp && *given.from_dp > 0 &&
                       std::abs(*state().last->dp_kpa / *given.from_dp - 1.0) < 0.05;
  if (step_made >= spec_.stuck_step && flow && given.from_flow && pressed &&
      std::abs(*flow - *given.from_flow) < spec_.stuck_flow_share * spec_.rated_lpm) {
    return settle(proof::failed, condition::stuck);
  }
  settle(proof::proven, sound);
}

void stepper::judge() {
  if (!state().given || state().mode == valve_mode::fail_safe) return;
  const auto position = position_now(spec_, state(), now_);
  const instant since = now_ - state().given->at;
  // A small move is due sooner than a stroke; the dead band and the poll are allowed for.
  const double way =
      state().given->from_position ? std::abs(state().given->opening - *state().given->from_position) : 1.0;
  const instant due = std::min(spec_.stroke + spec_.stroke / 5,
                               std::chrono::duration_cast<instant>(
                                   std::chrono::duration<double>(3.0 + 1.2 * way * seconds(spec_.stroke))));
  if (!position) {
    if (state().proven != proof::failed && since >= due) settle(proof::unproven, condition::unknown);
    return;
  }
  if (state().proven == proof::proven) {
    const bool away = std::abs(*position - state().given->opening) > spec_.drift;
    if (away) return settle(proof::failed, condition::drifting);
    if (state().given->opening > 0.0) return;
    return judge_arrival(*position);  // a closed valve is watched for flow for as long as it is closed
  }
  const bool arrived = std::abs(*position - state().given->opening) <= spec_.tolerance;
  if (state().seen == condition::drifting && !arrived) return;  // stays found until it is back
  if (since >= due) return judge_arrival(*position);
  if (!arrived || state().proven != proof::moving || since < due / 2) return;
  // Early it can only be proven: a flow that has not followed yet may still do so.
  const valve_state before = state();
  judge_arrival(*position);
  if (state().proven != proof::proven) state() = before;
}

valve_step stepper::finish() {
  lapse();
  watch_communication();
  judge();
  return std::move(out_);
}

}  // namespace

std::optional<refusal> may_move(const valve_spec& spec, const valve_state& state, std::string_view holder,
                                double opening, instant now) {
  if (!std::isfinite(opening)) {
    return refusal{refusal_kind::malformed,
                   fmt::format("set-point of valve {} refused: it is no number", spec.name)};
  }
  if (opening < spec.least || opening > spec.most) {
    return refusal{
        refusal_kind::limit,
        fmt::format(
            "set-point {:.1f} % of valve {} refused: the limits are {:.1f} to {:.1f} %; ask within them",
            100 * opening, spec.name, 100 * spec.least, 100 * spec.most)};
  }
  if (spec.kind == valve_kind::isolation && opening != 0.0 && opening != 1.0) {
    return refusal{refusal_kind::limit,
                   fmt::format("set-point {:.1f} % of valve {} refused: an isolation valve is open or closed",
                               100 * opening, spec.name)};
  }
  const bool held = state.held && now < state.held->until;
  if (held && state.held->holder != holder) {
    return refusal{
        refusal_kind::held,
        fmt::format("valve {} is held by {} ({}) for another {:.0f} s; ask {} to release it, or wait",
                    spec.name, state.held->holder, state.held->reason, seconds(state.held->until - now),
                    state.held->holder)};
  }
  if (!held && !holder.empty()) {
    return refusal{refusal_kind::no_lease,
                   fmt::format("valve {} not moved: {} holds no override of it; take one first (valve hold)",
                               spec.name, holder)};
  }
  return std::nullopt;
}

valve_step step(const valve_spec& spec, valve_state state, const event& what, instant now) {
  const proof proven = state.proven;
  const condition seen = state.seen;
  const valve_mode mode = state.mode;
  stepper next(spec, std::move(state), now);
  std::visit([&next](const auto& each) { next.on(each); }, what);
  valve_step out = next.finish();
  if (out.state.proven != proven || out.state.seen != seen || out.state.mode != mode) {
    out.effects.emplace_back(
        changed{out.state.proven, out.state.seen, out.state.mode,
                fmt::format("{}: command {}, valve {}, {}", spec.name, name_of(out.state.proven),
                            name_of(out.state.seen), name_of(out.state.mode))});
  }
  return out;
}

}  // namespace busbar::valve
