// Two specs of a rack, compared key by key. Rows of lists are known by their slot, component or name, so that
// a row put in between is one addition and not a change of all that follow. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "busbar/journal/plant.pb.h"
#include "busbar/journal/spec.pb.h"

namespace busbar::manifest {

struct spec_change {
  std::string
      key_path;  // manifest.members[c07].serial, baseline.deadlines.staged, suites.node.tests[hbm].duration
  std::string before;  // empty: not there
  std::string after;   // empty: goes away

  bool operator==(const spec_change&) const = default;
};

// Ordered by key path. The digest is left out: it says nothing by itself.
std::vector<spec_change> changes(const journal::RackSpec& before, const journal::RackSpec& after);
std::vector<spec_change> changes(const journal::PlantSpec& before, const journal::PlantSpec& after);
// The same as key path -> "old -> new", "(none)" for what is not there.
std::map<std::string, std::string> diff(const journal::RackSpec& before, const journal::RackSpec& after);

}  // namespace busbar::manifest
