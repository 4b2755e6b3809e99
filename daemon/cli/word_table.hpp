// What `busbar explain` says of every other word that is shown: conditions, states, verdicts, qualities. Data; a test holds it
// against the enumerations of busbar.v1 and the conditions that the daemon sets.
#pragma once

#include <span>
#include <string_view>

namespace busbar::cli {

struct word_text {
  std::string_view word;      // as enumerations and JSON have it
  std::string_view subject;   // what it is said of
  std::string_view meaning;
  std::string_view operators; // what a person can do or look at; may be empty
};

std::span<const word_text> word_texts();

}  // namespace busbar::cli
