#include "daemon/sim/compute_tray.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "daemon/sim/redfish_reply.hpp"

namespace busbar::sim {

namespace {

constexpr double standby_kw = 0.5;
constexpr double idle_kw = 1.5;
constexpr double burning_kw = 6.5;
constexpr double gpu_idle_w = 150;
constexpr double gpu_burning_w = 1400;
constexpr double factory_gpu_limit_w = 2300;
constexpr double lowest_gpu_limit_w = 400;
constexpr double throttle_c = 88;
constexpr double shutdown_c = 103;
constexpr double throttled_share = 0.4;  // of what it would draw
constexpr int link_gbps = 800;
constexpr std::string_view gpus_path = "/redfish/v1/Systems/HGX_Baseboard_0/Processors/GPU_";

}  // namespace

compute_tray::compute_tray(device_identity identity, environment& around,
                           std::shared_ptr<const resource_tree> shared, bool starts_old,
                           const std::string& factory_password)
    : tray(std::move(identity), around, std::move(shared), starts_old, factory_password,
           around.sku().compute_detectors, "/redfish/v1/Systems/System_0",
           "/redfish/v1/Chassis/Chassis_0/ThermalSubsystem/LeakDetection/LeakDetectors"),
      bios_(tree().bios()),
      bios_pending_(bios_),
      gpu_limit_w_(static_cast<std::size_t>(around.sku().gpus), factory_gpu_limit_w),
      gpu_hot_(gpu_limit_w_.size(), false),
      gpu_draws_w_(gpu_limit_w_.size(), 0.0) {}

double compute_tray::wanted_gpu_w() const {
  return gpu_idle_w + (host_running() ? load_ : 0.0) * (gpu_burning_w - gpu_idle_w);
}

double compute_tray::gpu_power_w(int gpu) const {
  if (!host_powered()) {
    return 0;
  }
  const auto index = static_cast<std::size_t>(gpu);
  const double wanted = wanted_gpu_w() * (gpu_hot_[index] ? throttled_share : 1.0);
  return gpu_draws_w_[index] > 0 && host_running() ? gpu_draws_w_[index]
                                                   : std::min(wanted, gpu_limit_w_[index]);
}

bool compute_tray::throttled() const {
  return std::find(gpu_hot_.begin(), gpu_hot_.end(), true) != gpu_hot_.end();
}

bool compute_tray::gpu_is_at(int gpu, double celsius, instant now) {
  const auto index = static_cast<std::size_t>(gpu);
  const bool was = gpu_hot_[index];
  gpu_hot_[index] = celsius >= (was ? throttle_release_c : throttle_c);
  if (celsius >= shutdown_c && host_powered()) {
    trip(now, "GPU_" + std::to_string(gpu) + " is too hot: the host went off by itself.");
    return true;
  }
  return was != gpu_hot_[index];
}

void compute_tray::faults_changed(instant now) {
  tray::faults_changed(now);
  for (int gpu = 0; gpu < around().sku().gpus; ++gpu) {
    const fault* const wild = find_fault(fault_kind::gpu_power, "gpu" + std::to_string(gpu), "gpu0", now);
    gpu_draws_w_[static_cast<std::size_t>(gpu)] = wild == nullptr ? 0.0 : wild->severity;
  }
}

double compute_tray::power_kw() const {
  if (!has_standby_power()) {
    return 0;
  }
  if (!host_powered()) {
    return standby_kw;
  }
  double spared = 0;  // by GPU power limits and heat
  for (std::size_t gpu = 0; gpu < gpu_limit_w_.size(); ++gpu) {
    spared += wanted_gpu_w() - gpu_power_w(static_cast<int>(gpu));
  }
  return idle_kw + (host_running() ? load_ : 0.0) * (burning_kw - idle_kw) - spared / 1000.0;
}

bool compute_tray::missing(int gpu, instant now) const {
  return find_fault(fault_kind::missing_gpu, "gpu" + std::to_string(gpu), "gpu0", now) != nullptr;
}

bool compute_tray::hidden(std::string_view path, instant now) const {
  if (!faulty(fault_kind::missing_gpu, now)) {
    return false;
  }
  const std::size_t at = path.find("GPU_");
  if (at == std::string_view::npos) {
    return false;
  }
  const std::string_view digits = path.substr(at + 4, path.find_first_not_of("0123456789", at + 4) - at - 4);
  const auto gpu = as_number(digits);
  return gpu && missing(*gpu, now);
}

int compute_tray::lanes(std::string_view part, instant now) const {
  const fault* const narrow = find_fault(fault_kind::pcie_degraded, part, "nic0", now);
  return narrow != nullptr ? static_cast<int>(narrow->severity) : around().sku().pcie_width;
}

json compute_tray::sku_value(std::string_view name) const {
  const sku_data& sku = around().sku();
  const std::pair<std::string_view, json> rows[] = {
      {"cpu_model", sku.cpu_model},
      {"cores", sku.cores},
      {"threads", sku.cores * 2},
      {"gpu_model", sku.gpu_model},
      {"gpu_memory_mib", sku.gpu_memory_gib * 1024},
      {"memory_gib", sku.dimms * sku.dimm_gib},
      {"all_cores", sku.cores * sku.cpus},
      {"cpu_count", sku.cpus},
      {"dimm_mib", sku.dimm_gib * 1024},
      {"drive_count", sku.drives},
      {"drive_bytes", static_cast<std::int64_t>(sku.drive_gib) * (1LL << 30)},
      {"nic_model", sku.nic_model},
      {"nic_gbps", sku.nic_gbps},
      {"dpu_model", sku.dpu_model}};
  for (const auto& [key, each] : rows) {
    if (key == name) {
      return each;
    }
  }
  return nullptr;
}

json compute_tray::gpu_value(const value_name& name, int gpu, instant now) const {
  const std::string point = std::string(name.name) + std::to_string(gpu);
  if (name.name == "gpu_power") {
    return noisy(gpu_power_w(gpu), 1.5, point, now);
  }
  if (name.name == "gpu_temperature") {
    return faulty(fault_kind::sensor, now) ? json(nullptr)
                                           : json(noisy(around().gpu_c(*this, gpu), 0.1, point, now));
  }
  if (name.name == "gpu_limit") {
    return gpu_limit_w_[static_cast<std::size_t>(gpu)];
  }
  if (name.name == "gpu_busy") {
    return host_running() ? 100.0 * load_ : 0.0;
  }
  if (name.name == "gpu_lanes") {
    return lanes("gpu" + std::to_string(gpu), now);
  }
  return nullptr;
}

json compute_tray::link_value(std::string_view name, int gpu, int link, instant now) const {
  const int of_rack = (identity().ordinal - 1) * around().sku().gpus + gpu;
  const bool up = around().link_up(identity().rack, of_rack, link, now);
  if (name == "nvlink") {
    return up ? "LinkUp" : "LinkDown";
  }
  if (name == "nvlink_speed") {
    return up ? link_gbps : 0;
  }
  if (name == "nvlink_health") {
    return host_running() && !up && around().fabric_active(identity().rack) ? "Critical" : "OK";
  }
  return name == "nvlink_ber" ? json(up ? 1e-15 : 0.0) : json(0);
}

json compute_tray::value(const value_name& name, instant now) const {
  const int first = name.arguments.empty() ? -1 : as_number(name.arguments.front()).value_or(-1);
  if (name.name.starts_with("nvlink") && name.arguments.size() == 2) {
    return link_value(name.name, first, as_number(name.arguments[1]).value_or(0), now);
  }
  if (name.name.starts_with("gpu_") && first >= 0 && first < around().sku().gpus) {
    return gpu_value(name, first, now);
  }
  if (json part = sku_value(name.name); !part.is_null()) {
    return part;
  }
  if (name.name == "nic_lanes" || name.name == "nic_pcie") {
    return name.name == "nic_lanes" ? json(lanes("nic" + std::to_string(first), now))
                                    : json("Gen" + std::to_string(around().sku().pcie_generation));
  }
  if (name.name == "nic_link" || name.name == "nic_speed") {
    return name.name == "nic_link" ? json(host_running() ? "LinkUp" : "LinkDown")
                                   : json(host_running() ? around().sku().nic_gbps : 0);
  }
  if (name.name == "drive_links") {
    json links = json::array();
    for (int drive = 0; drive < around().sku().drives; ++drive) {
      links.push_back(
          {{"@odata.id", "/redfish/v1/Systems/System_0/Storage/1/Drives/NVMe_" + std::to_string(drive)}});
    }
    return links;
  }
  if (name.name == "clique") {
    return host_running() && around().fabric_active(identity().rack) ? json("1") : json(nullptr);
  }
  if (name.name == "bios" || name.name == "bios_pending") {
    return name.name == "bios" ? bios_ : bios_pending_;
  }
  if (name.name == "boot_enabled") {
    return boot_enabled_;
  }
  if (name.name == "boot_target") {
    return boot_target_;
  }
  return name.name == "boot_uri" ? json(boot_uri_) : tray::value(name, now);
}

device::action_reply compute_tray::patch(const std::string& path, const json& body, instant now,
                                         request_note& note) {
  if (path == "/redfish/v1/Systems/System_0/Settings" || path == "/redfish/v1/Systems/System_0") {
    return patch_boot(body, note);
  }
  if (path == "/redfish/v1/Systems/System_0/Bios/Settings") {
    return patch_bios(body, now, note);
  }
  if (path.starts_with(gpus_path) && path.ends_with("/EnvironmentMetrics")) {
    return patch_gpu_limit(path, body, note);
  }
  return tray::patch(path, body, now, note);
}

http_reply compute_tray::patch_boot(const json& body, request_note& note) {
  const auto boot = body.find("Boot");
  if (boot == body.end() || !boot->is_object()) {
    return error_reply(400, "PropertyUnknown", "Only Boot is writable here.");
  }
  const auto text = [&boot](const char* key, const std::string& otherwise) {
    const auto found = boot->find(key);
    return found != boot->end() && found->is_string() ? found->get<std::string>() : otherwise;
  };
  const std::string enabled = text("BootSourceOverrideEnabled", boot_enabled_);
  const std::string target = text("BootSourceOverrideTarget", boot_target_);
  const std::vector<std::string> targets = {"None", "Pxe", "Hdd", "UefiHttp", "BiosSetup", "Usb"};
  if ((enabled != "Once" && enabled != "Continuous" && enabled != "Disabled") ||
      std::find(targets.begin(), targets.end(), target) == targets.end()) {
    return error_reply(400, "PropertyValueNotInList", "The value of a boot override is not in the list.");
  }
  note.act = "boot_override";
  note.argument = target;
  boot_enabled_ = enabled;
  boot_target_ = target;
  boot_uri_ = text("HttpBootUri", boot_uri_);
  return empty_reply(204);
}

http_reply compute_tray::patch_bios(const json& body, instant now, request_note& note) {
  const auto attributes = body.find("Attributes");
  if (attributes == body.end() || !attributes->is_object()) {
    return error_reply(400, "PropertyMissing", "Attributes is missing.");
  }
  note.act = "bios_settings";
  if (faulty(fault_kind::config_read_only, now)) {
    return error_reply(400, "PropertyNotWritable", "The property Attributes is a read only property.");
  }
  for (const auto& [name, wanted] : attributes->items()) {
    const auto known = bios_.find(name);
    if (known == bios_.end()) {
      return error_reply(400, "PropertyUnknown",
                         "The property " + name + " is not in the list of attributes.");
    }
    if (known->type() != wanted.type() && !(known->is_number() && wanted.is_number())) {
      return error_reply(400, "PropertyValueTypeError", "The value of " + name + " is of the wrong type.");
    }
  }
  bios_pending_.update(*attributes);
  return empty_reply(204);
}

http_reply compute_tray::patch_gpu_limit(const std::string& path, const json& body, request_note& note) {
  const std::string_view rest = std::string_view(path).substr(gpus_path.size());
  const auto gpu = as_number(rest.substr(0, rest.find('/')));
  const json limit = body.value("PowerLimitWatts", json::object()).value("SetPoint", json(nullptr));
  if (!gpu || *gpu < 0 || *gpu >= around().sku().gpus) {
    return not_found(path);
  }
  if (!limit.is_number() || limit.get<double>() < lowest_gpu_limit_w ||
      limit.get<double>() > factory_gpu_limit_w) {
    return error_reply(400, "PropertyValueOutOfRange", "PowerLimitWatts.SetPoint must be from 400 to 2300.");
  }
  note.act = "gpu_power_limit";
  gpu_limit_w_[static_cast<std::size_t>(*gpu)] = limit.get<double>();
  return empty_reply(204);
}

std::string compute_tray::host_starts() {
  bios_ = bios_pending_;
  load_ = 0;
  std::string uri;
  if (boot_enabled_ != "Disabled" && boot_target_ == "UefiHttp") {
    uri = boot_uri_;
  }
  if (boot_enabled_ == "Once") {
    boot_enabled_ = "Disabled";
    boot_target_ = "None";
    boot_uri_.clear();
  }
  return uri;
}

json compute_tray::truth(instant now) const {
  json result = tray::truth(now);
  json temperatures = json::array();
  for (int gpu = 0; gpu < around().sku().gpus; ++gpu) {
    temperatures.push_back(around().gpu_c(*this, gpu));
  }
  result["bios"] = bios_;
  result["load"] = load_;
  result["gpu_c"] = temperatures;
  result["gpu_limit_w"] = gpu_limit_w_;
  result["gpu_throttled"] = gpu_hot_;
  return result;
}

json compute_tray::save() const {
  json saved = tray::save();
  saved["bios"] = bios_;
  saved["bios_pending"] = bios_pending_;
  saved["gpu_limit_w"] = gpu_limit_w_;
  return saved;
}

void compute_tray::load(const json& saved) {
  tray::load(saved);
  bios_ = saved.at("bios");
  bios_pending_ = saved.at("bios_pending");
  saved.at("gpu_limit_w").get_to(gpu_limit_w_);
}

}  // namespace busbar::sim
