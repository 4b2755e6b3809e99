#include "actors/manifest/names.hpp"

#include <algorithm>
#include <vector>

namespace busbar::manifest {
namespace {

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t slash = text.find('/');
    parts.push_back(text.substr(0, slash));
    if (slash == std::string_view::npos) return parts;
    text.remove_prefix(slash + 1);
  }
}

bool is_member(std::string_view slot, std::string_view letters) {
  return slot.size() == 3 && letters.find(slot[0]) != std::string_view::npos && slot[1] >= '0' &&
         slot[1] <= '9' && slot[2] >= '0' && slot[2] <= '9';
}

// A word of letters: what a manifest calls its valves; a member's name has digits.
bool is_valve(std::string_view name) {
  return name.size() > 1 && std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || c == '_' || c == '-';
         });
}

}  // namespace

std::optional<std::string> long_name(std::string_view name) {
  if (name.starts_with("racks/")) return std::string(name);
  const std::vector<std::string_view> parts = split(name);
  if (std::any_of(parts.begin(), parts.end(), [](std::string_view part) { return part.empty(); }))
    return std::nullopt;
  const std::string rack = "racks/" + std::string(parts[0]);
  if (parts.size() == 1) return rack;
  if (parts.size() == 2 && is_member(parts[1], "cs")) return rack + "/nodes/" + std::string(parts[1]);
  if (parts.size() == 2 && is_member(parts[1], "p")) return rack + "/shelves/" + std::string(parts[1]);
  if (parts.size() == 2 && is_member(parts[1], "m")) return rack + "/controllers/" + std::string(parts[1]);
  if (parts.size() == 2 && is_member(parts[1], "u")) return rack + "/pdus/" + std::string(parts[1]);
  if (parts.size() == 2 && is_valve(parts[1])) return rack + "/valves/" + std::string(parts[1]);
  if (parts.size() != 3) return std::nullopt;
  std::string_view collection = parts[1];
  if (collection == "ops") collection = "operations";
  for (const std::string_view known :
       {"nodes", "shelves", "controllers", "valves", "pdus", "detectors", "endpoints", "operations"}) {
    if (collection == known) return rack + "/" + std::string(collection) + "/" + std::string(parts[2]);
  }
  return std::nullopt;
}

std::string short_name(std::string_view name) {
  if (!name.starts_with("racks/")) return std::string(name);
  name.remove_prefix(6);
  const std::vector<std::string_view> parts = split(name);
  for (const std::string_view shortened : {"nodes", "shelves", "controllers", "valves", "pdus"}) {
    if (parts.size() == 3 && parts[1] == shortened)
      return std::string(parts[0]) + "/" + std::string(parts[2]);
  }
  return std::string(name);
}

std::string operation_name(std::string_view rack, std::string_view operation_id) {
  return "racks/" + std::string(rack) + "/" + std::string(operation_id);
}

std::string operation_id(std::string_view name) {
  const std::size_t place = name.rfind("operations/");
  return std::string(place == std::string_view::npos ? name : name.substr(place));
}

}  // namespace busbar::manifest
