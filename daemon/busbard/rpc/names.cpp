#include "daemon/busbard/rpc/names.hpp"

#include <fmt/format.h>

#include <vector>

namespace busbar::rpc {
namespace {

constexpr std::string_view racks = "racks/";
constexpr std::string_view operations = "operations/";

std::vector<std::string_view> parts_of(std::string_view name) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t slash = name.find('/');
    parts.push_back(name.substr(0, slash));
    if (slash == std::string_view::npos) return parts;
    name.remove_prefix(slash + 1);
  }
}

bool is_shelf(std::string_view slot) { return slot.starts_with('p'); }

}  // namespace

std::string short_name(std::string_view name) {
  if (!name.starts_with(racks)) return std::string(name);
  const auto parts = parts_of(name.substr(racks.size()));
  if (parts.size() == 1) return std::string(parts[0]);
  if (parts.size() != 3) return std::string(name);
  if (parts[1] == "nodes" && !is_shelf(parts[2])) return fmt::format("{}/{}", parts[0], parts[2]);
  if (parts[1] == "shelves" && is_shelf(parts[2])) return fmt::format("{}/{}", parts[0], parts[2]);
  if (parts[1] == "endpoints") return fmt::format("{}/endpoints/{}", parts[0], parts[2]);
  if (parts[1] == "operations") return fmt::format("operations/{}", parts[2]);
  return std::string(name);
}

std::string short_parent(std::string_view parent) {
  if (parent.empty() || parent == "racks/-" || parent == "-") return {};
  return short_name(parent);
}

bool is_within(std::string_view object, std::string_view scope) {
  if (scope.empty() || object == scope) return true;
  return object.size() > scope.size() && object.starts_with(scope) && object[scope.size()] == '/';
}

std::string public_name(std::string_view object, std::string_view instance) {
  if (object.empty() || object.starts_with(racks)) return std::string(object);
  if (object.starts_with(operations)) return fmt::format("racks/{}/{}", instance, object);
  const auto parts = parts_of(object);
  if (parts.size() == 1) return fmt::format("racks/{}", object);
  if (parts.size() == 2) {
    return fmt::format("racks/{}/{}/{}", parts[0], is_shelf(parts[1]) ? "shelves" : "nodes", parts[1]);
  }
  return fmt::format("racks/{}", object);
}

}  // namespace busbar::rpc
