#include "actors/plant/exchanger_logic.hpp"

#include <algorithm>
#include <cmath>

namespace busbar::plant {

double facility_lpm_at(const exchanger_model& model, double opening) {
  const double kv = model.valve_kv_max * std::pow(model.valve_rangeability, opening - 1.0);
  const double valve = 100.0 * (0.06 / kv) * (0.06 / kv);  // kPa per LPM^2
  const double pipe = model.facility_pipe_kpa / (model.facility_rated_lpm * model.facility_rated_lpm);
  return std::sqrt(model.facility_kpa / (valve + pipe));
}

double coolant_out_c(const exchanger_model& model, const exchanger_duty& duty, double facility_lpm,
                     double ua_factor) {
  if (duty.flow_lpm <= 0 || facility_lpm <= 0) return duty.hot_c;
  const double hot = model.kw_per_lpm_k * duty.flow_lpm;
  const double cold = model.facility_kw_per_lpm_k * facility_lpm;
  const double hot_film = std::pow(duty.flow_lpm / model.rated_lpm, 0.7);
  const double cold_film = std::pow(facility_lpm / model.facility_rated_lpm, 0.7);
  const double least = std::min(hot, cold);
  const double ratio = least / std::max(hot, cold);
  const double ntu = ua_factor * model.ua_kw_per_k * 2.0 / (1.0 / hot_film + 1.0 / cold_film) / least;
  double share = ntu / (1.0 + ntu);
  if (ratio < 0.999) {
    const double decay = std::exp(-ntu * (1.0 - ratio));
    share = (1.0 - decay) / (1.0 - ratio * decay);
  }
  return duty.hot_c - share * least / hot * (duty.hot_c - duty.facility_c);
}

double coolant_out_c(const exchanger_model& model, const exchanger_duty& duty, double opening,
                     const exchanger_learned& learned) {
  return coolant_out_c(model, duty, learned.facility_flow * facility_lpm_at(model, opening), learned.ua);
}

double opening_for(const exchanger_model& model, const exchanger_duty& duty, double wanted_c,
                   const exchanger_learned& learned) {
  if (coolant_out_c(model, duty, 0.0, learned) <= wanted_c) return 0.0;
  if (coolant_out_c(model, duty, 1.0, learned) >= wanted_c) return 1.0;
  double low = 0.0;
  double high = 1.0;
  for (int round = 0; round < 30; ++round) {
    const double middle = 0.5 * (low + high);
    (coolant_out_c(model, duty, middle, learned) > wanted_c ? low : high) = middle;
  }
  return 0.5 * (low + high);
}

double ua_factor_for(const exchanger_model& model, const exchanger_duty& duty, double facility_lpm,
                     double out_c) {
  double low = 0.3;
  double high = 3.0;
  for (int round = 0; round < 20; ++round) {
    const double middle = std::sqrt(low * high);
    (coolant_out_c(model, duty, facility_lpm, middle) > out_c ? low : high) = middle;
  }
  return std::sqrt(low * high);
}

}  // namespace busbar::plant
