// The command line of busbar-sim: words, and options with or without a value.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace busbar::sim {

struct arguments {
  std::vector<std::string> words;                           // run; fault add leak r01/c07
  std::map<std::string, std::string, std::less<>> options;  // "--racks" -> "2"; a flag has ""
  std::string error;                                        // not empty: usage

  std::string value(std::string_view option, std::string_view otherwise) const;
  bool has(std::string_view option) const { return options.find(option) != options.end(); }
};

// flags: options without a value; valued: options with one. Anything else is an error.
arguments parse_arguments(int count, char** texts, const std::set<std::string_view>& flags,
                          const std::set<std::string_view>& valued);

std::optional<long long> whole_number(const std::string& text);
// 250ms, 10s, 2m, 1h; a bare number is seconds.
std::optional<std::chrono::nanoseconds> duration_of(const std::string& text);

}  // namespace busbar::sim
