#include "actors/devices/redfish/json.hpp"

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

namespace busbar::devices::redfish {
namespace {

using node = nlohmann::json;

const node& of(const void* pointer) {
  return *static_cast<const node*>(pointer);
}

// Bodies nest a dozen deep at most; anything deeper is hostile, and dumping it would recurse.
constexpr int depth_limit = 64;

}  // namespace

bool json_view::is_null() const {
  return node_ != nullptr && of(node_).is_null();
}
bool json_view::is_object() const {
  return node_ != nullptr && of(node_).is_object();
}
bool json_view::is_array() const {
  return node_ != nullptr && of(node_).is_array();
}

std::size_t json_view::size() const {
  return is_object() || is_array() ? of(node_).size() : 0;
}

json_view json_view::operator[](std::string_view key) const {
  if (!is_object()) return {};
  const auto found = of(node_).find(std::string(key));
  return found == of(node_).end() ? json_view() : json_view(&*found);
}

std::vector<json_view> json_view::items() const {
  std::vector<json_view> all;
  if (!is_array()) return all;
  all.reserve(of(node_).size());
  for (const node& item : of(node_)) all.emplace_back(&item);
  return all;
}

std::vector<std::pair<std::string, json_view>> json_view::entries() const {
  std::vector<std::pair<std::string, json_view>> all;
  if (!is_object()) return all;
  for (const auto& [key, value] : of(node_).items()) all.emplace_back(key, json_view(&value));
  return all;
}

std::optional<std::string> json_view::text() const {
  if (node_ == nullptr) return std::nullopt;
  const auto* text = of(node_).get_ptr<const std::string*>();
  if (text == nullptr || text->empty()) return std::nullopt;
  return *text;
}

std::optional<double> json_view::number() const {
  if (node_ == nullptr || !of(node_).is_number()) return std::nullopt;
  const double value = of(node_).get<double>();
  return std::isfinite(value) ? std::optional<double>(value) : std::nullopt;
}

std::optional<double> json_view::lenient_number() const {
  if (const auto value = number()) return value;
  const auto words = text();
  return words ? parse_number(*words) : std::nullopt;
}

std::optional<long long> json_view::integer() const {
  const auto value = number();
  if (!value || std::trunc(*value) != *value || std::fabs(*value) > 9e15) return std::nullopt;
  return static_cast<long long>(*value);
}

std::optional<bool> json_view::boolean() const {
  if (node_ == nullptr || !of(node_).is_boolean()) return std::nullopt;
  return of(node_).get<bool>();
}

std::optional<std::string> json_view::canonical() const {
  if (const auto truth = boolean()) return *truth ? "true" : "false";
  if (const auto value = number()) return format_number(*value);
  if (node_ == nullptr || !of(node_).is_string()) return std::nullopt;
  return of(node_).get<std::string>();
}

std::string json_view::raw() const {
  return node_ == nullptr ? std::string() : of(node_).dump(-1, ' ', false, node::error_handler_t::replace);
}

std::optional<std::string> json_view::link() const {
  return (*this)["@odata.id"].text();
}

std::optional<json_document> json_document::parse(std::string_view text) {
  bool too_deep = false;
  const node::parser_callback_t limit = [&too_deep](int depth, node::parse_event_t, node&) {
    too_deep = too_deep || depth > depth_limit;
    return true;
  };
  auto parsed = std::make_shared<node>(node::parse(text, limit, false));
  if (parsed->is_discarded() || too_deep) return std::nullopt;
  json_document document;
  document.at_ = parsed.get();
  document.owner_ = std::move(parsed);
  return document;
}

json_document json_document::part(json_view view_of_this) const {
  json_document document;
  document.owner_ = owner_;
  document.at_ = view_of_this.address();
  return document;
}

std::string json_quote(std::string_view text) {
  return node(std::string(text)).dump(-1, ' ', false, node::error_handler_t::replace);
}

std::string json_object(const std::vector<std::pair<std::string, std::string>>& members) {
  std::string text = "{";
  for (const auto& [key, value] : members) {
    if (text.size() > 1) text += ',';
    text += json_quote(key) + ':' + value;
  }
  return text + '}';
}

std::string json_array(const std::vector<std::string>& values) {
  std::string text = "[";
  for (const std::string& value : values) {
    if (text.size() > 1) text += ',';
    text += value;
  }
  return text + ']';
}

std::optional<std::string> json_like(json_view like, std::string_view canonical_text) {
  if (like.boolean()) {
    if (canonical_text != "true" && canonical_text != "false") return std::nullopt;
    return std::string(canonical_text);
  }
  if (like.number()) {
    const auto value = parse_number(canonical_text);
    return value ? std::optional<std::string>(format_number(*value)) : std::nullopt;
  }
  return json_quote(canonical_text);
}

std::optional<double> parse_number(std::string_view text) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || text.empty() || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::string format_number(double value) {
  char buffer[64];
  const bool whole = std::trunc(value) == value && std::fabs(value) < 9e15;
  const auto done = whole ? std::to_chars(buffer, buffer + sizeof buffer, static_cast<long long>(value))
                          : std::to_chars(buffer, buffer + sizeof buffer, value);
  return {buffer, done.ptr};
}

}  // namespace busbar::devices::redfish
