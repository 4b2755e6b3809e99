// The few things that both ends of the agent wire do with keys and certificates (ECDSA P-256, PEM in and
// out). OpenSSL stays in the .cpp. Thread-safe: no state.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace busbar::agent_client {

// Every server certificate of an agent gate carries this DNS name; the CA is private to one rack, so the name
// is only a role.
inline constexpr std::string_view gate_server_name = "agent-gate.busbar";

struct certificate_facts {
  std::string common_name;
  std::int64_t not_before = 0;  // Unix seconds
  std::int64_t not_after = 0;   // Unix seconds
  std::string sha256_hex;       // of the DER bytes
};

absl::StatusOr<std::string> new_key_pem();
absl::StatusOr<std::string> make_csr(const std::string& key_pem, const std::string& common_name);
absl::StatusOr<certificate_facts> read_certificate(const std::string& certificate_pem);
// Digest of the public key (SubjectPublicKeyInfo) of a CSR whose own signature holds and whose key is P-256.
absl::StatusOr<std::string> csr_key_digest(const std::string& csr_pem);
absl::Status key_matches(const std::string& key_pem, const std::string& certificate_pem);

// The server's certificate must chain to the one certificate of `chain_pem` whose digest is `ca_sha256_hex`,
// be made for a server and carry gate_server_name. Gives that CA's PEM.
absl::StatusOr<std::string> verify_server_chain(const std::string& leaf_pem, const std::string& chain_pem,
                                                const std::string& ca_sha256_hex);

std::string sha256_hex(std::string_view bytes);
std::string random_bytes(std::size_t count);
// Reason text of the library's last error on this thread; the queue is emptied.
std::string last_openssl_error();

}  // namespace busbar::agent_client
