// Who may call, and who is calling. gRPC 1.51 shows no peer uid, so our own listener accepts connections, decides by
// SO_PEERCRED, and hands the socket over; gRPC then calls the connection "fd:<number>", which peer_table maps back.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace busbar::rpc {

enum class role { viewer, op };  // op: viewer's rights, and may act

std::string_view name_of(role value);

struct caller {
  std::string name;  // "uid:1000", "cn:fleet"
  role rights = role::viewer;
  bool operator==(const caller&) const = default;
};

// Names of all groups of a user.
using group_source = std::function<std::vector<std::string>(uid_t)>;
// From the system's user database; may read files, called once a connection on the listener's thread.
std::vector<std::string> system_groups_of(uid_t uid);

// Root and the daemon's own user are operators; the groups busbar-operator and busbar-viewer give their roles; busbar-safety
// reads here (its acts go through the interlock's own socket). Anyone else: nothing, the connection is closed.
std::optional<caller> caller_of_uid(uid_t uid, uid_t own_uid, const group_source& groups);

// Roles of certificates on the TCP listener, by common name.
struct certificate_roles {
  std::vector<std::string> viewers;
  std::vector<std::string> operators;
};
std::optional<caller> caller_of_certificate(const std::string& common_name, const certificate_roles& roles);

// Maps a connection's number to its caller. A number that once stood for one user is never given to a connection of another:
// a call of a connection that has just ended can so never be taken for the user who comes next, in whatever order gRPC's
// threads and the listener run. Thread-safe.
class peer_table {
 public:
  // Takes socket over and returns the number (maybe a duplicate, with socket closed) under which the caller is known, or -1
  // (socket closed) when no number is left.
  int admit(int socket, const caller& who);
  // peer: what grpc::ServerContextBase::peer() gives.
  std::optional<caller> find(std::string_view peer) const;

 private:
  mutable std::mutex mutex_;
  std::map<int, caller, std::less<>> by_number_;
};

}  // namespace busbar::rpc
