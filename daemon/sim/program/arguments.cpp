#include "daemon/sim/program/arguments.hpp"

#include <charconv>
#include <utility>

namespace busbar::sim {

std::string arguments::value(std::string_view option, std::string_view otherwise) const {
  const auto found = options.find(option);
  return found == options.end() ? std::string(otherwise) : found->second;
}

arguments parse_arguments(int count, char** texts, const std::set<std::string_view>& flags,
                          const std::set<std::string_view>& valued) {
  arguments result;
  for (int each = 1; each < count; ++each) {
    std::string text = texts[each];
    if (!text.starts_with("-") || text == "-") {
      result.words.push_back(std::move(text));
      continue;
    }
    std::optional<std::string> value;
    if (const std::size_t equals = text.find('='); equals != std::string::npos) {
      value = text.substr(equals + 1);
      text.resize(equals);
    }
    if (flags.contains(text) && !value) {
      result.options[text] = "";
    } else if (valued.contains(text) && (value || each + 1 < count)) {
      result.options[text] = value ? *value : texts[++each];
    } else {
      result.error = valued.contains(text) ? text + " needs a value" : "unknown option " + text;
      return result;
    }
  }
  return result;
}

std::optional<long long> whole_number(const std::string& text) {
  long long number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

std::optional<std::chrono::nanoseconds> duration_of(const std::string& text) {
  static constexpr std::pair<std::string_view, double> units[] = {
      {"ms", 1e6}, {"s", 1e9}, {"m", 60e9}, {"h", 3600e9}};
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  if (error != std::errc() || number < 0) {
    return std::nullopt;
  }
  for (const auto& [name, ns] : units) {
    if (unit == name || (unit.empty() && name == "s")) {
      return std::chrono::nanoseconds(static_cast<long long>(number * ns));
    }
  }
  return std::nullopt;
}

}  // namespace busbar::sim
