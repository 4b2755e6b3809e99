#include "daemon/sim/resource_tree.hpp"

#include <utility>

#include "daemon/sim/embedded_data.hpp"

namespace busbar::sim {

namespace {

constexpr std::string_view root = "/redfish/v1";
using binding = std::map<std::string, std::string>;

std::string substitute(std::string text, const binding& bound) {
  for (const auto& [name, value] : bound) {
    const std::string mark = "{" + name + "}";
    for (std::size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at + value.size())) {
      text.replace(at, mark.size(), value);
    }
  }
  return text;
}

// "@/Chassis" becomes a link; {gpu} its number.
json instantiate(const json& pattern, const binding& bound) {
  if (pattern.is_string()) {
    std::string text = substitute(pattern.get<std::string>(), bound);
    if (text.starts_with("@/")) {
      return json{{"@odata.id", std::string(root) + text.substr(1)}};
    }
    return text;
  }
  if (pattern.is_array()) {
    json list = json::array();
    for (const json& each : pattern) {
      list.push_back(instantiate(each, bound));
    }
    return list;
  }
  if (pattern.is_object()) {
    json object = json::object();
    for (const auto& [key, value] : pattern.items()) {
      object[key] = instantiate(value, bound);
    }
    return object;
  }
  return pattern;
}

// Every combination of the ranges that a row of the data file goes over; one empty binding when it names
// none.
std::vector<binding> combinations(const json& row, const range_map& ranges) {
  std::vector<binding> all = {{}};
  if (!row.contains("over")) {
    return all;
  }
  for (const auto& [name, range] : row.at("over").items()) {
    std::vector<binding> longer;
    for (const binding& each : all) {
      for (const std::string& value : ranges.at(range.get<std::string>())) {
        binding next = each;
        next[name] = value;
        longer.push_back(std::move(next));
      }
    }
    all = std::move(longer);
  }
  return all;
}

std::string last_segment(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

}  // namespace

std::shared_ptr<const resource_tree> resource_tree::expand(std::string_view kind, range_map ranges) {
  auto tree = std::make_shared<resource_tree>();
  const json data = json::parse(embedded_data(kind));
  for (const json& row : data.at("firmware")) {
    tree->firmware_.push_back({row.at("component"), row.at("version"), row.at("old"), row.at("activation")});
    ranges["components"].push_back(tree->firmware_.back().component);
  }
  data.at("starts_old").get_to(tree->starts_old_);
  data.at("manager_component").get_to(tree->manager_component_);
  tree->bios_ = data.at("bios");
  tree->add_resources(data.at("resources"), ranges);
  tree->add_resources(json::parse(embedded_data("common")).at("resources"), ranges);
  tree->add_reports(data.at("reports"), ranges);
  tree->fill_collections();
  return tree;
}

void resource_tree::add_resources(const json& list, const range_map& ranges) {
  for (const json& row : list) {
    for (const binding& bound : combinations(row, ranges)) {
      const std::string path = std::string(root) + substitute(row.at("path").get<std::string>(), bound);
      json body = json::object();
      if (row.contains("collection")) {
        body["@odata.type"] =
            "#" + row.at("collection").get<std::string>() + "." + row.at("collection").get<std::string>();
        body["Name"] = row.at("name");
        body["Members"] = json::array();
      } else {
        body = instantiate(row.at("body"), bound);
        body.emplace("Id", last_segment(path));
      }
      body["@odata.id"] = path;
      if (bodies_.emplace(path, std::move(body)).second) {
        order_.push_back(path);
      }
    }
  }
}

void resource_tree::add_reports(const json& reports, const range_map& ranges) {
  for (const auto& [name, rows] : reports.items()) {
    for (const json& row : rows) {
      for (const binding& bound : combinations(row, ranges)) {
        reports_[name].push_back({substitute(row.at("property").get<std::string>(), bound),
                                  substitute(row.at("value").get<std::string>(), bound)});
      }
    }
  }
}

void resource_tree::fill_collections() {
  for (const std::string& path : order_) {
    const std::size_t slash = path.rfind('/');
    const auto parent = bodies_.find(path.substr(0, slash));
    if (parent != bodies_.end() && parent->second.contains("Members")) {
      parent->second["Members"].push_back({{"@odata.id", path}});
    }
  }
  for (auto& [path, body] : bodies_) {
    if (body.contains("Members")) {
      body["Members@odata.count"] = body["Members"].size();
    }
  }
}

const json* resource_tree::find(std::string_view path) const {
  const auto found = bodies_.find(path);
  return found == bodies_.end() ? nullptr : &found->second;
}

value_name parse_value_name(std::string_view text) {
  value_name result;
  text.remove_prefix(1);
  std::size_t colon = text.find(':');
  result.name = text.substr(0, colon);
  while (colon != std::string_view::npos) {
    text.remove_prefix(colon + 1);
    colon = text.find(':');
    result.arguments.push_back(text.substr(0, colon));
  }
  return result;
}

void fill(json& body, const std::function<json(const value_name&)>& value) {
  if (body.is_string()) {
    const auto& text = body.get_ref<const std::string&>();
    if (text.size() > 1 && text[0] == '$') {
      const std::string kept = text;
      body = value(parse_value_name(kept));
    }
    return;
  }
  if (body.is_structured()) {
    for (auto& each : body) {
      fill(each, value);
    }
  }
}

}  // namespace busbar::sim
