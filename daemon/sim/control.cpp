#include "daemon/sim/control.hpp"

#include <absl/status/status.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace busbar::sim {

namespace {

constexpr int look_ms = 200;  // how often a waiting thread looks whether it should end
constexpr std::size_t longest_line = 1 << 20;

bool address_of(const std::string& path, sockaddr_un& address) {
  address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    return false;
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return true;
}

bool send_all(int to, const std::string& text) {
  std::size_t sent = 0;
  while (sent < text.size()) {
    const ssize_t part = send(to, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (part <= 0) {
      return false;
    }
    sent += static_cast<std::size_t>(part);
  }
  return true;
}

}  // namespace

absl::Status control_server::start() {
  sockaddr_un address;
  if (!address_of(path_, address)) {
    return absl::InvalidArgumentError("the socket's path is too long: " + path_);
  }
  unlink(path_.c_str());
  listener_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (listener_ < 0 || bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      chmod(path_.c_str(), 0600) != 0 || listen(listener_, 8) != 0) {
    return absl::UnavailableError("cannot listen on " + path_ + ": " + std::strerror(errno));
  }
  thread_ = std::thread([this] { run(); });
  return absl::OkStatus();
}

void control_server::stop() {
  stopping_ = true;
  if (thread_.joinable()) {
    thread_.join();
  }
  if (listener_ >= 0) {
    close(listener_);
    listener_ = -1;
    unlink(path_.c_str());
  }
}

void control_server::run() {
  while (!stopping_) {
    pollfd ready{listener_, POLLIN, 0};
    if (poll(&ready, 1, look_ms) <= 0) {
      continue;
    }
    const int client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client >= 0) {
      serve(client);
      close(client);
    }
  }
}

void control_server::serve(int client) {
  std::string text;
  std::array<char, 4096> chunk{};
  while (!stopping_ && text.find('\n') == std::string::npos && text.size() < longest_line) {
    pollfd ready{client, POLLIN, 0};
    if (poll(&ready, 1, look_ms) <= 0) {
      continue;
    }
    const ssize_t part = recv(client, chunk.data(), chunk.size(), 0);
    if (part <= 0) {
      return;
    }
    text.append(chunk.data(), static_cast<std::size_t>(part));
  }
  send_all(client, answer_(text.substr(0, text.find('\n'))) + "\n");
}

absl::StatusOr<std::string> ask_simulator(const std::string& socket_path, const std::string& line) {
  sockaddr_un address;
  if (!address_of(socket_path, address)) {
    return absl::InvalidArgumentError("the socket's path is too long: " + socket_path);
  }
  const int server = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (server < 0 || connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    const std::string why = std::strerror(errno);
    if (server >= 0) {
      close(server);
    }
    return absl::UnavailableError("no simulator answers on " + socket_path + ": " + why);
  }
  std::string text;
  if (send_all(server, line + "\n")) {
    std::array<char, 65536> chunk{};
    for (ssize_t part = 1; part > 0;) {
      part = recv(server, chunk.data(), chunk.size(), 0);
      text.append(chunk.data(), part > 0 ? static_cast<std::size_t>(part) : 0);
    }
  }
  close(server);
  if (text.empty() || text.back() != '\n') {
    return absl::UnavailableError("the simulator on " + socket_path + " ended before it answered");
  }
  text.pop_back();
  return text;
}

}  // namespace busbar::sim
