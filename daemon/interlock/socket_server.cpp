#include "daemon/interlock/socket_server.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>

#include "daemon/interlock/text.hpp"

namespace busbar::interlock {
namespace {

constexpr std::size_t clients_max = 16;            // of each socket
constexpr std::size_t output_max = 2 * frame_max;  // a client that lets so much lie is dropped
constexpr std::size_t groups_max = 256;

peer peer_of(int fd) {
  peer who;
  ucred credentials{};
  socklen_t size = sizeof(credentials);
  // Without credentials nobody is admitted: the all-ones uid is nobody's.
  who.uid = static_cast<uid_t>(-1);
  who.gid = static_cast<gid_t>(-1);
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) return who;
  who.uid = credentials.uid;
  who.gid = credentials.gid;
  std::vector<gid_t> groups(groups_max);
  size = static_cast<socklen_t>(groups.size() * sizeof(gid_t));
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &size) == 0) {
    groups.resize(size / sizeof(gid_t));
    who.groups = std::move(groups);
  }
  return who;
}

// One that a killed process left behind goes; one that is served, or that cannot be told from it, stays.
absl::Status remove_dead_socket(const std::string& path, const sockaddr_un& address) {
  struct stat found {};
  if (::lstat(path.c_str(), &found) != 0) {
    if (errno == ENOENT) return absl::OkStatus();
    return absl::UnavailableError(fmt::format("cannot look at {}: {}", path, std::strerror(errno)));
  }
  if (!S_ISSOCK(found.st_mode))
    return absl::FailedPreconditionError(path + " is no socket; it was left alone, nothing was started");
  const int probe = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (probe < 0) return absl::UnavailableError(std::strerror(errno));
  const bool served = ::connect(probe, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  const int error = served ? 0 : errno;
  ucred holder{};
  socklen_t size = sizeof(holder);
  const bool named = served && ::getsockopt(probe, SOL_SOCKET, SO_PEERCRED, &holder, &size) == 0;
  ::close(probe);
  if (error == ECONNREFUSED || error == ENOENT) {
    ::unlink(path.c_str());
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      fmt::format("{} is served by a living process ({}); nothing was started; stop that one first", path,
                  named    ? fmt::format("pid {}, uid {}", holder.pid, holder.uid)
                  : served ? "it does not say which"
                           : std::strerror(error)));
}

absl::Status listen_at(const std::string& path, int* listener) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path))
    return absl::InvalidArgumentError(path + " is too long for a Unix socket");
  std::memcpy(address.sun_path, path.data(), path.size());
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return absl::UnavailableError(std::strerror(errno));
  if (absl::Status status = remove_dead_socket(path, address); !status.ok()) {
    ::close(fd);
    return status;
  }
  const bool bound = ::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 &&
                     ::chmod(path.c_str(), 0666) == 0 && ::listen(fd, static_cast<int>(clients_max)) == 0;
  if (!bound) {
    const std::string why = std::strerror(errno);
    ::close(fd);
    return absl::UnavailableError(fmt::format("cannot listen at {}: {}", path, why));
  }
  *listener = fd;
  return absl::OkStatus();
}

}  // namespace

bool admits_busbard(const peer& who, uid_t busbard) {
  return who.uid == 0 || who.uid == busbard;
}

bool admits_operator(const peer& who, uid_t busbard, gid_t safety) {
  if (who.uid == 0) return true;
  if (who.uid == busbard || who.uid == static_cast<uid_t>(-1) || safety == static_cast<gid_t>(-1))
    return false;
  return who.gid == safety || std::find(who.groups.begin(), who.groups.end(), safety) != who.groups.end();
}

socket_server::socket_server(uid_t busbard, gid_t safety, handler on_request)
    : busbard_(busbard), safety_(safety), on_request_(std::move(on_request)) {}

socket_server::~socket_server() {
  for (const auto& [fd, each] : clients_) ::close(fd);
  for (const int fd : {busbard_listener_, operator_listener_}) {
    if (fd >= 0) ::close(fd);
  }
  for (const std::string& path : paths_) ::unlink(path.c_str());
}

absl::Status socket_server::listen(const std::string& busbard_path, const std::string& operator_path) {
  if (absl::Status status = listen_at(busbard_path, &busbard_listener_); !status.ok()) return status;
  paths_.push_back(busbard_path);
  if (absl::Status status = listen_at(operator_path, &operator_listener_); !status.ok()) return status;
  paths_.push_back(operator_path);
  return absl::OkStatus();
}

void socket_server::add_to(std::vector<pollfd>* fds) const {
  fds->push_back({busbard_listener_, POLLIN, 0});
  fds->push_back({operator_listener_, POLLIN, 0});
  for (const auto& [fd, each] : clients_) {
    fds->push_back({fd, static_cast<short>(each.output.empty() ? POLLIN : POLLIN | POLLOUT), 0});
  }
}

void socket_server::turn() {
  accept_from(busbard_listener_, false);
  accept_from(operator_listener_, true);
  for (auto& [fd, each] : clients_) {
    read_from(fd, each);
    if (!each.gone) write_to(fd, each);
  }
  drop_gone();
}

void socket_server::accept_from(int listener, bool operator_socket) {
  for (std::size_t taken = 0; taken < clients_max; ++taken) {
    const int fd = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) return;
    const auto present = std::count_if(clients_.begin(), clients_.end(), [operator_socket](const auto& each) {
      return each.second.operator_socket == operator_socket;
    });
    peer who = peer_of(fd);
    const bool admitted =
        operator_socket ? admits_operator(who, busbard_, safety_) : admits_busbard(who, busbard_);
    if (!admitted || static_cast<std::size_t>(present) >= clients_max) {
      ::close(fd);
      continue;
    }
    client& made = clients_[fd];
    made.operator_socket = operator_socket;
    made.who = std::move(who);
    newcomer_ = true;
  }
}

void socket_server::read_from(int fd, client& from) {
  char bytes[16384];
  const ssize_t got = ::recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
  if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) from.gone = true;
  if (got <= 0) return;
  from.reader.feed({bytes, static_cast<std::size_t>(got)});
  while (auto body = from.reader.next()) {
    Request request;
    if (!request.ParseFromString(*body)) {
      from.gone = true;
      return;
    }
    const std::uint64_t ticket = ++last_ticket_;
    tickets_[ticket] = {fd, request.request_id()};
    on_request_(ticket, from.operator_socket, from.who, request);
  }
  if (from.reader.broken()) from.gone = true;
}

void socket_server::write_to(int fd, client& to) {
  if (to.output.empty()) return;
  const ssize_t sent = ::send(fd, to.output.data(), to.output.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent < 0) {
    if (errno != EAGAIN && errno != EINTR) to.gone = true;
    return;
  }
  to.output.erase(0, static_cast<std::size_t>(sent));
  if (to.output.empty()) to.heartbeat_waits = false;
}

void socket_server::reply(std::uint64_t ticket, Answer answer) {
  const auto found = tickets_.find(ticket);
  if (found == tickets_.end()) return;
  const auto to = clients_.find(found->second.fd);
  answer.set_request_id(found->second.request_id);
  mend_texts(&answer);
  tickets_.erase(found);
  if (to == clients_.end()) return;
  Frame frame;
  *frame.mutable_answer() = std::move(answer);
  to->second.output += encode_frame(frame);
  if (to->second.output.size() > output_max) to->second.gone = true;
  write_to(to->first, to->second);
}

void socket_server::broadcast(const Status& status) {
  Frame frame;
  *frame.mutable_status() = status;
  mend_texts(&frame);
  const std::string bytes = encode_frame(frame);
  for (auto& [fd, each] : clients_) {
    if (each.heartbeat_waits || each.gone) continue;
    each.output += bytes;
    each.heartbeat_waits = true;
    write_to(fd, each);
  }
}

void socket_server::drop_gone() {
  for (auto each = clients_.begin(); each != clients_.end();) {
    if (!each->second.gone) {
      ++each;
      continue;
    }
    // Before the number is free again: an open ticket must not answer the next client of the same descriptor.
    std::erase_if(tickets_, [fd = each->first](const auto& entry) { return entry.second.fd == fd; });
    ::close(each->first);
    each = clients_.erase(each);
  }
}

}  // namespace busbar::interlock
