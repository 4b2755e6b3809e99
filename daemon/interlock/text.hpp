// Texts that go into a protobuf message have to be valid UTF-8: a reader refuses the whole message for one
// byte that is not, and would call the interlock dead for it.
#pragma once

#include <google/protobuf/message.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace busbar::interlock {

bool is_utf8(std::string_view text);

// At most so many bytes of it; a character is taken whole or not at all.
std::string_view cut_text(std::string_view text, std::size_t bytes_max);

// Each byte that is no part of a character becomes U+FFFD.
std::string mend_text(std::string_view text);

// The same for every text of a message, however deep.
void mend_texts(google::protobuf::Message* message);

}  // namespace busbar::interlock
