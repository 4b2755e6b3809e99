#include "tests/support/modbus_server.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <queue>
#include <thread>
#include <utility>
#include <vector>

namespace busbar::test {
namespace {

using devices::modbus::frame;

std::int64_t steady_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void put_word(std::string& bytes, std::uint16_t word) {
  bytes.push_back(static_cast<char>(word >> 8));
  bytes.push_back(static_cast<char>(word & 0xff));
}

}  // namespace

std::uint16_t register_of(std::uint16_t address) {
  return static_cast<std::uint16_t>(address * 40503U ^ 0x5a5aU);
}

frame honest_reply(const frame& came) {
  frame reply{came.transaction, came.unit, {}};
  const auto asked = devices::modbus::read_request(came);
  if (!asked.has_value()) {
    reply.pdu = {static_cast<char>(came.pdu[0] | '\x80'), '\x01'};
    return reply;
  }
  reply.pdu.push_back(came.pdu[0]);
  if (asked->writes()) {
    reply.pdu = came.pdu.substr(0, 5);
    return reply;
  }
  reply.pdu.push_back(static_cast<char>(asked->count * 2));
  for (std::uint16_t at = 0; at < asked->count; ++at) {
    put_word(reply.pdu, register_of(static_cast<std::uint16_t>(asked->address + at)));
  }
  return reply;
}

class modbus_server::impl {
 public:
  explicit impl(behaviour answers) : answers_(std::move(answers)) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    sockaddr_in here{};
    here.sin_family = AF_INET;
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ::bind(listener_, reinterpret_cast<const sockaddr*>(&here), sizeof here);
    ::listen(listener_, 128);
    socklen_t size = sizeof here;
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&here), &size);
    port_ = ntohs(here.sin_port);
    epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
    bell_ = ::eventfd(0, EFD_CLOEXEC);
    watch(listener_);
    watch(bell_);
    thread_ = std::thread([this] { run(); });
  }
  ~impl() {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t rung = ::write(bell_, &one, sizeof one);
    thread_.join();
    for (const auto& [socket, reader] : peers_) ::close(socket);
    ::close(listener_);
    ::close(bell_);
    ::close(epoll_);
  }
  std::uint16_t port() const { return port_; }

 private:
  struct pending {
    std::int64_t due_ns;
    std::uint64_t order;
    int socket;
    std::uint64_t life;  // of the connection: a descriptor is used again
    std::string bytes;
    bool operator>(const pending& other) const {
      return std::pair(due_ns, order) > std::pair(other.due_ns, other.order);
    }
  };
  struct peer {
    std::uint64_t life = 0;
    devices::modbus::frame_reader reader;
  };

  void watch(int descriptor) const {
    epoll_event wanted{};
    wanted.events = EPOLLIN;
    wanted.data.fd = descriptor;
    ::epoll_ctl(epoll_, EPOLL_CTL_ADD, descriptor, &wanted);
  }

  void run() {
    std::array<epoll_event, 64> events{};
    for (;;) {
      const int count = ::epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), wait_ms());
      for (int at = 0; at < count; ++at) {
        const int descriptor = events[static_cast<std::size_t>(at)].data.fd;
        if (descriptor == bell_) return;
        if (descriptor == listener_) {
          accept_all();
        } else {
          receive(descriptor);
        }
      }
      send_due();
    }
  }

  int wait_ms() const {
    if (later_.empty()) return 1000;
    const std::int64_t left = later_.top().due_ns - steady_ns();
    return left <= 0 ? 0 : static_cast<int>(left / 1'000'000 + 1);
  }

  void accept_all() {
    for (;;) {
      const int socket = ::accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (socket < 0) return;
      const int yes = 1;
      ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
      peers_[socket] = {next_life_++, {}};
      watch(socket);
    }
  }

  void drop(int socket) {
    ::close(socket);
    peers_.erase(socket);
  }

  void receive(int socket) {
    std::array<char, 4096> buffer{};
    const ssize_t count = ::recv(socket, buffer.data(), buffer.size(), 0);
    if (count <= 0) return drop(socket);
    peer& from = peers_[socket];
    from.reader.feed({buffer.data(), static_cast<std::size_t>(count)});
    while (auto came = from.reader.next()) {
      modbus_answer answer = answers_(*came);
      if (answer.hang_up) return drop(socket);
      if (!answer.bytes.has_value()) continue;
      if (answer.delay_ns <= 0) {
        put(socket, *answer.bytes);
      } else {
        later_.push(
            {steady_ns() + answer.delay_ns, next_order_++, socket, from.life, std::move(*answer.bytes)});
      }
    }
  }

  // Replies are small and the peer reads them: a socket buffer never fills here.
  static void put(int socket, const std::string& bytes) {
    [[maybe_unused]] const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }

  void send_due() {
    while (!later_.empty() && later_.top().due_ns <= steady_ns()) {
      const pending one = later_.top();
      later_.pop();
      const auto found = peers_.find(one.socket);
      if (found != peers_.end() && found->second.life == one.life) put(one.socket, one.bytes);
    }
  }

  behaviour answers_;
  int listener_ = -1;
  int epoll_ = -1;
  int bell_ = -1;
  std::uint16_t port_ = 0;
  std::uint64_t next_life_ = 1;
  std::uint64_t next_order_ = 0;
  std::map<int, peer> peers_;
  std::priority_queue<pending, std::vector<pending>, std::greater<>> later_;
  std::thread thread_;
};

modbus_server::modbus_server(behaviour answers) : impl_(std::make_unique<impl>(std::move(answers))) {}
modbus_server::~modbus_server() = default;

std::string modbus_server::address() const {
  return fmt::format("127.0.0.1:{}", impl_->port());
}

}  // namespace busbar::test
