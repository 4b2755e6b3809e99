#include "daemon/busbard/rpc/point_names.hpp"

#include <algorithm>
#include <array>

#include "actors/manifest/names.hpp"

namespace busbar::rpc {
namespace {

constexpr std::string_view racks = "racks/";
constexpr std::string_view cdus = "cdus/";
// Members: their letters stand for their collection. Of valves and PDUs the collection is a part of the short name too.
constexpr std::array<std::string_view, 3> collections = {"nodes", "shelves", "controllers"};

bool is_cdu(std::string_view name) { return name.starts_with("cdu"); }

bool is_member(std::string_view slot) {
  return slot.size() == 3 && std::string_view("cspm").find(slot[0]) != std::string_view::npos;
}

}  // namespace

std::string public_point(std::string_view name) {
  if (name.starts_with(racks) || name.starts_with(cdus)) return std::string(name);
  if (is_cdu(name)) return std::string(cdus) + std::string(name);
  const std::size_t first = name.find('/');
  const std::size_t second = first == std::string_view::npos ? first : name.find('/', first + 1);
  // Two parts are a reading of the rack itself: r01/flow.
  if (second == std::string_view::npos) return std::string(racks) + std::string(name);
  const bool of_member = is_member(name.substr(first + 1, second - first - 1));
  const auto owner = of_member ? manifest::long_name(name.substr(0, second)) : std::nullopt;
  return (owner ? *owner : std::string(racks) + std::string(name.substr(0, second))) + std::string(name.substr(second));
}

std::string short_point(std::string_view name) {
  if (name == "cdus" || name == cdus) return "cdu";
  if (name.starts_with(cdus)) return std::string(name.substr(cdus.size()));
  if (!name.starts_with(racks)) return std::string(name);
  name.remove_prefix(racks.size());
  const std::size_t first = name.find('/');
  if (first == std::string_view::npos) return std::string(name);
  const std::string_view rest = name.substr(first + 1);
  const std::string_view word = rest.substr(0, rest.find('/'));
  if (std::find(collections.begin(), collections.end(), word) == collections.end()) return std::string(name);
  return std::string(name.substr(0, first + 1)) + std::string(rest.substr(std::min(rest.size(), word.size() + 1)));
}

}  // namespace busbar::rpc
