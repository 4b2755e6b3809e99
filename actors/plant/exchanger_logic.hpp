// The CDU's exchanger and facility valve as nameplate data: which opening brings the coolant to a
// temperature. Errors of the nameplate are what the loop's integral is for.
#pragma once

namespace busbar::plant {

struct exchanger_model {
  double ua_kw_per_k = 110.0;  // at both rated flows
  double rated_lpm = 475.0;
  double facility_rated_lpm = 500.0;
  double facility_kpa = 150.0;      // across valve and exchanger
  double facility_pipe_kpa = 40.0;  // of it in the exchanger, at rated facility flow
  double valve_kv_max = 34.0;
  double valve_rangeability = 30.0;
  double kw_per_lpm_k = 0.0669;  // PG25 between 30 and 45 C
  double facility_kw_per_lpm_k = 0.0694;
};

struct exchanger_duty {
  double flow_lpm = 0;
  double hot_c = 0;       // entering the exchanger
  double facility_c = 0;  // entering on the other side
};

// What the loop has learned of this unit beside its nameplate: factors, 1 where nothing is known.
struct exchanger_learned {
  double ua = 1.0;
  double facility_flow = 1.0;  // through the facility valve at an opening
};

// Facility water through the valve at this opening, by the nameplate.
double facility_lpm_at(const exchanger_model& model, double opening);
double coolant_out_c(const exchanger_model& model, const exchanger_duty& duty, double facility_lpm,
                     double ua_factor);
double coolant_out_c(const exchanger_model& model, const exchanger_duty& duty, double opening,
                     const exchanger_learned& learned = {});
// Between 0 and 1; the nearer end when no opening reaches the temperature.
double opening_for(const exchanger_model& model, const exchanger_duty& duty, double wanted_c,
                   const exchanger_learned& learned = {});
// The factor on the nameplate's UA that explains this temperature, between 0.3 and 3.
double ua_factor_for(const exchanger_model& model, const exchanger_duty& duty, double facility_lpm,
                     double out_c);

}  // namespace busbar::plant
