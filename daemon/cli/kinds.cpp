#include "daemon/cli/kinds.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "actors/manifest/names.hpp"
#include "busbar/v1/busbar.pb.h"
#include "daemon/cli/json_text.hpp"

namespace busbar::cli {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

constexpr auto table = std::to_array<kind_info>({
    {kind::racks, "racks", "rack", "", "Rack", "GetRack", "ListRacks", "RackList"},
    {kind::nodes, "nodes", "node", "trays", "Node", "GetNode", "ListNodes", "NodeList"},
    {kind::shelves, "shelves", "shelf", "", "Shelf", "GetShelf", "ListShelves", "ShelfList"},
    {kind::controllers, "controllers", "controller", "", "Shelf", "GetController", "ListControllers",
     "ControllerList", "ListShelvesResponse"},
    {kind::valves, "valves", "valve", "", "Valve", "GetValve", "ListValves", "ValveList"},
    {kind::pdus, "pdus", "pdu", "", "Pdu", "GetPdu", "ListPdus", "PduList"},
    {kind::cdus, "cdus", "cdu", "", "Cdu", "GetCdu", "ListCdus", "CduList"},
    {kind::detectors, "detectors", "detector", "", "LeakDetector", "", "ListDetectors", "DetectorList"},
    {kind::endpoints, "endpoints", "endpoint", "", "Endpoint", "GetEndpoint", "ListEndpoints",
     "EndpointList"},
    {kind::operations, "operations", "operation", "ops", "Operation", "GetOperation", "ListOperations",
     "OperationList"},
    {kind::events, "events", "event", "", "Event", "", "ListEvents", "EventList"},
    {kind::daemons, "daemons", "daemon", "", "DaemonStatus", "", "GetStatus", "DaemonStatusList"},
});

const FieldDescriptor* field_at(const Message& item, std::string_view name) {
  const auto* type = item.GetDescriptor();
  if (const FieldDescriptor* field = type->FindFieldByName(std::string(name))) return field;
  return type->FindFieldByCamelcaseName(std::string(name));
}

}  // namespace

std::span<const kind_info> kinds() {
  return table;
}

const kind_info& info_of(kind id) {
  return table[static_cast<std::size_t>(id)];
}

const kind_info* kind_named(std::string_view word) {
  const auto found = std::find_if(table.begin(), table.end(), [word](const kind_info& info) {
    return info.plural == word || info.singular == word || (!word.empty() && info.alias == word);
  });
  return found == table.end() ? nullptr : &*found;
}

std::string item_name(const Message& item) {
  if (const auto* event = dynamic_cast<const v1::Event*>(&item)) {
    return fmt::format("{}:{}", event->position().revision(), event->index());
  }
  if (const auto* daemon = dynamic_cast<const v1::DaemonStatus*>(&item)) return daemon->instance();
  const FieldDescriptor* field = item.GetDescriptor()->FindFieldByName("name");
  return field == nullptr ? "" : manifest::short_name(item.GetReflection()->GetString(item, field));
}

std::string field_text(const Message& item, std::string_view path, bool& found) {
  const std::size_t dot = path.find('.');
  const FieldDescriptor* field = field_at(item, path.substr(0, dot));
  found = field != nullptr;
  if (field == nullptr) {
    const FieldDescriptor* status = item.GetDescriptor()->FindFieldByName("status");
    if (status == nullptr || path.starts_with("status.")) return {};
    return field_text(item.GetReflection()->GetMessage(item, status), path, found);
  }
  if (dot == std::string_view::npos) return scalar_text(item, *field);
  found = field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE && !field->is_repeated();
  if (!found) return {};
  return field_text(item.GetReflection()->GetMessage(item, field), path.substr(dot + 1), found);
}

}  // namespace busbar::cli
