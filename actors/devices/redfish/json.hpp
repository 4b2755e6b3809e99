// JSON as devices send it, behind views that cannot throw and cannot mistake one type for another. The
// parser's header stays in json.cpp. A view of something missing is an ordinary view: it has no text, no
// number and no members.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace busbar::devices::redfish {

class json_view {
 public:
  json_view() = default;
  explicit json_view(const void* node) : node_(node) {}

  bool missing() const { return node_ == nullptr; }
  bool is_null() const;
  bool is_object() const;
  bool is_array() const;
  std::size_t size() const;  // of arrays and objects; else 0

  json_view operator[](std::string_view key) const;
  std::vector<json_view> items() const;
  std::vector<std::pair<std::string, json_view>> entries() const;

  std::optional<std::string> text() const;       // strings that are not empty
  std::optional<double> number() const;          // JSON numbers, finite
  std::optional<double> lenient_number() const;  // also a string that is wholly a finite number
  std::optional<long long> integer() const;      // JSON numbers without a fraction
  std::optional<bool> boolean() const;
  std::optional<std::string> canonical() const;  // scalar as canonical text: true, 12, 87.5, MaxPerformance
  std::string raw() const;                       // JSON text
  std::optional<std::string> link() const;       // "@odata.id" of an object
  const void* address() const { return node_; }

 private:
  const void* node_ = nullptr;  // nlohmann::json, owned by a json_document
};

// Owns a parsed body. Copies share it.
class json_document {
 public:
  json_document() = default;
  static std::optional<json_document> parse(std::string_view text);
  json_view root() const { return json_view(at_); }
  // A document of its own that shares the ownership of this one.
  json_document part(json_view view_of_this) const;

 private:
  std::shared_ptr<const void> owner_;
  const void* at_ = nullptr;
};

// Building bodies: values are JSON text already.
std::string json_quote(std::string_view text);
std::string json_object(const std::vector<std::pair<std::string, std::string>>& members);
std::string json_array(const std::vector<std::string>& values);
// A number, true or false as such when like is of that type and the text fits; else quoted.
std::optional<std::string> json_like(json_view like, std::string_view canonical_text);

// Strict: the whole text is one finite decimal number.
std::optional<double> parse_number(std::string_view text);
// Shortest form without a needless fraction: 12, 87.5.
std::string format_number(double value);

}  // namespace busbar::devices::redfish
