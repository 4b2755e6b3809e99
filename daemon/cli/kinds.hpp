// What the readers can be asked for: one row a kind, from which calls, answers and output follow by
// reflection.
#pragma once

#include <google/protobuf/message.h>

#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace busbar::cli {

enum class kind { racks, nodes, shelves, controllers, valves, pdus, cdus, detectors, endpoints, operations, events, daemons };

struct kind_info {
  kind id;
  std::string_view plural;       // nodes; also the collection in names
  std::string_view singular;     // node
  std::string_view alias;        // ops; may be empty
  std::string_view message;      // Node, of busbar.v1
  std::string_view get_method;   // GetNode; empty: cannot be had by name
  std::string_view list_method;  // ListNodes
  std::string_view list_kind;    // NodeList, in JSON
  std::string_view response{};   // ListShelvesResponse; empty: as the method is called
};

std::span<const kind_info> kinds();
const kind_info& info_of(kind id);
const kind_info* kind_named(std::string_view word);  // plural, singular or alias

// The name people use for an item: r01/c07, r02/operations/12, 127:4 for an event.
std::string item_name(const google::protobuf::Message& item);

// The value at a dotted path (status.step; step alone also finds status.step), as text; nothing when the path
// leads nowhere.
std::string field_text(const google::protobuf::Message& item, std::string_view path, bool& found);

}  // namespace busbar::cli
