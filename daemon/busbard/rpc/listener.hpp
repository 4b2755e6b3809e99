// The daemon's Unix socket: a thread that accepts, asks the kernel who it is (SO_PEERCRED), and hands the connection on or
// closes it at once. A stale socket file is replaced; a live one (another daemon of that instance) is an error.
#pragma once

#include <absl/status/status.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>

#include "daemon/busbard/rpc/peers.hpp"

namespace busbar::rpc {

struct listener_options {
  std::string path;  // <run_dir>/<instance>/busbard.sock; mode 0660, group "busbar" when there is one
  uid_t own_uid = 0;
  group_source groups = system_groups_of;
};

class listener {
 public:
  // take gets a non-blocking socket, which it owns, and the caller; it runs on the listener's thread.
  using taker = std::function<void(int socket, const caller& who)>;

  listener(listener_options options, taker take);
  ~listener();
  listener(const listener&) = delete;
  listener& operator=(const listener&) = delete;

  // Binds and starts the thread.
  absl::Status start();
  // Ends the thread and removes the socket file. Safe to call twice.
  void stop();

 private:
  absl::Status bind_socket();
  void serve();
  void accept_one();

  const listener_options options_;
  const taker take_;
  int socket_ = -1;
  int wake_ = -1;
  std::thread thread_;
};

}  // namespace busbar::rpc
