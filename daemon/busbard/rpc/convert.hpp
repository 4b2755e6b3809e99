// From the state as the journal keeps it to the public v1 form: one pure function a kind. What the state does not know is absent
// in the answer (or UNKNOWN in an enumeration), never zero, empty text or good.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "busbar/journal/event.pb.h"
#include "busbar/journal/state.pb.h"
#include "busbar/v1/busbar.pb.h"
#include "busbar/v1/cooling.pb.h"
#include "busbar/v1/resources.pb.h"

namespace busbar::rpc {

// revision: of the object's last change.
v1::Node node_to_v1(const journal::Node& node, std::uint64_t revision);
v1::Shelf shelf_to_v1(const journal::Node& node, std::uint64_t revision);
// members: the rack's trays and shelves, for the counts.
v1::Rack rack_to_v1(const journal::Rack& rack, std::span<const journal::Node* const> members, std::uint64_t revision);
v1::Endpoint endpoint_to_v1(const journal::Endpoint& endpoint, std::uint64_t revision);
// instance: the rack that this daemon runs; part of the operation's name.
v1::Operation operation_to_v1(const journal::Operation& operation, std::string_view instance, std::uint64_t revision);
v1::Event event_to_v1(const journal::Event& event, std::string_view instance);
v1::Position position_to_v1(const journal::Position& position);

// Every leak detector that is needed: of this tray, or of the rack at its CDU.
std::vector<v1::LeakDetector> detectors_to_v1(const journal::Node& node, const journal::Rack* rack, std::uint64_t revision);
std::vector<v1::LeakDetector> detectors_to_v1(const journal::Rack& rack, std::uint64_t revision);

bool is_shelf(const journal::Node& node);
bool is_controller(const journal::Node& node);
bool is_node(const journal::Node& node);  // a tray
std::string etag_of(std::uint64_t revision);

}  // namespace busbar::rpc
