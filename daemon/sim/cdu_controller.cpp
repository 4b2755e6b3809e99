#include "daemon/sim/cdu_controller.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "daemon/sim/physics/fluid.hpp"

namespace busbar::sim {

namespace {

constexpr double own_most_speed = 0.72;  // in its own mode; direct duty goes to full speed
constexpr double own_least_speed = 0.15;
constexpr double head_integral_s = 0.5;
constexpr double trim_integral_s = 25.0;
constexpr double most_trim_c = 3.0;
constexpr instant shortest_override = std::chrono::seconds(2);
constexpr instant longest_override = std::chrono::hours(2);

std::string number(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%g", value);
  return text.data();
}

}  // namespace

cdu_controller::cdu_controller(std::size_t pumps, cdu_nameplate plate, double speed)
    : plate_(plate), pump_on_(pumps, true), speed_square_(speed * speed) {
  points_.push_back({.name = "supply_temperature",
                     .unit = "Cel",
                     .type = "Temperature",
                     .least = 20,
                     .most = 45,
                     .usual = 32,
                     .set = 32});
  points_.push_back({.name = "differential_pressure",
                     .unit = "kPa",
                     .type = "PressurekPa",
                     .least = 20,
                     .most = 80,
                     .usual = 60,
                     .set = 60});
  for (std::size_t pump = 1; pump <= pumps; ++pump) {
    points_.push_back(
        {.name = "pump_" + std::to_string(pump), .unit = "%", .type = "Percent", .direct = true});
  }
  points_.push_back({.name = "facility_valve", .unit = "%", .type = "Valve", .direct = true});
}

const cdu_point* cdu_controller::find(std::string_view name) const {
  const auto found = std::find_if(points_.begin(), points_.end(),
                                  [name](const cdu_point& each) { return each.name == name; });
  return found == points_.end() ? nullptr : &*found;
}

cdu_point* cdu_controller::look_up(std::string_view name) {
  return const_cast<cdu_point*>(find(name));
}

bool cdu_controller::held(std::string_view name) const {
  const cdu_point* const point = find(name);
  return point != nullptr && point->held_until.has_value();
}

absl::Status cdu_controller::set(std::string_view name, double value, instant now) {
  cdu_point* const point = look_up(name);
  if (point == nullptr) return absl::NotFoundError("the unit has no control " + std::string(name));
  if (!(value >= point->least && value <= point->most)) {
    return absl::OutOfRangeError(point->name + " takes " + number(point->least) + " to " +
                                 number(point->most) + " " + point->unit);
  }
  if (point->direct && !point->held_until) {
    return absl::FailedPreconditionError(point->name +
                                         " is in the hands of the unit's own controller: take it first");
  }
  point->set = value;
  point->changed = now;
  if (point->direct) point->held_until = now + override_timeout_;
  return absl::OkStatus();
}

absl::Status cdu_controller::take(std::string_view name, std::optional<double> value, instant now) {
  cdu_point* const point = look_up(name);
  if (point == nullptr) return absl::NotFoundError("the unit has no control " + std::string(name));
  if (!point->direct) return absl::FailedPreconditionError(point->name + " is a set-point, no duty");
  const bool was = point->held_until.has_value();
  point->held_until = now + override_timeout_;
  const absl::Status done = set(name, value.value_or(point->set), now);
  if (!done.ok() && !was) point->held_until.reset();
  return done;
}

absl::Status cdu_controller::release(std::string_view name) {
  cdu_point* const point = look_up(name);
  if (point == nullptr) return absl::NotFoundError("the unit has no control " + std::string(name));
  point->held_until.reset();
  return absl::OkStatus();
}

absl::Status cdu_controller::set_override_timeout(instant length) {
  if (length < shortest_override || length > longest_override)
    return absl::OutOfRangeError("the override's time is 2 s to 7200 s");
  override_timeout_ = length;
  return absl::OkStatus();
}

// The facility valve's opening at which the exchanger brings the coolant to this temperature; more opening
// cools more.
double cdu_controller::wanted_opening(const cdu_inputs& seen, double wanted_c) const {
  const double wanted_kw = physics::mass_flow_kg_per_s(seen.flow_lpm, seen.hot_c) *
                           physics::heat_capacity_kj_per_kg_k(0.5 * (seen.hot_c + wanted_c)) *
                           (seen.hot_c - wanted_c);
  double low = 0;
  double high = 1;
  const double pipe =
      plate_.facility_pipe_kpa / (plate_.exchanger.facility_rated_lpm * plate_.exchanger.facility_rated_lpm);
  for (int round = 0; round < 22; ++round) {
    const double at = 0.5 * (low + high);
    const double square = plate_.valve.square_kpa_per_lpm2(at, 996.0);
    const double cold = std::sqrt(plate_.facility_kpa / (square + pipe));
    const double kw =
        physics::exchanged_kw(plate_.exchanger, seen.flow_lpm, seen.hot_c, cold, seen.facility_c);
    (kw < wanted_kw ? low : high) = at;
  }
  return 0.5 * (low + high);
}

void cdu_controller::step(const cdu_inputs& seen, double dt_s, instant now) {
  double shown = 0;  // what the overridden pumps do: the own mode goes on from there
  std::size_t own = 0;
  for (cdu_point& each : points_) {
    if (each.held_until && *each.held_until <= now) each.held_until.reset();
  }
  for (std::size_t pump = 0; pump < pump_on_.size(); ++pump) {
    const cdu_point& point = points_[2 + pump];
    if (point.held_until) {
      shown = std::max(shown, point.set / 100.0);
    } else {
      ++own;
    }
  }
  if (own == 0) {
    speed_square_ = shown * shown;
  } else if (enabled_ && seen.any_pump && std::isfinite(seen.dp_kpa)) {
    const double error = find("differential_pressure")->set - seen.dp_kpa;
    // Back from a faster duty it comes down at the pumps' pace, not by a step.
    const double most = std::max(own_most_speed * own_most_speed, speed_square_ - 0.05 * dt_s);
    speed_square_ = std::clamp(speed_square_ + error * dt_s / (head_integral_s * plate_.shutoff_kpa),
                               own_least_speed * own_least_speed, most);
  }
  for (std::size_t pump = 0; pump < pump_on_.size(); ++pump) {
    cdu_point& point = points_[2 + pump];
    if (!point.held_until) point.set = 100.0 * std::sqrt(speed_square_);
  }
  cdu_point& valve = points_.back();
  if (valve.held_until) {
    opening_ = valve.set / 100.0;
    return;
  }
  if (std::isfinite(seen.supply_c) && seen.flow_lpm > 1e-3) {
    const double wanted = find("supply_temperature")->set;
    trim_c_ =
        std::clamp(trim_c_ + (wanted - seen.supply_c) * dt_s / trim_integral_s, -most_trim_c, most_trim_c);
    opening_ = wanted_opening(seen, wanted + trim_c_);
  }
  valve.set = 100.0 * opening_;
}

double cdu_controller::pump_speed(std::size_t pump) const {
  return pump_enabled(pump) ? points_[2 + pump].set / 100.0 : 0.0;
}

double cdu_controller::facility_opening() const {
  return opening_;
}

json cdu_controller::save() const {
  json saved = {{"enabled", enabled_}, {"override_timeout_ns", override_timeout_.count()}};
  for (const cdu_point& each : points_) {
    if (!each.direct) saved["set_points"][each.name] = each.set;
  }
  for (const bool on : pump_on_) saved["pumps"].push_back(on);
  return saved;
}

void cdu_controller::load(const json& saved) {
  saved.at("enabled").get_to(enabled_);
  override_timeout_ = instant(saved.at("override_timeout_ns").get<instant::rep>());
  for (cdu_point& each : points_) {
    if (!each.direct) saved.at("set_points").at(each.name).get_to(each.set);
  }
  for (std::size_t pump = 0; pump < pump_on_.size(); ++pump)
    pump_on_[pump] = saved.at("pumps").at(pump).get<bool>();
}

}  // namespace busbar::sim
