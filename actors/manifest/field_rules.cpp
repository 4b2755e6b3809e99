#include "actors/manifest/field_rules.hpp"

#include <algorithm>
#include <array>

namespace busbar::manifest {
namespace {

constexpr bool required = true;
constexpr bool optional = false;

// Grouped by message; rules_of depends on it.
constexpr auto rules = std::to_array<field_rule>({
    {"Manifest", "rack", required, check_name},
    {"Manifest", "site", required, check_name},
    {"Manifest", "sku", required, check_name},
    {"Manifest", "baseline", required, check_name},
    {"Manifest", "gates", required, check_gate},
    {"Manifest", "agent_endpoint", required, check_endpoint},
    {"Manifest", "cooling", required},
    {"Manifest", "power", required},
    {"Manifest", "factory_logins", required, nullptr, check_member_kind},
    {"Manifest", "members", required},
    {"Member", "slot", required, check_name},
    {"Member", "kind", required},
    {"Member", "bmc_mac", required, check_mac, nullptr, number_rule::any, text_form::lower},
    {"Member", "serial", optional, check_serial},
    {"Member", "address", optional, check_address},
    {"FactoryLogin", "user", required},
    {"FactoryLogin", "password_file", required, check_site_path},
    {"Discovery", "lease_files", optional, check_site_path},
    {"Discovery", "ranges", optional, check_range},
    {"CoolingSpec", "cdu", required, check_name},
    {"CoolingSpec", "address", required, check_endpoint},
    {"CoolingSpec", "login", required},
    {"CoolingSpec", "flow_min_lpm", required, nullptr, nullptr, number_rule::positive},
    {"CoolingSpec", "dp_kpa", required},
    {"CoolingSpec", "connector", optional, check_name},
    {"CoolingSpec", "detectors", optional, check_name},
    {"CoolingSpec", "supply_max_c", optional, nullptr, nullptr, number_rule::positive},
    {"CoolingSpec", "pressure_max_kpa", optional, nullptr, nullptr, number_rule::positive},
    {"CoolingSpec", "plant", optional, check_plant},
    {"ValveSpec", "name", required, check_word},
    {"ValveSpec", "kind", required, check_valve_kind},
    {"ValveSpec", "member", required, check_name},
    {"ValveSpec", "connector", optional, check_name},
    {"ValveSpec", "authority", required, check_authority},
    {"ValveSpec", "fail_position", required, check_fail_position},
    {"ValveSpec", "stroke", required, nullptr, nullptr, number_rule::positive},
    {"ValveSpec", "rated_lpm", optional, nullptr, nullptr, number_rule::positive},
    {"PduSpec", "name", required, check_name},
    {"PduSpec", "protocol", required, check_pdu_protocol},
    {"PduSpec", "dialect", optional, check_pdu_dialect},
    {"PduSpec", "address", required, check_endpoint},
    {"PduSpec", "login", required},
    {"PduSpec", "outlets", optional},
    {"OutletSpec", "id", required, check_not_empty},
    {"PlantSpec", "plant", required, check_name},
    {"PlantSpec", "site", required, check_name},
    {"PlantSpec", "cdus", required},
    {"CduSpec", "name", required, check_name},
    {"CduSpec", "protocol", required, check_cdu_protocol},
    {"CduSpec", "address", required, check_endpoint},
    {"CduSpec", "map", optional, check_name},
    {"CduSpec", "racks", required},
    {"CduSpec", "authority", optional, check_authority},
    {"CduSpec", "supply_c", required, nullptr, nullptr, number_rule::positive},
    {"CduSpec", "supply_limits_c", required},
    {"CduSpec", "dp_kpa", required, nullptr, nullptr, number_rule::positive},
    {"CduSpec", "dp_limits_kpa", required},
    {"CduSpec", "supply_k_per_min", optional, nullptr, nullptr, number_rule::positive},
    {"CduSpec", "dp_kpa_per_s", optional, nullptr, nullptr, number_rule::positive},
    {"FedRack", "rack", required, check_name},
    {"FedRack", "rated_lpm", required, nullptr, nullptr, number_rule::positive},
    {"PowerSpec", "inrush_limit_a", required, nullptr, nullptr, number_rule::positive},
    {"PowerSpec", "inrush_per_tray_a", required, nullptr, nullptr, number_rule::positive},
    {"PowerSpec", "group_interval", required},
    {"PowerSpec", "rack_limit_kw", required, nullptr, nullptr, number_rule::positive},
    {"PowerSpec", "gpu_cap_min_w", optional, nullptr, nullptr, number_rule::positive},
    {"PowerSpec", "gpu_cap_max_w", optional, nullptr, nullptr, number_rule::positive},
    {"PowerSpec", "cap_priority", optional, nullptr, check_name, number_rule::any},
    {"PartSpec", "count", required},
    {"Sku", "name", required, check_name},
    {"Sku", "compute_tray", required},
    {"Sku", "switch_tray", required},
    {"Sku", "power_shelf", required},
    {"Sku", "rack", required},
    {"ComputeTraySku", "gpus", required},
    {"ComputeTraySku", "cpus", required},
    {"ComputeTraySku", "leak_detectors", required, check_name},
    {"SwitchTraySku", "asics", required, nullptr, nullptr, number_rule::positive},
    {"SwitchTraySku", "ports_per_asic", required, nullptr, nullptr, number_rule::positive},
    {"SwitchTraySku", "leak_detectors", required, check_name},
    {"PowerShelfSku", "psus", required, nullptr, nullptr, number_rule::positive},
    {"PowerShelfSku", "psu_watts", required, nullptr, nullptr, number_rule::positive},
    {"RackSku", "compute", required, nullptr, nullptr, number_rule::positive},
    {"RackSku", "compute_min", required, nullptr, nullptr, number_rule::positive},
    {"RackSku", "switch", required, nullptr, nullptr, number_rule::positive},
    {"RackSku", "shelf", required, nullptr, nullptr, number_rule::positive},
    {"RackSku", "gpus", required, nullptr, nullptr, number_rule::positive},
    {"Baseline", "name", required, check_name},
    {"Baseline", "deadlines", required, nullptr, check_deadline_name, number_rule::positive},
    {"Baseline", "staging", required},
    {"Baseline", "firmware", required, nullptr, check_member_kind},
    {"Baseline", "bios", optional, nullptr, check_member_kind},
    {"Baseline", "device", optional, nullptr, check_member_kind},
    {"Baseline", "telemetry", optional, nullptr, check_member_kind},
    {"Baseline", "suites", required, check_site_path, check_level},
    {"FirmwareRow", "order", required, nullptr, nullptr, number_rule::positive},
    {"FirmwareRow", "component", required, check_name},
    {"FirmwareRow", "version", required, check_not_empty},
    {"FirmwareRow", "image", required, check_site_path},
    {"FirmwareRow", "sha256", required, check_sha256, nullptr, number_rule::any, text_form::lower},
    {"FirmwareRow", "activation", required, check_activation},
    {"Staging", "boot", required, check_boot},
    {"Staging", "uri", required, check_url},
    {"TelemetryPlan", "fast", optional, check_name},
    {"MetricRule", "name", required, check_name},
    {"MetricRule", "min", optional, nullptr, check_name, number_rule::any},
    {"MetricRule", "max", optional, nullptr, check_name, number_rule::any},
    {"MetricRule", "equal", optional, check_not_empty, nullptr, number_rule::any, text_form::canonical},
    {"SuiteTest", "name", required, check_name},
    {"SuiteTest", "probe", required, check_name},
    {"SuiteTest", "duration", required, nullptr, nullptr, number_rule::positive},
    {"SuiteTest", "metrics", required},
    {"Suite", "name", required, check_name},
    {"Suite", "level", required, check_level},
    {"Suite", "members", required, check_suite_members},
    {"Suite", "tests", required},
});

constexpr field_rule no_rule{"", ""};

constexpr auto spread_keys = std::to_array<spread_key>({
    {"CoolingSpec", "dp_kpa", "dp_min_kpa", "dp_max_kpa", "", ""},
    {"CduSpec", "supply_limits_c", "supply_min_c", "supply_max_c", "", ""},
    {"CduSpec", "dp_limits_kpa", "dp_min_kpa", "dp_max_kpa", "", ""},
    {"PartSpec", "pcie", "pcie_generation", "pcie_width", "generation", "width"},
});

}  // namespace

std::span<const field_rule> rules_of(std::string_view message) {
  const auto same = [message](const field_rule& rule) { return rule.message == message; };
  const auto first = std::find_if(rules.begin(), rules.end(), same);
  const auto last = std::find_if_not(first, rules.end(), same);
  return {first, last};
}

const field_rule& rule_of(std::string_view message, std::string_view key) {
  for (const field_rule& rule : rules_of(message)) {
    if (rule.key == key) return rule;
  }
  return no_rule;
}

const google::protobuf::FieldDescriptor* transparent_field(const google::protobuf::Descriptor& type) {
  if (type.name() == "FirmwareRows" || type.name() == "Attributes") return type.field(0);
  return nullptr;
}

const spread_key* spread_key_named(std::string_view message, std::string_view key) {
  for (const spread_key& spread : spread_keys) {
    if (spread.message == message && spread.key == key) return &spread;
  }
  return nullptr;
}

bool is_reached_by_spread_key(std::string_view message, std::string_view field) {
  return std::any_of(spread_keys.begin(), spread_keys.end(), [message, field](const spread_key& spread) {
    return spread.message == message && (spread.first_field == field || spread.second_field == field);
  });
}

}  // namespace busbar::manifest
