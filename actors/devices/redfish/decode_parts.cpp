// Parts out of their bodies. A part is counted by its serial number; where it has none, by its kind and the
// id its body gives.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "actors/devices/redfish/decode.hpp"

namespace busbar::devices::redfish {
namespace {

std::uint32_t whole(std::optional<double> value) {
  if (!value || *value <= 0 || *value >= 4e9) return 0;
  return static_cast<std::uint32_t>(std::floor(*value));
}

part_facts common(json_view body, std::string kind) {
  part_facts facts;
  facts.part.set_kind(std::move(kind));
  facts.part.set_id(body["Id"].text().value_or(body["MemberId"].text().value_or("")));
  facts.part.set_model(identity_text(body["Model"]).value_or(""));
  facts.part.set_serial(identity_text(body["SerialNumber"]).value_or(""));
  const status_words status = decode_status(body);
  facts.absent = status.absent();
  const bool identified = !facts.part.model().empty() || !facts.part.serial().empty();
  facts.part.set_health(decode_health(status, identified));
  facts.serial_key =
      facts.part.kind() + '/' +
      (facts.part.serial().empty() ? "id/" + facts.part.id() : "serial/" + facts.part.serial());
  return facts;
}

std::uint32_t generation_of(json_view pcie_type) {
  const auto word = pcie_type.text();
  if (!word || !word->starts_with("Gen")) return 0;
  std::uint32_t generation = 0;
  const auto [end, error] = std::from_chars(word->data() + 3, word->data() + word->size(), generation);
  return error == std::errc() && end == word->data() + word->size() && generation < 20 ? generation : 0;
}

void take_pcie(journal::Part& part, json_view pcie) {
  part.set_pcie_generation(generation_of(pcie["PCIeType"]));
  part.set_pcie_width(whole(pcie["LanesInUse"].number()));
}

}  // namespace

std::optional<part_facts> decode_processor(json_view body) {
  const std::string type = body["ProcessorType"].text().value_or("");
  std::string kind;
  if (type == "CPU") kind = "cpu";
  if (type == "GPU") kind = "gpu";
  if (type == "FPGA") kind = "fpga";
  if (kind.empty()) return std::nullopt;
  part_facts facts = common(body, kind);
  if (facts.part.model().empty() && kind == "cpu")
    facts.part.set_model(identity_text(body["Version"]).value_or(""));
  facts.part.set_cores(whole(body["TotalCores"].number()));
  double mib = body["MemorySummary"]["TotalMemorySizeMiB"].number().value_or(0);
  if (mib <= 0) {
    for (const json_view& memory : body["ProcessorMemory"].items()) {
      if (memory["IntegratedMemory"].boolean().value_or(true))
        mib += memory["CapacityMiB"].number().value_or(0);
    }
  }
  facts.part.set_memory_gib(whole(mib / 1024));
  take_pcie(facts.part, body["SystemInterface"]["PCIe"]);
  return facts;
}

part_facts decode_memory(json_view body) {
  part_facts facts = common(body, "dimm");
  if (facts.part.model().empty()) facts.part.set_model(identity_text(body["PartNumber"]).value_or(""));
  facts.part.set_memory_gib(whole(body["CapacityMiB"].number().value_or(0) / 1024));
  return facts;
}

part_facts decode_drive(json_view body) {
  part_facts facts = common(body, "drive");
  facts.part.set_memory_gib(whole(body["CapacityBytes"].number().value_or(0) / 1024 / 1024 / 1024));
  return facts;
}

part_facts decode_adapter(json_view body) {
  const std::string model = body["Model"].text().value_or("") + body["Name"].text().value_or("");
  part_facts facts = common(body, model.find("BlueField") != std::string::npos ? "dpu" : "nic");
  const auto controllers = body["Controllers"].items();
  if (!controllers.empty()) take_pcie(facts.part, controllers.front()["PCIeInterface"]);
  return facts;
}

part_facts decode_switch_asic(json_view body) {
  return common(body, "asic");
}

part_facts decode_supply(json_view body) {
  part_facts facts = common(body, "psu");
  facts.part.set_watts(whole(decode_supply_watts(body)));
  return facts;
}

std::optional<double> decode_supply_watts(json_view body) {
  for (const char* key : {"PowerCapacityWatts", "CapacityWatts"}) {
    const auto watts = body[key].lenient_number();
    if (watts && *watts > 0) return watts;
  }
  return std::nullopt;
}

std::optional<std::uint32_t> decode_port_gbps(json_view port) {
  for (const char* key : {"CurrentSpeedGbps", "MaxSpeedGbps"}) {
    const auto gbps = port[key].number();
    if (gbps && *gbps > 0) return whole(gbps);
  }
  return std::nullopt;
}

}  // namespace busbar::devices::redfish
