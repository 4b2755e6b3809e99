// The rack's own CA for its agents. Its key is made once, never leaves the state folder (or the vault that
// handed it in) and signs two kinds of certificate: the gate's own and the agents' of a day. Thread-safe
// after construction: const only.
#pragma once

#include <absl/status/statusor.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

namespace busbar::rpc {

struct key_and_certificate {
  std::string key_pem;
  std::string certificate_pem;
};

class agent_ca {
 public:
  // Reads agent-ca.key and agent-ca.crt of `folder`, or makes them (key 0600, synced, renamed into place, key
  // first). A certificate without its key, an unreadable file or a pair that does not match is an error: a
  // new CA would strand agents.
  static absl::StatusOr<agent_ca> load_or_create(const std::filesystem::path& folder,
                                                 const std::string& rack);
  // For a vault: bytes out of create() are kept there and handed in here.
  static absl::StatusOr<key_and_certificate> create(const std::string& rack);
  static absl::StatusOr<agent_ca> from_pem(key_and_certificate pair);

  const std::string& certificate_pem() const { return pair_.certificate_pem; }
  const std::string& sha256_hex() const { return digest_; }

  // A fresh key and certificate for the gate, with gate_server_name and the addresses as subject names. The
  // certificate text is the chain: leaf, then CA (an agent being born recognises the CA in it).
  absl::StatusOr<key_and_certificate> issue_server(const std::vector<std::string>& addresses) const;
  // Subject and extensions of the request are ignored: the name is what the gate knows, the use is TLS
  // client.
  absl::StatusOr<std::string> sign_client(const std::string& csr_pem, const std::string& member,
                                          std::chrono::seconds lifetime) const;

 private:
  agent_ca(key_and_certificate pair, std::string digest)
      : pair_(std::move(pair)), digest_(std::move(digest)) {}

  key_and_certificate pair_;
  std::string digest_;
};

}  // namespace busbar::rpc
