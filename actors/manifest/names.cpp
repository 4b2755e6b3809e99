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

// What stands under the site and not under a rack is known by how it is called; the reader of its files sees to that.
constexpr std::string_view cdu_word = "cdu";
constexpr std::string_view plant_word = "plant";
constexpr std::string_view cdus = "cdus/";
constexpr std::string_view plants = "plants/";

}  // namespace

bool is_cdu_name(std::string_view name) {
  return name.size() > cdu_word.size() && name.starts_with(cdu_word) && name.find('/') == std::string_view::npos;
}

bool is_plant_name(std::string_view name) {
  return name.size() > plant_word.size() && name.starts_with(plant_word) && name.find('/') == std::string_view::npos;
}

std::optional<std::string> long_name(std::string_view name) {
  if (name.starts_with("racks/") || name.starts_with(cdus) || name.starts_with(plants)) return std::string(name);
  if (is_cdu_name(name)) return std::string(cdus) + std::string(name);
  if (is_plant_name(name)) return std::string(plants) + std::string(name);
  const std::vector<std::string_view> parts = split(name);
  if (std::any_of(parts.begin(), parts.end(), [](std::string_view part) { return part.empty(); }))
    return std::nullopt;
  if (is_plant_name(parts[0]) && parts.size() == 3 && (parts[1] == "operations" || parts[1] == "ops"))
    return std::string(plants) + std::string(parts[0]) + "/operations/" + std::string(parts[2]);
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
  if (name.starts_with(cdus)) return std::string(name.substr(cdus.size()));
  if (name.starts_with(plants)) return std::string(name.substr(plants.size()));
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
  const std::string_view collection = is_plant_name(rack) ? plants : std::string_view("racks/");
  return std::string(collection) + std::string(rack) + "/" + std::string(operation_id);
}

std::string operation_id(std::string_view name) {
  const std::size_t place = name.rfind("operations/");
  return std::string(place == std::string_view::npos ? name : name.substr(place));
}

}  // namespace busbar::manifest
