#include "actors/node/inspection_logic.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "actors/core/mutant.hpp"

namespace busbar::node {
namespace {

using core::fault;

struct wanted_parts {
  std::string_view kind;
  journal::PartSpec spec;
};

std::vector<wanted_parts> wanted_of(const journal::Sku& sku, journal::MemberKind kind) {
  std::vector<wanted_parts> wanted;
  if (kind == journal::COMPUTE_TRAY) {
    const journal::ComputeTraySku& tray = sku.compute_tray();
    wanted = {{"gpu", tray.gpus()}, {"cpu", tray.cpus()},     {"nic", tray.nics()},
              {"dpu", tray.dpus()}, {"drive", tray.drives()}, {"dimm", tray.dimms()}};
  } else if (kind == journal::SWITCH_TRAY) {
    journal::PartSpec asics;
    asics.set_count(sku.switch_tray().asics());
    wanted = {{"asic", asics}};
  } else {
    journal::PartSpec psus;
    psus.set_count(sku.power_shelf().psus());
    psus.set_watts(sku.power_shelf().psu_watts());
    wanted = {{"psu", psus}};
  }
  std::erase_if(wanted, [](const wanted_parts& row) { return row.spec.count() == 0; });
  return wanted;
}

std::string or_unknown(std::uint32_t value) {
  return value == 0 ? "unknown" : std::to_string(value);
}

std::optional<difference> compare_number(const journal::Part& part, std::string_view what,
                                         std::uint32_t expected, std::uint32_t seen) {
  if (expected == 0 || seen == expected) return std::nullopt;
  return difference{fault::INVENTORY_WRONG,
                    fmt::format("{} {} has another {} than the SKU", part.kind(), part.id(), what),
                    std::to_string(expected), or_unknown(seen)};
}

std::optional<difference> compare_part(const journal::PartSpec& spec, const journal::Part& part) {
  if (!spec.model().empty() && part.model() != spec.model()) {
    return difference{fault::INVENTORY_WRONG,
                      fmt::format("{} {} is another model than the SKU", part.kind(), part.id()),
                      spec.model(), part.model().empty() ? "unknown" : part.model()};
  }
  if (part.health() == journal::HEALTH_BAD) {
    return difference{fault::INVENTORY_WRONG, fmt::format("{} {} reports bad health", part.kind(), part.id()),
                      "good", "bad"};
  }
  if (auto d = compare_number(part, "memory (GiB)", spec.memory_gib(), part.memory_gib())) return d;
  if (auto d = compare_number(part, "rating (W)", spec.watts(), part.watts())) return d;
  if (auto d = compare_number(part, "core count", spec.cores(), part.cores())) return d;
  if (auto d = compare_number(part, "speed (Gb/s)", spec.gbps(), part.gbps())) return d;
  if (spec.min_gib() != 0 && part.memory_gib() < spec.min_gib()) {
    return difference{fault::INVENTORY_WRONG,
                      fmt::format("{} {} is smaller than the SKU", part.kind(), part.id()),
                      fmt::format(">= {} GiB", spec.min_gib()), or_unknown(part.memory_gib())};
  }
  const bool narrow = spec.pcie_width() != 0 && part.pcie_width() != spec.pcie_width();
  const bool slow = spec.pcie_generation() != 0 && part.pcie_generation() != spec.pcie_generation();
  if (narrow || slow) {
    return difference{
        fault::INVENTORY_PCIE_DEGRADED,
        fmt::format("the PCIe link of {} {} is not what the SKU names", part.kind(), part.id()),
        fmt::format("gen {} x{}", spec.pcie_generation(), spec.pcie_width()),
        fmt::format("gen {} x{}", or_unknown(part.pcie_generation()), or_unknown(part.pcie_width()))};
  }
  return std::nullopt;
}

}  // namespace

std::optional<difference> compare_inventory(const journal::Sku& sku, journal::MemberKind kind,
                                            const devices::inventory_facts& seen) {
  if (!seen.complete && !BUSBAR_MUTANT(incomplete_inventory_passes)) {
    return difference{fault::INVENTORY_INCOMPLETE, "the BMC announced parts that it did not show",
                      "a complete inventory", seen.incomplete_why};
  }
  for (const wanted_parts& row : wanted_of(sku, kind)) {
    const auto count = static_cast<std::uint32_t>(
        std::count_if(seen.parts.begin(), seen.parts.end(),
                      [&row](const journal::Part& part) { return part.kind() == row.kind; }));
    if (count < row.spec.count() && !BUSBAR_MUTANT(missing_part_passes)) {
      return difference{fault::INVENTORY_MISSING, fmt::format("{} parts are missing", row.kind),
                        fmt::format("{} {}", row.spec.count(), row.kind), std::to_string(count)};
    }
    if (count > row.spec.count()) {
      return difference{fault::INVENTORY_WRONG, fmt::format("more {} parts than the SKU names", row.kind),
                        std::to_string(row.spec.count()), std::to_string(count)};
    }
    for (const journal::Part& part : seen.parts) {
      if (part.kind() != row.kind) continue;
      if (auto found = compare_part(row.spec, part)) return found;
    }
  }
  return std::nullopt;
}

std::optional<difference> compare_valves(const journal::Manifest& manifest, const std::string& slot,
                                         const devices::inventory_facts& seen) {
  if (!seen.complete && !BUSBAR_MUTANT(incomplete_inventory_passes)) {
    return difference{fault::INVENTORY_INCOMPLETE, "the controller announced valves that it did not show",
                      "a complete list", seen.incomplete_why};
  }
  for (const journal::ValveSpec& valve : manifest.valves()) {
    if (valve.member() != slot) continue;
    const std::string& connector = valve.connector().empty() ? valve.name() : valve.connector();
    const bool shown = std::any_of(
        seen.parts.begin(), seen.parts.end(),
        [&connector](const journal::Part& part) { return part.kind() == "valve" && part.id() == connector; });
    if (shown) continue;
    return difference{fault::INVENTORY_MISSING,
                      fmt::format("valve {} is not behind this controller", valve.name()),
                      "a connector " + connector + " that offers ValveControl", "none of that name"};
  }
  return std::nullopt;
}

std::string inventory_digest(const std::vector<journal::Part>& parts) {
  std::vector<std::string> lines;
  for (const journal::Part& part : parts)
    lines.push_back(fmt::format("{}/{}/{}/{}", part.kind(), part.id(), part.model(), part.serial()));
  std::sort(lines.begin(), lines.end());
  std::uint64_t hash = 1469598103934665603ULL;  // FNV-1a: a fingerprint to notice change, no security
  for (const std::string& line : lines) {
    for (const char c : line + "\n") hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  }
  return fmt::format("{:016x}", hash);
}

}  // namespace busbar::node
