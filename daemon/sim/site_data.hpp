// The simulator's tables as typed values: timings of a profile, parts of a SKU. Read from daemon/sim/data.
#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <vector>

#include "daemon/sim/http_message.hpp"

namespace busbar::sim {

struct profile {
  std::string name;
  instant bmc_up{0};
  instant host_on{0};    // command to rails up
  instant host_boot{0};  // rails up to OS running
  instant switch_boot{0};
  instant host_off{0};
  instant graceful_off{0};
  instant shelf_on{0};
  instant flash{0};  // one component
  instant lockout{0};
  instant session_timeout{0};
  instant valve_stroke{0};
  instant off_ignored{0};
  instant group_interval{0};
  instant test_short{0};  // durations that the delivery note's suites declare
  instant test_burn{0};
  instant test_train{0};
  instant test_collective{0};
  double deadline_scale = 1;
};

struct sku_data {
  std::string name;
  int gpus = 0;
  std::string gpu_model;
  int gpu_memory_gib = 0;
  int nvlinks = 0;
  int cpus = 0;
  std::string cpu_model;
  int cores = 0;
  int nics = 0;
  std::string nic_model;
  int nic_gbps = 0;
  int pcie_generation = 0;
  int pcie_width = 0;
  int dpus = 0;
  std::string dpu_model;
  int drives = 0;
  int drive_gib = 0;
  int drive_min_gib = 0;
  int dimms = 0;
  int dimm_gib = 0;
  std::vector<std::string> compute_detectors;
  int asics = 0;
  int ports_per_asic = 0;
  std::vector<std::string> switch_detectors;
  int psus = 0;
  int psu_watts = 0;
  int compute = 0;
  int compute_min = 0;
  int switches = 0;
  int shelves = 0;
  double flow_min_lpm = 0;
  double inrush_limit_a = 0;
  double inrush_per_tray_a = 0;
  double rack_limit_kw = 0;
};

absl::StatusOr<profile> profile_named(const std::string& name);
absl::StatusOr<sku_data> sku_named(const std::string& name);

}  // namespace busbar::sim
