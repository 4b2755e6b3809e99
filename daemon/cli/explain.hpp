// `busbar explain <state|fault|condition|code>`: needs no daemon.
#pragma once

#include <string>
#include <string_view>

#include "daemon/cli/json_text.hpp"

namespace busbar::cli {

// Text for people; empty when nothing has this name. Any case; a step that several kinds have is told for
// each.
std::string explain_text(std::string_view name);
// The same as {"apiVersion","kind":"Explanation",...}, one document a meaning.
std::string explain_text(std::string_view name, text_format format);
// Names that hold the text, else the nearest to it; every name for the empty text; empty: none is near.
std::string names_like(std::string_view name);

}  // namespace busbar::cli
