#include "daemon/sim/physics/sensor.hpp"

#include <cmath>
#include <limits>

namespace busbar::sim::physics {

void sensor::advance(double dt_s, double truth) {
  lagged_ = truth + (lagged_ - truth) * std::exp(-dt_s / design_.lag_s);
}

double sensor::sample() {
  const double deviation =
      noise_.gaussian();  // drawn in every state, so that a fault does not shift later noise
  if (fault_ == sensor_fault::frozen) return shown_;
  if (fault_ == sensor_fault::dead) return std::numeric_limits<double>::quiet_NaN();
  if (fault_ == sensor_fault::out_of_range) return amount_;
  double value = lagged_;
  if (fault_ == sensor_fault::offset) value += amount_;
  if (fault_ == sensor_fault::scaled) value *= 1.0 + amount_;
  shown_ = value + deviation * (design_.noise + design_.noise_share * std::abs(value));
  return shown_;
}

void sensor::fault(sensor_fault kind, double amount) {
  fault_ = kind;
  amount_ = amount;
}

}  // namespace busbar::sim::physics
