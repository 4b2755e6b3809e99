// What of a command line is text, and how what is none is shown.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "daemon/cli/context.hpp"

namespace busbar::cli {

// Of one option or name, in bytes. A refusal quotes what was sent, and a gRPC status carries 8 KiB at most.
constexpr std::size_t longest_text = 4096;

// The place of the first byte that is no UTF-8 text; npos: all of it is. Overlong forms, surrogates and NUL
// are none.
std::size_t not_text_at(std::string_view bytes);
// What is no text as text: \xff for what cannot be shown.
std::string shown(const std::string& bytes);

// Of everything that goes to a daemon as text (files and their names are another matter): which is no UTF-8
// text or too long. Empty: all is well.
std::string wrong_text(const options& said);

}  // namespace busbar::cli
