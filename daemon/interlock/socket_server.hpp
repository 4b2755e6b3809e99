// The interlock's two Unix sockets. Who connects is decided by SO_PEERCRED, not by the file's mode.
// Everything is bounded: 16 clients a socket, one frame of input each, one unsent heartbeat each; a client
// that does not read misses heartbeats, then goes.
#pragma once

#include <absl/status/status.h>
#include <poll.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "actors/rack/interlock_wire.hpp"
#include "busbar/interlock/interlock.pb.h"

namespace busbar::interlock {

struct peer {
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups;
};

// Pure rules of admission.
bool admits_busbard(const peer& who, uid_t busbard);  // root and busbard's own user
bool admits_operator(const peer& who, uid_t busbard,
                     gid_t safety);  // root and group busbar-safety, never busbard's own user

class socket_server {
 public:
  using handler = std::function<void(std::uint64_t ticket, bool operator_socket, const peer& who,
                                     const Request& request)>;

  socket_server(uid_t busbard, gid_t safety, handler on_request);
  ~socket_server();
  socket_server(const socket_server&) = delete;
  socket_server& operator=(const socket_server&) = delete;

  absl::Status listen(const std::string& busbard_path, const std::string& operator_path);

  void add_to(std::vector<pollfd>* fds) const;
  // Accepts, reads, writes what is ready; calls the handler for each whole request.
  void turn();

  // Whether somebody connected since the last call: a newcomer gets its first heartbeat at once.
  bool take_newcomer() { return std::exchange(newcomer_, false); }

  // Answers the request a ticket stands for; a client that has gone is no error.
  void reply(std::uint64_t ticket, Answer answer);
  void broadcast(const Status& status);

 private:
  struct client {
    bool operator_socket = false;
    peer who;
    frame_reader reader;
    std::string output;
    bool heartbeat_waits = false;  // the last heartbeat has not left yet
    bool gone = false;
  };
  struct ticket_entry {
    int fd = -1;
    std::uint64_t request_id = 0;
  };

  void accept_from(int listener, bool operator_socket);
  void read_from(int fd, client& from);
  void write_to(int fd, client& to);
  void drop_gone();

  uid_t busbard_;
  gid_t safety_;
  handler on_request_;
  int busbard_listener_ = -1;
  int operator_listener_ = -1;
  std::vector<std::string> paths_;
  std::map<int, client> clients_;
  std::map<std::uint64_t, ticket_entry> tickets_;
  std::uint64_t last_ticket_ = 0;
  bool newcomer_ = false;
};

}  // namespace busbar::interlock
