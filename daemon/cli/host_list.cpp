#include "daemon/cli/host_list.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>

namespace busbar::cli {
namespace {

constexpr std::size_t longest_list = 100'000;

bool digits_only(std::string_view text) {
  return !text.empty() && text.size() <= 6 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::uint32_t number_of(std::string_view digits) {
  std::uint32_t number = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return number;
}

// One element of a group: 07 or 01-04; both ends of a range have the same width.
bool expand_element(std::string_view element, std::vector<std::string>& out) {
  const std::size_t dash = element.find('-');
  const std::string_view first = element.substr(0, dash);
  const std::string_view last = dash == std::string_view::npos ? first : element.substr(dash + 1);
  if (!digits_only(first) || !digits_only(last) || first.size() > last.size()) return false;
  const std::uint32_t begin = number_of(first);
  const std::uint32_t end = number_of(last);
  if (begin > end || end - begin >= longest_list) return false;
  for (std::uint32_t i = begin; i <= end; ++i) out.push_back(fmt::format("{:0{}}", i, first.size()));
  return true;
}

bool expand_group(std::string_view group, std::vector<std::string>& out) {
  for (;;) {
    const std::size_t comma = group.find(',');
    if (!expand_element(group.substr(0, comma), out)) return false;
    if (comma == std::string_view::npos) return true;
    group.remove_prefix(comma + 1);
  }
}

struct split_name {
  std::string_view stem;
  std::string_view digits;
};

split_name split_number(std::string_view name) {
  std::size_t place = name.size();
  while (place > 0 && name[place - 1] >= '0' && name[place - 1] <= '9') --place;
  return {name.substr(0, place), name.substr(place)};
}

}  // namespace

std::optional<std::vector<std::string>> expand_host_list(std::string_view text) {
  std::vector<std::string> names{""};
  while (!text.empty()) {
    const std::size_t open = text.find('[');
    const std::string_view plain = text.substr(0, open);
    if (plain.find(']') != std::string_view::npos) return std::nullopt;
    for (std::string& name : names) name += plain;
    if (open == std::string_view::npos) break;
    const std::size_t close = text.find(']', open);
    std::vector<std::string> numbers;
    if (close == std::string_view::npos || !expand_group(text.substr(open + 1, close - open - 1), numbers)) {
      return std::nullopt;
    }
    if (names.size() * numbers.size() > longest_list) return std::nullopt;
    std::vector<std::string> longer;
    longer.reserve(names.size() * numbers.size());
    for (const std::string& name : names) {
      for (const std::string& number : numbers) longer.push_back(name + number);
    }
    names = std::move(longer);
    text.remove_prefix(close + 1);
  }
  if (names.size() == 1 && names[0].empty()) return std::nullopt;
  return names;
}

std::string fold_host_list(const std::vector<std::string>& names) {
  if (names.size() < 2) return fmt::format("{}", fmt::join(names, ","));
  const split_name first = split_number(names.front());
  std::string ranges;
  for (std::size_t i = 0; i < names.size();) {
    const split_name here = split_number(names[i]);
    if (here.stem != first.stem || !digits_only(here.digits)) return fmt::format("{}", fmt::join(names, ","));
    std::size_t last = i;
    while (last + 1 < names.size()) {
      const split_name next = split_number(names[last + 1]);
      if (!digits_only(next.digits) || number_of(next.digits) != number_of(here.digits) + (last + 1 - i))
        break;
      ++last;
    }
    if (!ranges.empty()) ranges += ",";
    ranges += here.digits;
    if (last > i) ranges += fmt::format("-{}", split_number(names[last]).digits);
    i = last + 1;
  }
  return fmt::format("{}[{}]", first.stem, ranges);
}

}  // namespace busbar::cli
