#include "actors/devices/cdu_fake.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace busbar::devices {
namespace {

absl::Status outside(cdu_value what, double value, double least, double most) {
  if (std::isfinite(value) && value >= least && value <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("cdu: {} {} is not within {} to {}", name_of(what), value, least, most));
}

void approach(std::optional<double>& value, std::optional<double> goal, double share) {
  if (value.has_value() && goal.has_value()) *value += (*goal - *value) * share;
}

}  // namespace

cdu_fake::cdu_fake() {
  truth.supply_c = 40;
  truth.return_c = 52;
  truth.flow_lpm = 240;
  truth.dp_kpa = 60;
  truth.system_kpa = 180;
  truth.level_percent = 82;
  truth.facility_supply_c = 30;
  truth.facility_return_c = 38;
  truth.facility_flow_lpm = 300;
  truth.air_c = 25;
  truth.humidity_percent = 45;
  truth.pumps = {{"1", true, 60, "OK"}, {"2", true, 60, "OK"}};
  truth.supply_set_point.value = 40;
  truth.dp_set_point.value = 60;
  truth.own_control = true;
  truth.health = "OK";
  truth.source = "fake";
}

void cdu_fake::give(std::function<void()> call) {
  if (later) return later(std::move(call));
  call();
}

void cdu_fake::read(answer<cdu_facts> reply) {
  if (how.silent) {
    return give([reply] { reply(absl::UnavailableError("cdu: no answer")); });
  }
  cdu_facts seen = truth;
  seen.supply_set_point.least = least_supply_c;
  seen.supply_set_point.most = most_supply_c;
  seen.dp_set_point.least = least_dp_kpa;
  seen.dp_set_point.most = most_dp_kpa;
  seen.supply_set_point.writable = seen.dp_set_point.writable = true;
  seen.watchdog_s = how.watchdog_s;
  if (how.hides_set_points) seen.supply_set_point = seen.dp_set_point = {};
  give([reply, seen] { reply(seen); });
}

void cdu_fake::write(cdu_value what, double value, done reply) {
  if (how.silent) return give([reply] { reply(absl::UnavailableError("cdu: no answer")); });
  writes.push_back({what, value});
  if (how.refuses) {
    return give([reply] { reply(absl::FailedPreconditionError("cdu: key switch at local")); });
  }
  absl::Status wrong;
  if (what == cdu_value::supply_set_point) wrong = outside(what, value, least_supply_c, most_supply_c);
  if (what == cdu_value::dp_set_point) wrong = outside(what, value, least_dp_kpa, most_dp_kpa);
  const bool duty = what == cdu_value::pump_duty || what == cdu_value::valve_duty;
  if (duty && !how.watchdog_s.has_value())
    wrong = absl::UnimplementedError(fmt::format("cdu: takes no {}", name_of(what)));
  if (!wrong.ok()) return give([reply, wrong] { reply(wrong); });
  if (!how.ignores) {
    if (what == cdu_value::supply_set_point) truth.supply_set_point.value = value;
    if (what == cdu_value::dp_set_point) truth.dp_set_point.value = value;
    if (what == cdu_value::pump_duty) {
      for (pump_facts& pump : truth.pumps) pump.speed_percent = value;
    }
    if (what == cdu_value::valve_duty) truth.facility_valve_percent = value;
    if (duty || what == cdu_value::own_control) truth.own_control = !duty;
    if (duty) since_duty_s_ = 0;
  }
  const absl::Status answer =
      how.loses_answer ? absl::DeadlineExceededError("cdu: the answer was lost") : absl::OkStatus();
  give([reply, answer] { reply(answer); });
}

void cdu_fake::pass(std::chrono::milliseconds time) {
  const double s = std::chrono::duration<double>(time).count();
  since_duty_s_ += s;
  if (how.watchdog_s.has_value() && since_duty_s_ > *how.watchdog_s) truth.own_control = true;
  if (truth.own_control != true) return;
  approach(truth.supply_c, truth.supply_set_point.value, 1 - std::exp(-s / 20));
  const bool pumped = std::any_of(truth.pumps.begin(), truth.pumps.end(),
                                  [](const pump_facts& pump) { return pump.running == true; });
  approach(truth.dp_kpa, pumped ? truth.dp_set_point.value : std::optional(0.0), 1 - std::exp(-s / 3));
}

}  // namespace busbar::devices
