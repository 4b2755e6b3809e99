#include "daemon/agent/identity.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>

namespace busbar::agent_client {
namespace {

constexpr const char* token_line = "busbar-agent token ";
constexpr const char* begin_key = "-----BEGIN PRIVATE KEY-----";
constexpr const char* begin_certificate = "-----BEGIN CERTIFICATE-----";

}  // namespace

std::string identity_to_text(const identity& mine) {
  return token_line + mine.token_digest + "\n" + mine.key_pem + mine.certificate_pem + mine.ca_pem;
}

identity identity_from_text(const std::string& text) {
  identity mine;
  const std::string start = token_line;
  const std::size_t line_end = text.find('\n');
  const std::size_t key = text.find(begin_key);
  if (text.compare(0, start.size(), start) != 0 || line_end == std::string::npos || key != line_end + 1)
    return mine;
  mine.token_digest = text.substr(start.size(), line_end - start.size());
  const std::size_t own = text.find(begin_certificate, key);
  mine.key_pem = text.substr(key, own == std::string::npos ? own : own - key);
  if (own == std::string::npos) return mine;
  const std::size_t ca = text.find(begin_certificate, own + 1);
  if (ca == std::string::npos) return identity{};
  mine.certificate_pem = text.substr(own, ca - own);
  mine.ca_pem = text.substr(ca);
  return mine;
}

identity identity_store::load() const {
  if (file_.empty()) return memory_;
  std::ifstream in(file_, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return in ? identity_from_text(text.str()) : identity{};
}

absl::Status identity_store::save(const identity& mine) {
  memory_ = mine;
  if (file_.empty()) return absl::OkStatus();
  std::error_code ignored;
  std::filesystem::create_directories(file_.parent_path(), ignored);
  const std::string fresh = file_.string() + ".new";
  const std::string text = identity_to_text(mine);
  const int fd = ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  const bool written = fd >= 0 &&
                       ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
                       ::fsync(fd) == 0;
  const int why = errno;
  if (fd >= 0) ::close(fd);
  if (!written || ::rename(fresh.c_str(), file_.c_str()) != 0) {
    return absl::UnavailableError("cannot keep the agent's identity in " + file_.string() + ": " +
                                  std::strerror(why));
  }
  return absl::OkStatus();
}

}  // namespace busbar::agent_client
