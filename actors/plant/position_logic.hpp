// The inner position loop of a valve: turns a wanted opening into the command that brings the stem there, in
// spite of dead band and stiction, and stops moving once the stem is near enough. Near enough grows with the
// jump that the valve is seen to make, so that a badly sticking valve is left at rest instead of hunting.
#pragma once

#include <optional>

#include "actors/plant/measurement.hpp"

namespace busbar::plant {

struct position_gains {
  double dead_band = 0.005;    // stem this near to what is wanted: no new command
  double play = 0.010;         // motion that the valve loses at a reversal
  double excursion = 0.020;    // beyond what is wanted and back: more than a sound valve's jump
  bool fine = true;            // small moves by excursion; else by creeping alone
  double creep_per_s = 0.005;  // how fast the command grows while the stem sticks
  double most_creep =
      0.12;  // command beyond what is wanted; a valve that needs more is reported stuck, not chased
  double settle_s = 2.0;       // without motion before the stem counts as at rest
  double out_s = 1.0;          // how long an excursion lasts: its travel, and no longer than it must
  double dwell_s = 8.0;        // between two small moves
  double motion = 0.006;       // read-back change between two steps that is motion, not noise
  double coarse_jump = 0.025;  // a valve seen to jump this far is left at rest within jump_share of it
  double jump_share = 0.6;
  double jump_forgotten_s = 86'400.0;
  double read_filter_s = 2.0;
};

enum class position_phase {
  resting,
  travelling,  // a real move: the command is what is wanted
  outward,     // first of two moves: past what is wanted by the excursion
  back,        // second of two moves
  creeping     // the command grows until the stem comes loose
};

struct position_state {
  std::optional<double> command;
  std::optional<double> last_read;
  position_phase phase = position_phase::resting;
  double read = 0.0;           // filtered while at rest
  double wanted = 0.0;         // of the last real move, or what a small move aims at
  int direction = 1;           // of the small move
  double still_s = 0.0;        // without motion
  double phase_s = 0.0;        // in this phase
  double rest_position = 0.0;  // where the stem last rested
  int fruitless = 0;           // excursions in a row that ended off the mark
  double jump = 0.0;           // the largest first step out of rest that was seen while creeping
};

// The error that is left standing. A caller's integral must not count errors that such an opening explains.
double resting_band(const position_gains& gains, const position_state& state);

// wanted: 0..1. read: the stem, nothing when unknown: the wanted opening is then the command. Gives the
// command.
double position_step(const position_gains& gains, position_state& state, double wanted,
                     std::optional<double> read, double dt_s);

}  // namespace busbar::plant
