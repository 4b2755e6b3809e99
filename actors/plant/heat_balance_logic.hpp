// Does what goes in come out? Electric power against flow times temperature rise, after the coolant's
// transport lag. Finds a flow meter that drifts by 5 % within five minutes, and any sensor of the three that
// is far off at once. Only the balance is judged: it cannot say which of the sensors lies.
#pragma once

#include <optional>

#include "actors/plant/measurement.hpp"

namespace busbar::plant {

struct heat_balance_limits {
  double kw_per_lpm_k = 0.0669;
  double electric_share = 1.0;  // of electric power that reaches the coolant
  double transport_l = 32.0;    // coolant between cold plates and the return sensor
  double sensor_lag_s = 2.0;
  double average_s = 60.0;
  double absolute = 0.10;  // residual that makes the readings invalid
  double drift = 0.03;     // change of the ratio against the learned one
  double learn_s = 300.0;  // of steady operation before the ratio is learned
  double least_kw = 10.0;
  double steady_share = 0.05;  // power within this of its lagged self: steady
  instant confirm = std::chrono::seconds{30};
  instant max_age = std::chrono::seconds{3};
};

enum class balance_verdict { unknown, learning, closed, drifting, broken };
std::string_view name_of(balance_verdict verdict);

struct heat_balance_state {
  std::optional<double> arriving_kw;  // power after the transport lag
  std::optional<double> ratio;        // carried over arriving, averaged
  std::optional<double> learned;
  double steady_s = 0.0;
  double learning_s = 0.0;
  std::optional<instant> off_since;
  std::optional<instant> last;
};

struct heat_balance_outputs {
  balance_verdict verdict = balance_verdict::unknown;
  std::optional<double> residual;  // ratio - 1, averaged
};

struct heat_balance_step {
  heat_balance_state state;
  heat_balance_outputs outputs;
};

heat_balance_step step(const heat_balance_limits& limits, heat_balance_state state, const measurement& kw,
                       const measurement& flow_lpm, const measurement& inlet_c, const measurement& return_c,
                       instant now);

}  // namespace busbar::plant
