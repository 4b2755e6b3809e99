#include "daemon/agent/token.hpp"

#include <absl/strings/escaping.h>

#include <cstddef>

#include "daemon/agent/x509.hpp"

namespace busbar::agent_client {
namespace {

constexpr std::size_t base64_of_32 = 43;

std::string unescape_percent(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto digit = [&text](std::size_t at) {
      const char c = text[at];
      if (c >= '0' && c <= '9') return c - '0';
      if (c >= 'a' && c <= 'f') return c - 'a' + 10;
      if (c >= 'A' && c <= 'F') return c - 'A' + 10;
      return -1;
    };
    if (text[i] == '%' && i + 2 < text.size() && digit(i + 1) >= 0 && digit(i + 2) >= 0) {
      out.push_back(static_cast<char>(digit(i + 1) * 16 + digit(i + 2)));
      i += 2;
    } else {
      out.push_back(text[i]);
    }
  }
  return out;
}

// The value of `key=` where the key begins the text or follows one of `before`; ends at the next separator.
std::string value_after(const std::string& text, const std::string& key, const std::string& before) {
  for (std::size_t at = text.find(key); at != std::string::npos; at = text.find(key, at + 1)) {
    if (at != 0 && before.find(text[at - 1]) == std::string::npos) continue;
    if (at == 0 && before.find(' ') == std::string::npos) continue;
    const std::size_t begin = at + key.size();
    const std::size_t end = text.find_first_of(" \t\n?&;#\"", begin);
    return unescape_percent(text.substr(begin, end == std::string::npos ? end : end - begin));
  }
  return {};
}

// In a URI's query the short name will do; among the kernel's own parameters only the long one is ours.
std::string boot_value(const std::string& text, const std::string& name) {
  const std::string ours = value_after(text, "busbar." + name + "=", " \t\n?&;\"");
  return ours.empty() ? value_after(text, name + "=", "?&") : ours;
}

}  // namespace

std::string make_token(const std::string& ca_sha256_hex) {
  const std::string secret = absl::WebSafeBase64Escape(random_bytes(32));
  return secret + "." + absl::WebSafeBase64Escape(absl::HexStringToBytes(ca_sha256_hex));
}

absl::StatusOr<token> parse_token(const std::string& text) {
  const std::size_t dot = text.find('.');
  if (dot != base64_of_32 || text.size() != 2 * base64_of_32 + 1) {
    return absl::InvalidArgumentError(
        "not an agent token: expected two parts of 43 characters with a dot between");
  }
  std::string secret;
  std::string digest;
  if (!absl::WebSafeBase64Unescape(text.substr(0, dot), &secret) || secret.size() != 32 ||
      !absl::WebSafeBase64Unescape(text.substr(dot + 1), &digest) || digest.size() != 32) {
    return absl::InvalidArgumentError("not an agent token: a part is not base64url of 32 bytes");
  }
  return token{text.substr(0, dot), absl::BytesToHexString(digest)};
}

boot_parameters parse_boot_parameters(const std::string& text) {
  return {boot_value(text, "token"), boot_value(text, "endpoint")};
}

}  // namespace busbar::agent_client
