// The same counts as bench_interlock's, on the wire: two racks of busbar-sim, busbar-interlock as installed.
#pragma once

#include <ostream>
#include <string>

namespace busbar::bench {

struct wire_counts {
  int faults = 0;
  int lasting = 0;  // of the faults: those that stay and make a detector unknown
  int shown = 0;    // of these: shown unknown by the interlock when their time was over
  int false_trips = 0;
  int leaks = 0;
  int missed = 0;
  double worst_ms = 0;  // wet -> the trip is shown, without the confirm time
  bool realtime = false;
};

// rows: null, or where each try is written as a line of interlock_wire.csv.
wire_counts count_on_the_wire(const std::string& programs, int faults, int leaks, std::ostream* rows);

}  // namespace busbar::bench
