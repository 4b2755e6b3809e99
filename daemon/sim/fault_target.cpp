#include "daemon/sim/fault_target.hpp"

#include <algorithm>

namespace busbar::sim {

namespace {

std::vector<std::string> numbered(const std::string& word, int count) {
  std::vector<std::string> names;
  for (int number = 0; number < count; ++number) {
    names.push_back(word + std::to_string(number));
  }
  return names;
}

// The forms of the kind's targets, by the kinds of members it has.
std::string forms_of(const fault_text& kind) {
  const auto form = [&kind](const std::string& member) {
    switch (kind.part) {
      case fault_part::none:
        return member;
      case fault_part::detector:
        return member + "[/DETECTOR]";
      case fault_part::psu:
        return member + "[/psuN]";
      case fault_part::gpu:
        return member + "[/gpuN]";
      case fault_part::link:
        return member + "[/gpuN/nvlinkM]";
      case fault_part::card:
        return member + "[/nicN] or " + member + "[/gpuN]";
      case fault_part::component:
        return member + "[/COMPONENT]";
      case fault_part::sensor:
        return member + "[/SENSOR]";
      case fault_part::valve:
        return member + "[/supply], " + member + "[/return] or " + member + "[/flow]";
      case fault_part::outlet:
        return member + "[/outletN]";
    }
    return member;
  };
  std::string forms;
  for (const char letter : kind.targets) {
    const std::string member = letter == 'u'   ? "cduNN"
                               : letter == 'o' ? "rNN/uNN"
                                               : std::string("rNN/") + letter + "NN";
    forms += (forms.empty() ? "" : ", ") + form(member);
  }
  return forms;
}

std::string shown(const std::vector<std::string>& names) {
  constexpr std::size_t most = 12;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), most); ++i) {
    text += (text.empty() ? "" : ", ") + names[i];
  }
  return names.size() > most ? text + ", ... " + names.back() : text;
}

}  // namespace

std::vector<std::string> parts_that_fit(const fault_text& kind, const sku_data& sku,
                                        const member_parts& has) {
  switch (kind.part) {
    case fault_part::none:
      return {};
    case fault_part::detector:
      return has.detectors;
    case fault_part::psu:
      return numbered("psu", sku.psus);
    case fault_part::gpu:
      return numbered("gpu", sku.gpus);
    case fault_part::link: {
      std::vector<std::string> links;
      for (const std::string& gpu : numbered("gpu", sku.gpus)) {
        for (const std::string& link : numbered(gpu + "/nvlink", sku.nvlinks)) {
          links.push_back(link);
        }
      }
      return links;
    }
    case fault_part::card: {
      std::vector<std::string> cards = numbered("nic", sku.nics);
      for (std::string& gpu : numbered("gpu", sku.gpus)) {
        cards.push_back(std::move(gpu));
      }
      return cards;
    }
    case fault_part::component:
      return has.components;
    case fault_part::sensor:
      return has.sensors;
    case fault_part::valve:
      return {"supply", "return", "flow"};
    case fault_part::outlet:
      return has.outlets;
  }
  return {};
}

absl::Status check_fault_member(const fault_text& kind, const fault_place& place) {
  if (kind.targets.find(kind_letter(place.member)) != std::string_view::npos) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(std::string(kind.name) + " does not fit " + place.member +
                                    "; forms that fit: " + forms_of(kind));
}

absl::Status check_fault_target(const fault_text& kind, const fault_place& place, const sku_data& sku,
                                const member_parts& has) {
  if (place.part.empty()) {
    return absl::OkStatus();
  }
  const std::vector<std::string> fitting = parts_that_fit(kind, sku, has);
  if (std::find(fitting.begin(), fitting.end(), place.part) != fitting.end()) {
    return absl::OkStatus();
  }
  const std::string refused = std::string(kind.name) + " does not fit " + place.member + "/" + place.part;
  if (fitting.empty()) {
    return absl::InvalidArgumentError(refused + "; it concerns a member as a whole: " + place.member);
  }
  return absl::InvalidArgumentError(refused + "; forms that fit: " + forms_of(kind) + "; parts of " +
                                    place.member + ": " + shown(fitting));
}

}  // namespace busbar::sim
