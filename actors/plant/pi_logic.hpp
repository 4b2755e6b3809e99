// Proportional-integral with feed-forward, output limits, rate limit, back-calculation anti-windup and
// bumpless transfer. Pure; unit of the output is the caller's.
#pragma once

namespace busbar::plant {

struct pi_gains {
  double kp = 1.0;  // output per unit of error
  double ti_s = 30.0;
  double tt_s = 30.0;  // back-calculation: how fast the integral forgets what limits swallowed
  double low = 0.0;
  double high = 1.0;
  double rate_per_s = 1e9;
  double integral_dead_band =
      0.0;  // errors within it are not integrated: no limit cycle around a sticky actuator
};

struct pi_state {
  double integral = 0.0;
  double output = 0.0;
  bool primed = false;  // false until the output is known to be what the actuator does
};

// One step. The error's sign is such that a positive one asks for more output.
double pi_step(const pi_gains& gains, pi_state& state, double error, double feed_forward, double dt_s);

// Makes the next step start from this output: manual mode, restart, and whatever an inner limit made of the
// last one.
void pi_track(const pi_gains& gains, pi_state& state, double output, double error, double feed_forward);

}  // namespace busbar::plant
