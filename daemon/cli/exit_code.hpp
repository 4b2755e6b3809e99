// The one map from what happened to the number a script sees. Never 0 on failure.
#pragma once

#include <initializer_list>
#include <span>
#include <string_view>

namespace busbar::cli {

enum class exit_code {
  done = 0,
  no = 1,  // what was asked is false or unhealthy
  usage = 2,  // the command, a name that nobody holds, or a file
  unknown = 3,  // could not decide
  not_permitted = 4,
  conflict = 5,  // or a precondition
  timeout = 6,
  unreachable = 7,
};

// Of several things done in one command, the one that a script must not miss.
exit_code worst(exit_code a, exit_code b);
exit_code worst(std::initializer_list<exit_code> codes);

// code: canonical number of the status; fault: of its details, or empty. A daemon that answers "my store is
// read-only" is reached, one that does not answer is not.
exit_code exit_code_of(int code, std::string_view fault);

struct exit_text {
  exit_code code;
  std::string_view meaning;
};
std::span<const exit_text> exit_texts();

}  // namespace busbar::cli
