// What a vendor's delivery note would hold, written for the simulated site: manifests, SKU, baseline, suites,
// firmware images with digests, leases, factory passwords. Everything under one folder; paths inside are
// relative to it.
#pragma once

#include <absl/status/status.h>

#include <string>

#include "daemon/sim/site.hpp"

namespace busbar::sim {

absl::Status write_delivery_note(const site& described, const std::string& folder, instant now);
// The dnsmasq lease file alone; rewritten when a fault changes what is announced.
absl::Status write_leases(const site& described, const std::string& folder, instant now);

}  // namespace busbar::sim
