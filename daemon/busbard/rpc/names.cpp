#include "daemon/busbard/rpc/names.hpp"

#include "actors/manifest/names.hpp"

namespace busbar::rpc {
namespace {

constexpr std::string_view racks = "racks/";
constexpr std::string_view operations = "operations/";

}  // namespace

std::string short_name(std::string_view name) {
  if (name.find(operations) != std::string_view::npos) return manifest::operation_id(name);
  std::string name_of_state = manifest::short_name(name);
  if (name_of_state.starts_with(racks)) name_of_state.erase(0, racks.size());
  return name_of_state;
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
  if (object.empty()) return {};
  if (object.starts_with(operations)) return manifest::operation_name(instance, object);
  return manifest::long_name(object).value_or(std::string(object));
}

}  // namespace busbar::rpc
