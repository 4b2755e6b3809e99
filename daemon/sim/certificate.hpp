// Self-signed ECDSA P-256 certificates of simulated BMCs, kept in the state folder so that pins survive a
// restart.
#pragma once

#include <absl/status/statusor.h>

#include <string>

namespace busbar::sim {

struct key_pair {
  std::string pem;     // private key and certificate
  std::string sha256;  // of the DER certificate, lower-case hex
};

absl::StatusOr<key_pair> make_certificate(const std::string& common_name, const std::string& address);
// Reads the file, or makes a pair and writes it (mode 0600).
absl::StatusOr<key_pair> certificate_at(const std::string& path, const std::string& common_name,
                                        const std::string& address);

std::string sha256_hex(const std::string& bytes);

}  // namespace busbar::sim
