#include "actors/devices/strict_json.hpp"

#include <fmt/ranges.h>

namespace busbar::devices {

void strict_json::wrong(std::string_view path, std::string_view text) {
  errors_.push_back(fmt::format("{}: {}: {}", source_, std::string(path), std::string(text)));
}

void strict_json::only(json_view object, const std::string& path,
                       const std::set<std::string, std::less<>>& known) {
  for (const auto& [key, value] : object.entries()) {
    if (!known.contains(key)) wrong(path.empty() ? key : path + "." + key, "unknown key");
  }
}

void strict_json::text(json_view from, const std::string& path, std::string& to, bool required) {
  if (from.missing() && !required) return;
  const auto value = from.text();
  if (!value.has_value()) return wrong(path, "a text is wanted");
  to = *value;
}

void strict_json::truth(json_view from, const std::string& path, bool& to) {
  if (from.missing()) return;
  const auto value = from.boolean();
  if (!value.has_value()) return wrong(path, "true or false is wanted");
  to = *value;
}

absl::Status strict_json::status() const {
  return errors_.empty() ? absl::OkStatus()
                         : absl::InvalidArgumentError(fmt::format("{}", fmt::join(errors_, "\n")));
}

}  // namespace busbar::devices
