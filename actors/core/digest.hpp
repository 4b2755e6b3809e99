// SHA-256, once. Used for evidence, request bodies, the audit chain and certificate pins.
#pragma once

#include <string>
#include <string_view>

namespace busbar::core {

std::string sha256(std::string_view bytes);   // 32 raw bytes
std::string to_hex(std::string_view bytes);   // lower case

}  // namespace busbar::core
