#include "daemon/busbard/rpc/views.hpp"

#include <algorithm>
#include <charconv>

namespace busbar::rpc {
namespace {

// Calls visit(name, versioned) for what is in scope.
template <class Message, class Visit>
void walk(const core::object_map<Message>& objects, const std::string& scope, const Visit& visit) {
  for (const auto& [name, held] : objects) {
    if (is_within(name, scope)) visit(name, held);
  }
}

template <class Message>
const core::versioned<Message>* look_up(const core::object_map<Message>& objects, const std::string& name) {
  const auto found = objects.find(name);
  return found == objects.end() ? nullptr : &found->second;
}

std::uint64_t operation_number(const std::string& id) {
  const std::size_t slash = id.rfind('/');
  std::uint64_t number = 0;
  const char* first = id.data() + (slash == std::string::npos ? 0 : slash + 1);
  std::from_chars(first, id.data() + id.size(), number);
  return number;
}

// Not kept: it lasts as long as the reason.
template <class Message>
view_ptr<Message> with_age(view_ptr<Message> shown, const std::string& why) {
  if (why.empty()) return shown;
  Message old = *shown->message;
  old.mutable_status()->set_health(v1::HEALTH_UNKNOWN);
  old.mutable_status()->set_waits_for(why);
  v1::Condition& row = *old.add_conditions();
  row.set_type(std::string(may_be_old_condition));
  row.set_health(v1::HEALTH_UNKNOWN);
  row.set_message(why);
  return make_view(std::move(old));
}

}  // namespace

view_ptr<v1::Node> views::node(const std::string& name, const core::versioned<journal::Node>& held) {
  return with_age(nodes_.get(name, held.object, nullptr, [&held] { return node_to_v1(*held.object, held.revision); }),
                  why_old());
}

view_ptr<v1::Shelf> views::shelf(const std::string& name, const core::versioned<journal::Node>& held) {
  return with_age(shelves_.get(name, held.object, nullptr, [&held] { return shelf_to_v1(*held.object, held.revision); }),
                  why_old());
}

view_ptr<v1::Rack> views::rack(const core::snapshot& state, const std::string& name, const core::versioned<journal::Rack>& held) {
  // A rack's counts come from its members, so it is made anew when any of them changed.
  const auto made = racks_.get(name, held.object, state.nodes, [&state, &name, &held] {
    std::vector<const journal::Node*> members;
    const std::string prefix = name + "/";
    for (auto each = state.nodes->lower_bound(prefix); each != state.nodes->end() && each->first.starts_with(prefix); ++each) {
      if (!each->second.object->retired()) members.push_back(each->second.object.get());
    }
    return rack_to_v1(*held.object, members, held.revision);
  });
  return with_age(made, why_old());
}

view_ptr<v1::Endpoint> views::endpoint(const std::string& name, const core::versioned<journal::Endpoint>& held) {
  return endpoints_.get(name, held.object, nullptr, [&held] { return endpoint_to_v1(*held.object, held.revision); });
}

view_ptr<v1::Operation> views::operation(const std::string& name, const core::versioned<journal::Operation>& held) {
  return operations_.get(name, held.object, nullptr,
                         [this, &held] { return operation_to_v1(*held.object, instance_, held.revision); });
}

view_ptr<v1::Node> views::find(const core::snapshot& state, const std::string& name, const v1::Node*) {
  const auto* held = look_up(*state.nodes, name);
  return held == nullptr || !is_node(*held->object) ? nullptr : node(name, *held);
}

view_ptr<v1::Shelf> views::find(const core::snapshot& state, const std::string& name, const v1::Shelf*) {
  const auto* held = look_up(*state.nodes, name);
  return held == nullptr || !is_shelf(*held->object) ? nullptr : shelf(name, *held);
}

view_ptr<v1::Shelf> views::find(const core::snapshot& state, const std::string& name, const controller*) {
  const auto* held = look_up(*state.nodes, name);
  return held == nullptr || !is_controller(*held->object) ? nullptr : shelf(name, *held);
}

view_ptr<v1::Rack> views::find(const core::snapshot& state, const std::string& name, const v1::Rack*) {
  const auto* held = look_up(*state.racks, name);
  return held == nullptr ? nullptr : rack(state, name, *held);
}

view_ptr<v1::Endpoint> views::find(const core::snapshot& state, const std::string& name, const v1::Endpoint*) {
  const auto* held = look_up(*state.endpoints, name);
  return held == nullptr ? nullptr : endpoint(name, *held);
}

view_ptr<v1::Operation> views::find(const core::snapshot& state, const std::string& name, const v1::Operation*) {
  const auto* held = look_up(*state.operations, name);
  return held == nullptr ? nullptr : operation(name, *held);
}

std::vector<view_ptr<v1::Node>> views::all(const core::snapshot& state, const std::string& scope, const v1::Node*) {
  std::vector<view_ptr<v1::Node>> found;
  walk(*state.nodes, scope, [this, &found](const std::string& name, const core::versioned<journal::Node>& held) {
    if (is_node(*held.object)) found.push_back(node(name, held));
  });
  nodes_.trim(state.nodes->size());
  return found;
}

std::vector<view_ptr<v1::Shelf>> views::all(const core::snapshot& state, const std::string& scope, const v1::Shelf*) {
  std::vector<view_ptr<v1::Shelf>> found;
  walk(*state.nodes, scope, [this, &found](const std::string& name, const core::versioned<journal::Node>& held) {
    if (is_shelf(*held.object)) found.push_back(shelf(name, held));
  });
  shelves_.trim(state.nodes->size());
  return found;
}

std::vector<view_ptr<v1::Shelf>> views::all(const core::snapshot& state, const std::string& scope, const controller*) {
  std::vector<view_ptr<v1::Shelf>> found;
  walk(*state.nodes, scope, [this, &found](const std::string& name, const core::versioned<journal::Node>& held) {
    if (is_controller(*held.object)) found.push_back(shelf(name, held));
  });
  return found;
}

// Made anew each time: they are few, and asked for by people.
std::vector<view_ptr<v1::LeakDetector>> views::all(const core::snapshot& state, const std::string& scope,
                                                   const v1::LeakDetector*) {
  std::vector<view_ptr<v1::LeakDetector>> found;
  const std::string old = why_old();
  const auto show = [&found, &old](std::vector<v1::LeakDetector> rows) {
    for (v1::LeakDetector& row : rows) {
      if (!old.empty()) {
        row.set_verdict(v1::Detector::UNKNOWN);
        row.set_detail(old);
      }
      found.push_back(make_view(std::move(row)));
    }
  };
  walk(*state.racks, scope, [&show](const std::string&, const core::versioned<journal::Rack>& held) {
    show(detectors_to_v1(*held.object, held.revision));
  });
  walk(*state.nodes, scope, [&show, &state](const std::string& name, const core::versioned<journal::Node>& held) {
    const auto rack = state.rack(name.substr(0, name.find('/')));
    show(detectors_to_v1(*held.object, rack.get(), held.revision));
  });
  return found;
}

std::vector<view_ptr<v1::Rack>> views::all(const core::snapshot& state, const std::string& scope, const v1::Rack*) {
  std::vector<view_ptr<v1::Rack>> found;
  walk(*state.racks, scope, [this, &state, &found](const std::string& name, const core::versioned<journal::Rack>& held) {
    found.push_back(rack(state, name, held));
  });
  racks_.trim(state.racks->size());
  return found;
}

std::vector<view_ptr<v1::Endpoint>> views::all(const core::snapshot& state, const std::string& scope, const v1::Endpoint*) {
  std::vector<view_ptr<v1::Endpoint>> found;
  walk(*state.endpoints, scope, [this, &found](const std::string& name, const core::versioned<journal::Endpoint>& held) {
    found.push_back(endpoint(name, held));
  });
  endpoints_.trim(state.endpoints->size());
  return found;
}

std::vector<view_ptr<v1::Operation>> views::all(const core::snapshot& state, const std::string& scope, const v1::Operation*) {
  std::vector<std::pair<std::uint64_t, view_ptr<v1::Operation>>> numbered;
  for (const auto& [id, held] : *state.operations) {
    const bool here = scope.empty() || scope == instance_ || is_within(held.object->target(), scope);
    if (here) numbered.emplace_back(operation_number(id), operation(id, held));
  }
  std::sort(numbered.begin(), numbered.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<view_ptr<v1::Operation>> found;
  found.reserve(numbered.size());
  for (auto& [number, each] : numbered) found.push_back(std::move(each));
  operations_.trim(state.operations->size());
  return found;
}

}  // namespace busbar::rpc
