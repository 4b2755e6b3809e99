// r01/c[01-04,07] -> r01/c01, r01/c02, ... Several groups multiply (r[01-02]/c[01-18]). Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace busbar::cli {

// Nothing for a text that is no host list (unbalanced, backwards, more than 100,000 names).
std::optional<std::vector<std::string>> expand_host_list(std::string_view text);
// The reverse, for names that differ in their last number only: r01/c[01-04,07]; given in order.
std::string fold_host_list(const std::vector<std::string>& names);

}  // namespace busbar::cli
