// Data files of the drivers (register maps, SNMP dialects): JSON, strictly. Everything wrong is said at once,
// each with file and path.
#pragma once

#include <absl/status/status.h>
#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "actors/devices/redfish/json.hpp"

namespace busbar::devices {

// A word of a data file and what it means.
template <class T>
struct named {
  std::string_view name;
  T value;
};

// Takes what is right and collects what is wrong. A missing value that is not required leaves its target as
// it is.
class strict_json {
 public:
  using json_view = redfish::json_view;

  explicit strict_json(std::string_view source) : source_(source) {}

  void wrong(std::string_view path, std::string_view text);
  void only(json_view object, const std::string& path, const std::set<std::string, std::less<>>& known);
  void text(json_view from, const std::string& path, std::string& to, bool required);
  void truth(json_view from, const std::string& path, bool& to);

  template <class T>
  void whole(json_view from, const std::string& path, long long low, long long high, T& to, bool required) {
    if (from.missing() && !required) return;
    const auto value = from.integer();
    if (!value.has_value() || *value < low || *value > high) {
      return wrong(path, fmt::format("a whole number from {} to {} is wanted", low, high));
    }
    to = static_cast<T>(*value);
  }
  template <class T>
  void number(json_view from, const std::string& path, T& to) {
    if (from.missing()) return;
    const auto value = from.number();
    if (!value.has_value()) return wrong(path, "a number is wanted");
    to = *value;
  }
  template <class T, std::size_t N>
  void one_of(json_view from, const std::string& path, const std::array<named<T>, N>& names, T& to) {
    if (from.missing()) return;
    const auto value = from.text();
    std::string wanted;
    for (const auto& [name, meaning] : names) {
      if (value == name) {
        to = meaning;
        return;
      }
      wanted += (wanted.empty() ? "" : ", ") + std::string(name);
    }
    wrong(path, "one of " + wanted + " is wanted");
  }

  // OK, or INVALID_ARGUMENT with a line for each error.
  absl::Status status() const;

 private:
  std::string source_;
  std::vector<std::string> errors_;
};

}  // namespace busbar::devices
