// Accounts, sessions and lock-out of one BMC. Owner: its device.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "daemon/sim/http_message.hpp"
#include "daemon/sim/json.hpp"
#include "daemon/sim/physics/noise.hpp"

namespace busbar::sim {

inline constexpr std::size_t most_sessions = 8;
inline constexpr int lockout_threshold = 5;

struct account {
  std::string password;
  std::string role;  // Administrator, Operator, ReadOnly
  bool must_change = false;
  int wrong_logins = 0;
  instant locked_until{0};
};

struct session {
  std::string user;
  std::string token;
  instant last_used{0};
  std::string peer;
};

struct access {
  enum class verdict { allowed, anonymous, refused };
  verdict what = verdict::anonymous;
  std::string user;
  std::string role;
  std::string session_id;  // empty with basic authentication
  bool must_change = false;
};

class access_control {
 public:
  access_control(std::uint64_t seed, instant lockout, instant session_timeout);

  // Who the request comes from: X-Auth-Token, else Basic.
  access authenticate(const http_request& request, instant now);
  // A correct password; a wrong one counts towards the lock-out, and during a lock-out every password is
  // wrong.
  bool check_password(const std::string& user, const std::string& password, instant now);

  // Empty: all sessions are taken.
  std::optional<std::string> open_session(const std::string& user, const std::string& peer, instant now);
  bool close_session(std::string_view id) { return sessions_.erase(std::string(id)) > 0; }
  void close_all() { sessions_.clear(); }
  void expire(instant now);

  std::map<std::string, account>& accounts() { return accounts_; }
  const std::map<std::string, account>& accounts() const { return accounts_; }
  const std::map<std::string, session>& sessions() const { return sessions_; }
  account* find(std::string_view name);

  instant session_timeout() const { return session_timeout_; }
  void set_session_timeout(instant timeout) { session_timeout_ = timeout; }
  instant lockout() const { return lockout_; }

  json save() const;
  void load(const json& saved);

 private:
  std::map<std::string, account> accounts_;
  std::map<std::string, session> sessions_;
  physics::stream tokens_;
  instant lockout_;
  instant session_timeout_;
  std::uint64_t last_session_ = 0;
};

bool may_write(std::string_view role);       // ConfigureComponents
bool may_administer(std::string_view role);  // ConfigureUsers, ConfigureManager

}  // namespace busbar::sim
