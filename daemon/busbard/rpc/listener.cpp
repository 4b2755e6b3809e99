#include "daemon/busbard/rpc/listener.hpp"

#include <fmt/format.h>
#include <grp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "actors/core/log.hpp"

namespace busbar::rpc {
namespace {

constexpr int backlog = 64;
constexpr int exhausted_wait_ms = 50;  // out of file numbers: others must end first

absl::Status system_error(std::string_view what, const std::string& path) {
  return absl::UnavailableError(fmt::format("{} {}: {}", what, path, std::strerror(errno)));
}

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  return address;
}

// Whether somebody listens there.
bool answers(const std::string& path) {
  const int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (probe < 0) return false;
  const sockaddr_un address = address_of(path);
  const int result = connect(probe, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  const bool live = result == 0 || errno == EAGAIN || errno == EINPROGRESS;
  close(probe);
  return live;
}

}  // namespace

listener::listener(listener_options options, taker take) : options_(std::move(options)), take_(std::move(take)) {}

listener::~listener() { stop(); }

absl::Status listener::bind_socket() {
  const std::string& path = options_.path;
  if (path.size() >= sizeof(sockaddr_un::sun_path)) {
    return absl::InvalidArgumentError(fmt::format("socket path {} is longer than the system takes", path));
  }
  if (answers(path)) return absl::AlreadyExistsError(fmt::format("another daemon serves {}", path));
  if (unlink(path.c_str()) != 0 && errno != ENOENT) return system_error("cannot remove the stale socket", path);
  socket_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (socket_ < 0) return system_error("cannot make a socket for", path);
  const sockaddr_un address = address_of(path);
  if (bind(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return system_error("cannot bind", path);
  }
  // Before listen(): nobody can connect while the mode is still the umask's.
  if (chmod(path.c_str(), 0660) != 0) return system_error("cannot set the mode of", path);
  if (const group* own = getgrnam("busbar"); own != nullptr) {
    if (chown(path.c_str(), static_cast<uid_t>(-1), own->gr_gid) != 0) {
      core::log_warning("socket_group_not_set", {{"path", path}, {"error", std::strerror(errno)}});
    }
  }
  if (listen(socket_, backlog) != 0) return system_error("cannot listen on", path);
  return absl::OkStatus();
}

absl::Status listener::start() {
  if (absl::Status status = bind_socket(); !status.ok()) {
    if (socket_ >= 0) close(std::exchange(socket_, -1));
    return status;
  }
  wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake_ < 0) return system_error("cannot make an event for", options_.path);
  thread_ = std::thread([this] { serve(); });
  return absl::OkStatus();
}

void listener::stop() {
  if (thread_.joinable()) {
    eventfd_write(wake_, 1);
    thread_.join();
  }
  if (wake_ >= 0) close(std::exchange(wake_, -1));
  if (socket_ >= 0) {
    close(std::exchange(socket_, -1));
    unlink(options_.path.c_str());
  }
}

void listener::serve() {
  while (true) {
    pollfd waits[] = {{socket_, POLLIN, 0}, {wake_, POLLIN, 0}};
    if (poll(waits, 2, -1) < 0 && errno != EINTR) {
      core::log_error("listener_failed", {{"path", options_.path}, {"error", std::strerror(errno)}});
      return;
    }
    if (waits[1].revents != 0) return;
    if (waits[0].revents != 0) accept_one();
  }
}

void listener::accept_one() {
  const int peer = accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (peer < 0) {
    if (errno == EMFILE || errno == ENFILE || errno == ENOMEM) {
      core::log_warning("connection_refused", {{"error", std::strerror(errno)}});
      pollfd wait{wake_, POLLIN, 0};
      poll(&wait, 1, exhausted_wait_ms);
    }
    return;
  }
  ucred who{};
  socklen_t size = sizeof who;
  if (getsockopt(peer, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0) {
    close(peer);
    return;
  }
  const std::optional<caller> admitted = caller_of_uid(who.uid, options_.own_uid, options_.groups);
  if (!admitted.has_value()) {
    core::log_warning("connection_refused", {{"uid", who.uid}, {"pid", who.pid}, {"reason", "in no group of busbar"}});
    close(peer);
    return;
  }
  take_(peer, *admitted);
}

}  // namespace busbar::rpc
