#include "daemon/sim/site_data.hpp"

#include <absl/status/status.h>

#include "daemon/sim/embedded_data.hpp"
#include "daemon/sim/json.hpp"

namespace busbar::sim {

namespace {

absl::StatusOr<json> row_named(std::string_view file, const std::string& name) {
  const json table = json::parse(embedded_data(file));
  const auto row = table.find(name);
  if (row == table.end()) {
    std::string known;
    for (const auto& [each, unused] : table.items()) {
      known += (known.empty() ? "" : ", ") + each;
    }
    return absl::InvalidArgumentError("no " + name + " in " + std::string(file) + "; known: " + known);
  }
  return *row;
}

instant milliseconds(const json& row, const char* key) {
  return std::chrono::milliseconds(row.at(key).get<int>());
}
instant seconds(const json& row, const char* key) {
  return std::chrono::seconds(row.at(key).get<int>());
}

}  // namespace

absl::StatusOr<profile> profile_named(const std::string& name) {
  const auto row = row_named("profiles", name);
  if (!row.ok()) {
    return row.status();
  }
  profile result;
  result.name = name;
  result.bmc_up = milliseconds(*row, "bmc_up_ms");
  result.host_on = milliseconds(*row, "host_on_ms");
  result.host_boot = milliseconds(*row, "host_boot_ms");
  result.switch_boot = milliseconds(*row, "switch_boot_ms");
  result.host_off = milliseconds(*row, "host_off_ms");
  result.graceful_off = milliseconds(*row, "graceful_off_ms");
  result.shelf_on = milliseconds(*row, "shelf_on_ms");
  result.valve_stroke = milliseconds(*row, "valve_stroke_ms");
  result.flash = milliseconds(*row, "flash_ms");
  result.lockout = seconds(*row, "lockout_s");
  result.session_timeout = seconds(*row, "session_timeout_s");
  result.off_ignored = seconds(*row, "off_ignored_s");
  result.group_interval = milliseconds(*row, "group_interval_ms");
  result.test_short = milliseconds(row->at("test_ms"), "short");
  result.test_burn = milliseconds(row->at("test_ms"), "burn");
  result.test_train = milliseconds(row->at("test_ms"), "train");
  result.test_collective = milliseconds(row->at("test_ms"), "collective");
  result.deadline_scale = row->at("deadline_scale").get<double>();
  return result;
}

absl::StatusOr<sku_data> sku_named(const std::string& name) {
  const auto row = row_named("skus", name);
  if (!row.ok()) {
    return row.status();
  }
  sku_data sku;
  sku.name = name;
  const auto read = [&row](const char* key, auto& into) { row->at(key).get_to(into); };
  read("gpus", sku.gpus);
  read("gpu_model", sku.gpu_model);
  read("gpu_memory_gib", sku.gpu_memory_gib);
  read("nvlinks", sku.nvlinks);
  read("cpus", sku.cpus);
  read("cpu_model", sku.cpu_model);
  read("cores", sku.cores);
  read("nics", sku.nics);
  read("nic_model", sku.nic_model);
  read("nic_gbps", sku.nic_gbps);
  read("pcie_generation", sku.pcie_generation);
  read("pcie_width", sku.pcie_width);
  read("dpus", sku.dpus);
  read("dpu_model", sku.dpu_model);
  read("drives", sku.drives);
  read("drive_gib", sku.drive_gib);
  read("drive_min_gib", sku.drive_min_gib);
  read("dimms", sku.dimms);
  read("dimm_gib", sku.dimm_gib);
  read("compute_detectors", sku.compute_detectors);
  read("asics", sku.asics);
  read("ports_per_asic", sku.ports_per_asic);
  read("switch_detectors", sku.switch_detectors);
  read("psus", sku.psus);
  read("psu_watts", sku.psu_watts);
  read("compute", sku.compute);
  read("compute_min", sku.compute_min);
  read("switch", sku.switches);
  read("shelf", sku.shelves);
  read("flow_min_lpm", sku.flow_min_lpm);
  read("inrush_limit_a", sku.inrush_limit_a);
  read("inrush_per_tray_a", sku.inrush_per_tray_a);
  read("rack_limit_kw", sku.rack_limit_kw);
  return sku;
}

}  // namespace busbar::sim
