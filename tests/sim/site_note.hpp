// The delivery note of the simulated site, written once a process: manifest, SKU, baseline, suites, images,
// leases, passwords, and a vault key beside it. Every seed reads the same one.
#pragma once

#include <string>

#include "busbar/journal/spec.pb.h"

namespace busbar::test_support {

inline constexpr std::uint64_t site_seed = 1;

struct site_note {
  std::string folder;
  std::string key_file;
  journal::RackSpec spec;
};

const site_note& delivered();

}  // namespace busbar::test_support
