// SNMP v2c and v3 over net-snmp, which stays behind this header: one thread for all agents of a process.
#pragma once

#include <absl/status/statusor.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace busbar::devices::snmp {

// v2c when user is empty; else v3 with SHA and AES, authPriv (passwords of at least 8 characters).
struct login {
  std::string community;
  std::string user;
  std::string auth_password;
  std::string privacy_password;
  std::string context;  // v3; most agents have the empty one only
};

// A variable of an answer. Neither number nor text: the agent has no such object, or its type is none of
// ours.
struct variable {
  std::string oid;  // without a leading dot
  std::variant<std::monostate, std::int64_t, std::string> value;

  std::optional<std::int64_t> number() const;
  std::optional<std::string> text() const;
};

using variables_callback = std::function<void(absl::StatusOr<std::vector<variable>>)>;

// One agent; requests go out one after another. Thread-safe; answers come exactly once on the client's
// thread, at the latest after the time-out and its retries.
class agent {
 public:
  virtual ~agent() = default;
  // In one request; answered in the order asked.
  virtual void get(std::vector<std::string> oids, variables_callback reply) = 0;
  // All below an OID in its order, by as many requests as it takes; at most `most`.
  virtual void walk(std::string below, std::size_t most, variables_callback reply) = 0;
  // An INTEGER. Accepted is not done: read it back. Sent once.
  virtual void set(std::string oid, std::int64_t value, variables_callback reply) = 0;
};

class client {
 public:
  client();
  ~client();  // open requests are answered CANCELLED
  client(const client&) = delete;
  client& operator=(const client&) = delete;

  // address: numeric host:port, UDP.
  absl::StatusOr<std::shared_ptr<agent>> open(const std::string& address, const login& as,
                                              std::chrono::milliseconds timeout = std::chrono::seconds(1),
                                              int retries = 2);

 private:
  class impl;
  std::shared_ptr<impl> impl_;
};

}  // namespace busbar::devices::snmp
