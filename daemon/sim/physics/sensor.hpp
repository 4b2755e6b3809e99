// A sensor between truth and reader: first-order lag, noise, and the ways in which sensors break.
#pragma once

#include <cstdint>

#include "daemon/sim/physics/noise.hpp"

namespace busbar::sim::physics {

struct sensor_design {
  double lag_s = 2.0;
  double noise = 0.1;        // standard deviation, in the sensor's unit
  double noise_share = 0.0;  // standard deviation as a share of the reading
};

enum class sensor_fault { none, frozen, dead, offset, scaled, out_of_range };

class sensor {
 public:
  sensor(sensor_design wanted, double start, std::uint64_t seed)
      : design_(wanted), lagged_(start), shown_(start), noise_(seed) {}

  void advance(double dt_s, double truth);
  // One reading. NaN when the sensor is dead: what a driver must turn into "no value".
  double sample();
  void fault(sensor_fault kind, double amount = 0.0);

 private:
  sensor_design design_;
  double lagged_;
  double shown_;
  double amount_ = 0;
  sensor_fault fault_ = sensor_fault::none;
  stream noise_;
};

}  // namespace busbar::sim::physics
