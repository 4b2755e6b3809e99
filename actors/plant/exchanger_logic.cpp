#include "actors/plant/exchanger_logic.hpp"

#include <algorithm>
#include <cmath>

namespace busbar::plant {

namespace {

double facility_lpm(const exchanger_model& model, double opening) {
  const double kv = model.valve_kv_max * std::pow(model.valve_rangeability, opening - 1.0);
  const double valve = 100.0 * (0.06 / kv) * (0.06 / kv);  // kPa per LPM^2
  const double pipe = model.facility_pipe_kpa / (model.facility_rated_lpm * model.facility_rated_lpm);
  return std::sqrt(model.facility_kpa / (valve + pipe));
}

}  // namespace

double coolant_out_c(const exchanger_model& model, const exchanger_duty& duty, double opening) {
  if (duty.flow_lpm <= 0) return duty.hot_c;
  const double cold_lpm = facility_lpm(model, opening);
  const double hot = model.kw_per_lpm_k * duty.flow_lpm;
  const double cold = model.facility_kw_per_lpm_k * cold_lpm;
  const double hot_film = std::pow(duty.flow_lpm / model.rated_lpm, 0.7);
  const double cold_film = std::pow(cold_lpm / model.facility_rated_lpm, 0.7);
  const double least = std::min(hot, cold);
  const double ratio = least / std::max(hot, cold);
  const double ntu = model.ua_kw_per_k * 2.0 / (1.0 / hot_film + 1.0 / cold_film) / least;
  double share = ntu / (1.0 + ntu);
  if (ratio < 0.999) {
    const double decay = std::exp(-ntu * (1.0 - ratio));
    share = (1.0 - decay) / (1.0 - ratio * decay);
  }
  return duty.hot_c - share * least / hot * (duty.hot_c - duty.facility_c);
}

double opening_for(const exchanger_model& model, const exchanger_duty& duty, double wanted_c) {
  if (coolant_out_c(model, duty, 0.0) <= wanted_c) return 0.0;
  if (coolant_out_c(model, duty, 1.0) >= wanted_c) return 1.0;
  double low = 0.0;
  double high = 1.0;
  for (int round = 0; round < 30; ++round) {
    const double middle = 0.5 * (low + high);
    (coolant_out_c(model, duty, middle) > wanted_c ? low : high) = middle;
  }
  return 0.5 * (low + high);
}

}  // namespace busbar::plant
