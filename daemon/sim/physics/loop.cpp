#include "daemon/sim/physics/loop.hpp"

#include <algorithm>
#include <cmath>

namespace busbar::sim::physics {

namespace {
constexpr double die_kelvin_per_watt = 0.03;
constexpr double die_lag_s = 10.0;
constexpr double settled_kpa = 1e-3;
constexpr double longest_ramp_step_s = 0.1;
constexpr double lowest_flow_fraction = 0.05;  // below it a die heats as if this little coolant still passed
}  // namespace

branch::branch(double conductance_lpm_per_sqrt_kpa, double nominal_lpm, double lag_s)
    : conductance_(conductance_lpm_per_sqrt_kpa), capacity_kj_per_k_(lag_s * kw_per_lpm_k * nominal_lpm) {}

void branch::advance(double dt_s, double power_kw, double dp_kpa) {
  flow_lpm_ = conductance_ * std::sqrt(std::max(0.0, dp_kpa));
  const double before = rise_k_;
  const double carried = kw_per_lpm_k * flow_lpm_;  // kW per kelvin
  if (carried > 0) {
    const double settled = power_kw / carried;
    rise_k_ = settled + (before - settled) * std::exp(-carried * dt_s / capacity_kj_per_k_);
  } else {
    rise_k_ = before + power_kw * dt_s / capacity_kj_per_k_;
  }
  const double in = power_kw * dt_s;
  put_in_kj_ += in;
  taken_out_kj_ += in - capacity_kj_per_k_ * (rise_k_ - before);
}

void die::advance(double dt_s, double inlet_c, double power_w, double flow_fraction) {
  const double fraction = std::max(lowest_flow_fraction, std::min(1.0, flow_fraction));
  const double settled = inlet_c + die_kelvin_per_watt * power_w / fraction;
  temperature_c_ = settled + (temperature_c_ - settled) * std::exp(-dt_s / die_lag_s);
}

loop::loop(design wanted)
    : design_(wanted), working_pumps_(static_cast<double>(wanted.pumps)), dp_kpa_(wanted.dp_set_kpa) {}

std::size_t loop::add_rack() {
  racks_.emplace_back();
  return racks_.size() - 1;
}

std::size_t loop::add_branch(std::size_t rack, double conductance, double nominal_lpm) {
  racks_[rack].push_back(tap{branch(conductance, nominal_lpm)});
  racks_[rack].back().pipe.advance(0, 0, dp_kpa_);
  return racks_[rack].size() - 1;
}

void loop::set_power(std::size_t rack, std::size_t index, double kw) {
  racks_[rack][index].power_kw = kw;
}

void loop::advance(double dt_s) {
  while (dt_s > 0) {
    const double share = working_pumps_ / static_cast<double>(design_.pumps);
    const double goal =
        design_.dp_set_kpa * share * share;  // pump affinity: pressure goes with speed squared
    if (std::abs(goal - dp_kpa_) <= settled_kpa) {
      dp_kpa_ = goal;
      step(dt_s);
      return;
    }
    const double part = std::min(dt_s, longest_ramp_step_s);
    dp_kpa_ = goal + (dp_kpa_ - goal) * std::exp(-part / design_.ramp_s);
    step(part);
    dt_s -= part;
  }
}

void loop::step(double dt_s) {
  for (auto& rack : racks_) {
    for (tap& each : rack) {
      each.pipe.advance(dt_s, each.power_kw, dp_kpa_);
    }
  }
}

rack_reading loop::rack(std::size_t index) const {
  rack_reading sum;
  for (const tap& each : racks_[index]) {
    sum.flow_lpm += each.pipe.flow_lpm();
    sum.removed_kw += each.pipe.removed_kw();
  }
  const double carried = kw_per_lpm_k * sum.flow_lpm;
  sum.return_c = design_.supply_c + (carried > 0 ? sum.removed_kw / carried : 0.0);
  return sum;
}

double loop::pump_speed_percent() const {
  return std::min(100.0, 62.0 * static_cast<double>(design_.pumps) / std::max(1.0, working_pumps_));
}

double loop::facility_return_c() const {
  double removed = 0;
  for (std::size_t index = 0; index < racks_.size(); ++index) {
    removed += rack(index).removed_kw;
  }
  return design_.facility_supply_c + removed / (kw_per_lpm_k * design_.facility_lpm);
}

double loop::imbalance() const {
  double in = 0;
  double rest = 0;
  for (const auto& rack : racks_) {
    for (const tap& each : rack) {
      in += each.pipe.put_in_kj();
      rest += each.pipe.put_in_kj() - each.pipe.taken_out_kj() - each.pipe.stored_kj();
    }
  }
  return in > 0 ? std::abs(rest) / in : 0.0;
}

}  // namespace busbar::sim::physics
