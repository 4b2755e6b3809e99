// The one-time token of a boot: "<secret>.<CA digest>", both base64url. The secret proves the tray to the
// gate; the digest lets the agent recognise the gate before it holds any certificate (the token itself
// travels over the BMC's pinned Redfish).
#pragma once

#include <absl/status/statusor.h>

#include <string>

namespace busbar::agent_client {

struct token {
  std::string secret;         // base64url, 256 bits
  std::string ca_sha256_hex;  // of the rack CA's DER bytes
};

std::string make_token(const std::string& ca_sha256_hex);
absl::StatusOr<token> parse_token(const std::string& text);

// What a tray needs to be born, out of a boot URI's query or a kernel command line:
//   https://images.site/s.efi?token=T&endpoint=127.18.1.250:7443      busbar.token=T
//   busbar.endpoint=127.18.1.250:7443
struct boot_parameters {
  std::string token;
  std::string endpoint;  // empty: not given
};
boot_parameters parse_boot_parameters(const std::string& text);

}  // namespace busbar::agent_client
