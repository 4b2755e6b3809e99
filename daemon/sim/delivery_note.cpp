#include "daemon/sim/delivery_note.hpp"

#include <absl/status/statusor.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <utility>
#include <vector>

#include "daemon/sim/certificate.hpp"
#include "daemon/sim/embedded_data.hpp"
#include "daemon/sim/json.hpp"
#include "daemon/sim/physics/noise.hpp"

namespace busbar::sim {

namespace {

namespace fs = std::filesystem;
constexpr std::size_t noise_bytes = 64 * 1024;
constexpr double limit_share = 0.92;  // of the performance model
// Far from anything that a sound plant shows: what is beyond is no matter for a loop any more.
constexpr int supply_max_c = 50;
constexpr int pressure_max_kpa = 800;

absl::Status write_file(const fs::path& path, const std::string& text, bool secret = false) {
  std::error_code failed;
  fs::create_directories(path.parent_path(), failed);
  const fs::path next = path.string() + ".new";
  std::ofstream out(next, std::ios::binary | std::ios::trunc);
  out << text;
  out.close();
  if (secret) {
    fs::permissions(next, fs::perms::owner_read | fs::perms::owner_write, failed);
  }
  fs::rename(next, path, failed);
  return out && !failed ? absl::OkStatus() : absl::UnavailableError("cannot write " + path.string());
}

std::string milliseconds(instant length) {
  return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(length).count()) + "ms";
}

const char* kind_word(device_kind kind) {
  switch (kind) {
    case device_kind::compute_tray:
      return "compute_tray";
    case device_kind::switch_tray:
      return "switch_tray";
    case device_kind::power_shelf:
      return "power_shelf";
    case device_kind::cdu:
      return "cdu";
    case device_kind::rack_controller:
      return "rack_controller";
    case device_kind::rack_pdu:
      return "rack_pdu";
  }
  return "cdu";
}

std::string list_of(const std::vector<std::string>& words) {
  std::string text = "[";
  for (const std::string& word : words) {
    text += (text.size() == 1 ? "" : ", ") + word;
  }
  return text + "]";
}

// Outlet n feeds shelf n: the first PDU its A feed, the second its B feed.
std::string pdu_rows(const site& described, int rack) {
  std::ostringstream out;
  for (const device_identity& each : described.devices()) {
    if (each.rack != rack || each.kind != device_kind::rack_pdu) {
      continue;
    }
    out << "  - {name: " << each.member.substr(each.member.find('/') + 1)
        << ", protocol: snmp, dialect: " << name_of(family_of_pdu(each.ordinal)) << ", address: \""
        << each.address << ":1161\", login: {user: pdu, password_file: pdu.pw},\n     outlets: [";
    for (int shelf = 1; shelf <= described.sku().shelves; ++shelf) {
      out << (shelf == 1 ? "" : ", ") << "{id: \"" << shelf << "\", feeds: p" << (shelf < 10 ? "0" : "")
          << shelf << "}";
    }
    out << "]}\n";
  }
  const std::string rows = out.str();
  return rows.empty() ? rows : "pdus:\n" + rows;
}

std::string manifest_text(const site& described, int rack) {
  const sku_data& sku = described.sku();
  const std::string& network = described.options().network;
  std::ostringstream out;
  std::ostringstream name;
  name << "r" << (rack < 10 ? "0" : "") << rack;
  out << "apiVersion: busbar.v1\nkind: Manifest\nrack: " << name.str() << "\nsite: lab\nsku: " << sku.name
      << "\nbaseline: vr-2026-11\ngates: [node, rack]\n"
      << "discovery: {lease_files: [leases], ranges: [\"" << network << "." << rack << ".0/24:8443\"]}\n"
      << "agent_endpoint: " << network << "." << rack << ".250:7443\n"
      << "cooling: {cdu: cdu01, address: \"" << network
      << ".200.1:8443\", login: {user: reader, password_file: cdu01.pw}, connector: " << name.str()
      << ", detectors: [" << name.str() << "_rope, " << name.str() << "_pan],\n"
      << "  flow_min_lpm: " << sku.flow_min_lpm << ", dp_kpa: [20, 120], supply_max_c: " << supply_max_c
      << ", pressure_max_kpa: " << pressure_max_kpa;
  if (!described.options().plant.empty()) {
    out << ", plant: \"" << described.options().plant << "\"";
  }
  out << "}\n"
      << "power: {inrush_limit_a: " << sku.inrush_limit_a << ", inrush_per_tray_a: " << sku.inrush_per_tray_a
      << ", group_interval: " << milliseconds(described.timings().group_interval)
      << ", rack_limit_kw: " << sku.rack_limit_kw << "}\nfactory_logins:\n";
  for (const char* const kind : {"compute_tray", "switch_tray", "power_shelf"}) {
    out << "  " << kind << ": {user: root, password_file: factory.pw}\n";
  }
  if (described.options().rack_controllers) {
    out << "  rack_controller: {user: root, password_file: factory.pw}\nvalves:\n";
    for (const char* const valve : {"supply", "return"}) {
      out << "  - {name: " << valve
          << ", kind: isolation, member: m01, authority: busbar, fail_position: hold, stroke: "
          << milliseconds(described.timings().valve_stroke) << "}\n";
    }
    out << "  - {name: flow, kind: control, member: m01, authority: busbar, fail_position: hold, stroke: "
        << milliseconds(described.timings().valve_stroke)
        << ", least_percent: 20, rated_lpm: " << described.rated_lpm() << "}\n";
  }
  out << pdu_rows(described, rack);
  out << "members:\n";
  for (const device_identity& each : described.devices()) {
    if (each.rack == rack && each.kind != device_kind::rack_pdu) {
      out << "  - {slot: " << each.member.substr(each.member.find('/') + 1)
          << ", kind: " << kind_word(each.kind) << ", bmc_mac: \"" << each.mac
          << "\", serial: " << each.serial << ", address: " << each.address << "}\n";
    }
  }
  return out.str();
}

// The plant's own declaration: the CDU keeps its loops, Busbar sets their set-points.
std::string plant_text(const site& described) {
  std::ostringstream out;
  out << "apiVersion: busbar.v1\nkind: Plant\nplant: plant1\nsite: lab\ncdus:\n"
      << "  - name: cdu01\n    protocol: redfish\n    address: \"" << described.options().network
      << ".200.1:8443\"\n    login: {user: root, password_file: factory.pw}\n    authority: device\n    "
         "racks:\n";
  for (int rack = 1; rack <= described.options().racks; ++rack) {
    out << "      - {rack: r" << (rack < 10 ? "0" : "") << rack << ", rated_lpm: " << described.rated_lpm()
        << "}\n";
  }
  out << "    supply_c: 32\n    supply_limits_c: [20, 45]\n    dp_kpa: 60\n    dp_limits_kpa: [20, 80]\n    "
         "pumps: "
      << cdu_pumps << "\n";
  return out.str();
}

std::string sku_text(const sku_data& sku) {
  std::ostringstream out;
  out << "apiVersion: busbar.v1\nkind: Sku\nname: " << sku.name << "\ncompute_tray:\n"
      << "  gpus: {count: " << sku.gpus << ", model: " << sku.gpu_model
      << ", memory_gib: " << sku.gpu_memory_gib << ", nvlinks: " << sku.nvlinks << "}\n"
      << "  cpus: {count: " << sku.cpus << ", model: " << sku.cpu_model << ", cores: " << sku.cores << "}\n"
      << "  nics: {count: " << sku.nics << ", model: " << sku.nic_model << ", gbps: " << sku.nic_gbps
      << ", pcie: {generation: " << sku.pcie_generation << ", width: " << sku.pcie_width << "}}\n"
      << "  dpus: {count: " << sku.dpus << ", model: " << sku.dpu_model << "}\n"
      << "  drives: {count: " << sku.drives << ", min_gib: " << sku.drive_min_gib << "}\n"
      << "  dimms: {count: " << sku.dimms << ", min_gib: " << sku.dimm_gib << "}\n"
      << "  leak_detectors: " << list_of(sku.compute_detectors) << "\n"
      << "switch_tray: {asics: " << sku.asics << ", ports_per_asic: " << sku.ports_per_asic
      << ", leak_detectors: " << list_of(sku.switch_detectors) << "}\n"
      << "power_shelf: {psus: " << sku.psus << ", psu_watts: " << sku.psu_watts << "}\n"
      << "rack: {compute: " << sku.compute << ", compute_min: " << sku.compute_min
      << ", switch: " << sku.switches << ", shelf: " << sku.shelves << ", gpus: " << sku.gpus * sku.compute
      << "}\n";
  return out.str();
}

// One image: its line and seeded noise.
std::string image_of(const std::string& component, const std::string& version, std::uint64_t seed) {
  std::string image = component + " " + version + "\n";
  physics::stream noise(physics::hash_of(component + version, seed));
  for (std::size_t each = 0; each < noise_bytes; each += sizeof(std::uint64_t)) {
    const std::uint64_t word = noise.next();
    image.append(reinterpret_cast<const char*>(&word), sizeof(word));
  }
  return image;
}

std::string file_name(const char* kind, const std::string& component) {
  return "fw/" + std::string(kind) + "-" + component + ".fwpkg";
}

absl::StatusOr<std::string> firmware_rows(const fs::path& folder, const char* kind, std::uint64_t seed) {
  const json data = json::parse(embedded_data(kind));
  std::ostringstream out;
  int order = 0;
  for (const json& row : data.at("firmware")) {
    const std::string component = row.at("component");
    const std::string version = row.at("version");
    const std::string image = image_of(component, version, seed);
    const std::string name = file_name(kind, component);
    if (const absl::Status written = write_file(folder / name, image); !written.ok()) {
      return written;
    }
    out << "    - {order: " << ++order << ", component: " << component << ", version: \"" << version
        << "\", image: " << name << ", sha256: \"" << sha256_hex(image)
        << "\", activation: " << row.at("activation").get<std::string>() << "}\n";
  }
  return out.str();
}

// Deadlines of a real site, scaled for the profile, yet long enough for two racks on a small busy host.
std::string deadlines_text(double scale) {
  const std::pair<const char*, int> real_s[] = {
      {"discovered", 600}, {"identified", 120},     {"credentialed", 120}, {"graceful_off", 120},
      {"host_off", 60},    {"staged", 1200},        {"inspected", 600},    {"firmware_row", 2700},
      {"firmware", 10800}, {"configured", 1800},    {"shelf_on", 600},     {"standby", 900},
      {"ingested", 1800},  {"cooled", 600},         {"powered", 1800},     {"nvlink_ready", 1800},
      {"validated", 1800}, {"rack_validated", 1800}};
  std::string text = "deadlines: {";
  for (const auto& [name, seconds] : real_s) {
    const int shortest = 30;
    text += std::string(text.back() == '{' ? "" : ", ") + name + ": " +
            std::to_string(std::max(shortest, static_cast<int>(std::lround(seconds * scale)))) + "s";
  }
  return text + "}\n";
}

absl::StatusOr<std::string> baseline_text(const site& described, const fs::path& folder) {
  std::ostringstream out;
  out << "apiVersion: busbar.v1\nkind: Baseline\nname: vr-2026-11\n"
      << deadlines_text(described.timings().deadline_scale)
      << "staging: {boot: UefiHttp, uri: \"https://images.site/staging-1.efi\"}\nfirmware:\n";
  for (const char* const kind : {"compute_tray", "switch_tray"}) {
    const auto rows = firmware_rows(folder, kind, described.options().seed);
    if (!rows.ok()) {
      return rows.status();
    }
    out << "  " << kind << ":\n" << *rows;
  }
  out << "  power_shelf: []\n"
      << "bios: {compute_tray: {SriovEnable: true, PowerProfile: MaxPerformance, SecureBoot: Enabled}}\n"
      << "device:\n"
      << "  compute_tray: {leak_reaction: {critical: ForceOff}, gpu_power_limit_w: 1800, session_timeout_s: "
         "1800}\n"
      << "  switch_tray: {leak_reaction: {critical: ForceOff}, session_timeout_s: 1800}\n"
      << "telemetry:\n"
      << "  compute_tray: {fast: [HGX_PlatformEnvironmentMetrics_0, HGX_ProcessorMetrics_0], slow: \"*\"}\n"
      << "  switch_tray: {fast: [NVSwitchEnvironmentMetrics_0], slow: \"*\"}\n"
      << "labels: {site.busbar/row: A}\n"
      << "suites: {node: suites/node-quick.yaml, rack: suites/rack-quick.yaml}\n";
  return out.str();
}

std::string limit(const std::string& sku, double model, double reference) {
  std::ostringstream out;
  out << "{" << sku << ": " << std::floor(model * limit_share) << ", reference: " << reference << "}";
  return out.str();
}

std::string node_suite(const site& described) {
  const profile& timings = described.timings();
  const std::string& sku = described.sku().name;
  std::ostringstream out;
  const auto test = [&out](const char* name, const char* probe, instant duration,
                           const std::string& metrics) {
    out << "  - {name: " << name << ", probe: " << probe << ", duration: " << milliseconds(duration)
        << ", metrics: [" << metrics << "]}\n";
  };
  out << "apiVersion: busbar.v1\nkind: Suite\nname: node-quick\nlevel: node\nmembers: all\ntests:\n";
  test("diag", "diagnostics", timings.test_short,
       "{name: ecc_uncorrected, unit: count, max: 0}, {name: pcie_width, unit: lanes, equal: 16}");
  test("hbm", "memory_copy", timings.test_short,
       "{name: hbm_copy, unit: GB/s, min: " + limit(sku, 16304, 0.1) + "}");
  test("h2d", "host_device", timings.test_short,
       "{name: h2d, unit: GB/s, min: " + limit(sku, 196, 0.1) + "}");
  test("burn", "matrix_burn", timings.test_burn,
       "{name: gpu_temperature, unit: Cel, max: 87}, {name: result_hash, equal: golden}");
  test("train", "training", timings.test_train,
       "{name: loss_at_200, max: 2.1}, {name: loss_curve, equal: golden}");
  return out.str();
}

std::string rack_suite(const site& described) {
  const profile& timings = described.timings();
  const sku_data& sku = described.sku();
  std::ostringstream out;
  out << "apiVersion: busbar.v1\nkind: Suite\nname: rack-quick\nlevel: rack\nmembers: all\ntests:\n";
  for (const char* const operation : {"all_reduce", "all_gather", "reduce_scatter"}) {
    out << "  - {name: " << operation
        << ", probe: collective, duration: " << milliseconds(timings.test_collective)
        << ", metrics: [{name: busbw, unit: GB/s, min: " << limit(sku.name, 1740, 0.001)
        << "}, {name: wrong, unit: count, max: 0}], parameters: {operation: " << operation << "}}\n";
  }
  return out.str();
}

}  // namespace

absl::Status write_leases(const site& described, const std::string& folder, instant now) {
  std::ostringstream out;
  for (const announced_bmc& each : described.announced(now)) {
    std::string host = each.member;
    for (char& letter : host) {
      letter = letter == '/' ? '-' : letter;
    }
    out << "4102444800 " << each.mac << " " << each.address << " " << host << "-bmc 01:" << each.mac << "\n";
  }
  return write_file(fs::path(folder) / "leases", out.str());
}

absl::Status write_delivery_note(const site& described, const std::string& folder, instant now) {
  const fs::path base(folder);
  const auto baseline = baseline_text(described, base);
  if (!baseline.ok()) {
    return baseline.status();
  }
  std::vector<std::pair<std::string, std::string>> files = {
      {"baselines/vr-2026-11.yaml", *baseline},
      {"skus/" + described.sku().name + ".yaml", sku_text(described.sku())},
      {"suites/node-quick.yaml", node_suite(described)},
      {"suites/rack-quick.yaml", rack_suite(described)}};
  for (int rack = 1; rack <= described.options().racks; ++rack) {
    files.emplace_back("manifests/r" + std::string(rack < 10 ? "0" : "") + std::to_string(rack) + ".yaml",
                       manifest_text(described, rack));
  }
  // Without a daemon of role plant nobody would take it.
  if (!described.options().plant.empty()) files.emplace_back("plants/plant1.yaml", plant_text(described));
  for (const auto& [name, text] : files) {
    if (const absl::Status written = write_file(base / name, text); !written.ok()) {
      return written;
    }
  }
  for (const auto& [name, secret] :
       {std::pair{"factory.pw", described.factory_password()},
        std::pair{"cdu01.pw", described.reader_password()}, std::pair{"pdu.pw", described.pdu_secret()}}) {
    if (const absl::Status written = write_file(base / name, secret + "\n", true); !written.ok()) {
      return written;
    }
  }
  return write_leases(described, folder, now);
}

}  // namespace busbar::sim
