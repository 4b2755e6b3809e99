#include "actors/rack/interlock_operator.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "actors/rack/interlock_wire.hpp"

namespace busbar::interlock {
namespace {

class connection {
 public:
  ~connection() {
    if (fd_ >= 0) ::close(fd_);
  }

  absl::Status open(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof(address.sun_path))
      return absl::InvalidArgumentError(path + ": too long for a socket");
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    fd_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const timeval limit{5, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    ::setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    if (::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0)
      return absl::OkStatus();
    if (errno == EACCES || errno == EPERM) {
      return absl::PermissionDeniedError(fmt::format(
          "{}: {}; it serves uid 0 and members of group busbar-safety", path, std::strerror(errno)));
    }
    return absl::UnavailableError(
        fmt::format("{}: {}; does busbar-interlock run?", path, std::strerror(errno)));
  }

  absl::Status send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return absl::UnavailableError("the interlock does not take the request");
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Status> heartbeat() {
    frame_reader reader;
    std::array<char, 4096> bytes{};
    for (;;) {
      if (const auto body = reader.next()) {
        Frame frame;
        if (!frame.ParseFromString(*body))
          return absl::DataLossError("the interlock answered something unreadable");
        if (frame.has_status()) return frame.status();
        continue;
      }
      const ssize_t got = ::recv(fd_, bytes.data(), bytes.size(), 0);
      if (got <= 0 || reader.broken())
        return absl::DeadlineExceededError("no heartbeat of the interlock came");
      reader.feed({bytes.data(), static_cast<std::size_t>(got)});
    }
  }

  // Heartbeats come in between; the answer is the first frame that is one.
  absl::Status answer(std::uint64_t request_id, Answer* into) {
    frame_reader reader;
    std::array<char, 4096> bytes{};
    for (int frames = 0; frames < 64;) {
      if (const auto body = reader.next()) {
        ++frames;
        Frame frame;
        if (!frame.ParseFromString(*body))
          return absl::DataLossError("the interlock answered something unreadable");
        if (!frame.has_answer() || frame.answer().request_id() != request_id) continue;
        *into = frame.answer();
        return absl::OkStatus();
      }
      const ssize_t got = ::recv(fd_, bytes.data(), bytes.size(), 0);
      if (got <= 0 || reader.broken()) break;
      reader.feed({bytes.data(), static_cast<std::size_t>(got)});
    }
    return absl::DeadlineExceededError("the interlock gave no answer; look at its log before asking again");
  }

 private:
  int fd_ = -1;
};

}  // namespace

absl::Status ask_operator(const std::string& operator_socket, Request request) {
  connection link;
  if (auto status = link.open(operator_socket); !status.ok()) return status;
  request.set_request_id(1);
  if (auto status = link.send(encode_frame(request)); !status.ok()) return status;
  Answer answer;
  if (auto status = link.answer(1, &answer); !status.ok()) return status;
  if (answer.code() == 0) return absl::OkStatus();
  return absl::Status(static_cast<absl::StatusCode>(answer.code()), answer.message());
}

absl::StatusOr<Status> read_status(const std::string& socket) {
  connection link;
  if (auto status = link.open(socket); !status.ok()) return status;
  return link.heartbeat();
}

}  // namespace busbar::interlock
