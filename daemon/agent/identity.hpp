// What an agent is: its key, the certificate it was given, the CA it trusts. One file, 0600, replaced as a
// whole; an empty path keeps it in memory (the simulator). An identity belongs to one token: another boot's
// token makes a new one.
#pragma once

#include <absl/status/status.h>

#include <filesystem>
#include <string>

namespace busbar::agent_client {

struct identity {
  std::string token_digest;  // hex
  std::string key_pem;
  std::string certificate_pem;  // empty: not enrolled yet
  std::string ca_pem;
};

std::string identity_to_text(const identity& mine);
// An identity with an empty key where the text is not one.
identity identity_from_text(const std::string& text);

class identity_store {
 public:
  explicit identity_store(std::filesystem::path file) : file_(std::move(file)) {}
  identity load() const;
  absl::Status save(const identity& mine);

 private:
  std::filesystem::path file_;
  identity memory_;
};

}  // namespace busbar::agent_client
