#include "actors/core/supervisor_logic.hpp"

#include <algorithm>
#include <utility>

namespace busbar::core {

std::string_view name_of(child_phase phase) {
  switch (phase) {
    case child_phase::down: return "down";
    case child_phase::starting: return "starting";
    case child_phase::running: return "running";
    case child_phase::stopping: return "stopping";
    case child_phase::killing: return "killing";
    case child_phase::ended: return "ended";
    case child_phase::given_up: return "given_up";
  }
  return "invalid";
}

supervisor_logic::supervisor_logic(supervisor_plan plan, std::vector<child_plan> children) : plan_(std::move(plan)) {
  for (child_plan& one : children) {
    children_.emplace_back();
    children_.back().plan = std::move(one);
  }
}

supervisor_effects supervisor_logic::begin(time_point now) {
  for (child& one : children_) one.deadline = now;
  return settle(now);
}

supervisor_effects supervisor_logic::child_started(std::size_t index, time_point now) {
  if (children_[index].phase == child_phase::starting) children_[index].phase = child_phase::running;
  return settle(now);
}

supervisor_effects supervisor_logic::child_down(std::size_t index, bool normally, std::string_view why, time_point now) {
  child& one = children_[index];
  const bool asked = one.phase == child_phase::stopping || one.phase == child_phase::killing;
  if (one.phase == child_phase::down || one.phase == child_phase::ended) return {};
  if (ending_ || one.phase == child_phase::given_up || (asked && one.plan.restart == restart_policy::temporary)) {
    one.phase = child_phase::ended;
  } else if (asked) {
    one.phase = child_phase::down;
    one.recycled = false;
    one.deadline = now;
  } else {
    const bool again = one.plan.restart == restart_policy::permanent ||
                       (one.plan.restart == restart_policy::transient && !normally);
    one.phase = again ? child_phase::down : child_phase::ended;
    one.recycled = false;
    if (again) failed(index, why, now);
  }
  return settle(now);
}

supervisor_effects supervisor_logic::tick(time_point now) { return settle(now); }

supervisor_effects supervisor_logic::stop(time_point now) {
  ending_ = true;
  return settle(now);
}

std::optional<supervisor_logic::time_point> supervisor_logic::next_deadline() const {
  if (ended_) return std::nullopt;
  bool starts_wait = ending_ || something_must_go();
  std::optional<time_point> earliest;
  for (const child& one : children_) {
    const bool to_start = one.phase == child_phase::down && !starts_wait;
    const bool to_stop = one.phase == child_phase::stopping || one.phase == child_phase::killing;
    if (!to_start && !to_stop) continue;
    if (!earliest.has_value() || one.deadline < *earliest) earliest = one.deadline;
    if (to_start && plan_.scope == restart_scope::rest) starts_wait = true;  // later ones wait for this one
  }
  return earliest;
}

bool supervisor_logic::is_up(const child& one) const {
  return one.phase == child_phase::running || one.phase == child_phase::stopping || one.phase == child_phase::killing;
}

bool supervisor_logic::something_must_go() const {
  return std::any_of(children_.begin(), children_.end(), [this](const child& one) { return must_go(one); });
}

bool supervisor_logic::must_go(const child& one) const { return is_up(one) && (ending_ || one.recycled); }

void supervisor_logic::failed(std::size_t index, std::string_view why, time_point now) {
  while (!failures_.empty() && now - failures_.front().at > plan_.limits.within) failures_.pop_front();
  failures_.push_back({now, index});
  if (failures_.size() > plan_.limits.at_most) {
    escalate(children_[index].plan.name + " failed (" + std::string(why) + "), the " + std::to_string(failures_.size()) +
             "th failure within the limit's time; the limit is " + std::to_string(plan_.limits.at_most));
    return;
  }
  children_[index].deadline = now + back_off(index);
  if (plan_.scope == restart_scope::one) return;
  for (std::size_t later = index + 1; later < children_.size(); ++later) {
    if (is_up(children_[later])) children_[later].recycled = true;
  }
}

void supervisor_logic::escalate(std::string why) {
  if (failure_.empty()) failure_ = std::move(why);
  ending_ = true;
}

std::chrono::nanoseconds supervisor_logic::back_off(std::size_t index) const {
  const auto times = std::count_if(failures_.begin(), failures_.end(), [index](const failure& f) { return f.index == index; });
  auto wait = plan_.limits.first_back_off;
  for (auto n = times; n > 1 && wait < plan_.limits.longest_back_off; --n) wait *= 2;
  return std::min(wait, plan_.limits.longest_back_off);
}

void supervisor_logic::overdue(time_point now, supervisor_effects& effects) {
  for (std::size_t i = 0; i < children_.size(); ++i) {
    child& one = children_[i];
    if (one.deadline > now) continue;
    if (one.phase == child_phase::stopping) {
      one.phase = child_phase::killing;
      one.deadline = now + one.plan.kill_limit;
      effects.push_back(kill_child{i});
    } else if (one.phase == child_phase::killing) {
      one.phase = child_phase::given_up;
      // A second instance beside one that may still act would be a second owner of its devices: never start it again.
      escalate(one.plan.name + " could not be stopped");
    }
  }
}

supervisor_effects supervisor_logic::settle(time_point now) {
  supervisor_effects effects;
  if (ended_) return effects;
  overdue(now, effects);
  // One at a time, the last started first; nothing is started while something must go.
  for (std::size_t i = children_.size(); i-- > 0;) {
    child& one = children_[i];
    if (!must_go(one)) continue;
    if (one.phase == child_phase::running) {
      one.phase = child_phase::stopping;
      one.deadline = now + one.plan.stop_limit;
      effects.push_back(stop_child{i});
    }
    return effects;
  }
  if (ending_) {
    ended_ = true;
    effects.push_back(end_supervisor{failure_});
    return effects;
  }
  for (std::size_t i = 0; i < children_.size(); ++i) {
    child& one = children_[i];
    if (one.phase != child_phase::down) continue;
    if (one.deadline > now) {
      if (plan_.scope == restart_scope::rest) break;  // later ones need this one's handle
      continue;
    }
    one.phase = child_phase::starting;
    ++one.starts;
    effects.push_back(start_child{i});
    break;  // the next when this one is known to run
  }
  return effects;
}

}  // namespace busbar::core
