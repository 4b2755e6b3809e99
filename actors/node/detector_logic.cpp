#include "actors/node/detector_logic.hpp"

#include <algorithm>

#include "actors/core/mutant.hpp"

namespace busbar::node {

std::vector<std::string> needed_detectors(const journal::Sku& sku, journal::MemberKind kind) {
  if (kind == journal::COMPUTE_TRAY) {
    return {sku.compute_tray().leak_detectors().begin(), sku.compute_tray().leak_detectors().end()};
  }
  if (kind == journal::SWITCH_TRAY)
    return {sku.switch_tray().leak_detectors().begin(), sku.switch_tray().leak_detectors().end()};
  return {};
}

std::vector<journal::Detector> match_detectors(const std::vector<std::string>& needed,
                                               const std::vector<devices::detector_facts>& seen) {
  std::vector<journal::Detector> rows;
  for (const std::string& name : needed) {
    journal::Detector& row = rows.emplace_back();
    row.set_name(name);
    row.set_detail("the device shows no such detector");
    for (const devices::detector_facts& facts : seen) {
      if (facts.name != name) continue;
      row.set_verdict(facts.verdict);
      row.set_detail(facts.detail);
      row.set_reaction(facts.reaction.value_or(""));
    }
    if (row.verdict() == journal::Detector::UNKNOWN && BUSBAR_MUTANT(unknown_read_as_dry))
      row.set_verdict(journal::Detector::DRY);
  }
  return rows;
}

std::optional<difference> not_known_dry(const std::vector<journal::Detector>& rows) {
  for (const auto wanted : {journal::Detector::LEAK, journal::Detector::UNKNOWN}) {
    const auto found = std::find_if(
        rows.begin(), rows.end(), [wanted](const journal::Detector& row) { return row.verdict() == wanted; });
    if (found == rows.end()) continue;
    const bool leak = wanted == journal::Detector::LEAK;
    return difference{
        leak ? core::fault::POWER_LEAK_LATCHED : core::fault::POWER_DETECTOR_UNKNOWN,
        leak ? "a leak detector of this member is wet" : "a needed leak detector is not known to be dry",
        found->name() + " dry", found->name() + ": " + found->detail()};
  }
  return std::nullopt;
}

}  // namespace busbar::node
