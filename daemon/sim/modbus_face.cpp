#include "daemon/sim/modbus_face.hpp"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "actors/devices/modbus/register_map.hpp"

namespace busbar::sim {

namespace {

namespace wire = devices::modbus;

constexpr std::uint8_t illegal_function = 1;
constexpr std::uint8_t illegal_address = 2;
constexpr std::uint8_t illegal_value = 3;
constexpr std::uint8_t device_failure = 4;
constexpr std::uint16_t no_number = 0xffff;
constexpr std::uint16_t no_signed_number = 0x8000;

void put_word(std::string& bytes, std::uint16_t word) {
  bytes.push_back(static_cast<char>(word >> 8));
  bytes.push_back(static_cast<char>(word & 0xff));
}

wire::frame refusal(const wire::frame& came, std::uint8_t code) {
  return {came.transaction, came.unit, {static_cast<char>(came.pdu[0] | '\x80'), static_cast<char>(code)}};
}

bool is_signed(const wire::map_point& point) {
  return point.type == wire::value_type::s16;
}

// One word a point: what this face serves.
std::uint16_t raw_of(const wire::map_point& point, std::optional<double> value) {
  if (!value) return is_signed(point) ? no_signed_number : no_number;
  const double raw = std::round((*value - point.offset) / point.scale);
  const double least = is_signed(point) ? -32767 : 0;
  const double most = is_signed(point) ? 32767 : point.type == wire::value_type::flags ? 65535 : 65534;
  const auto whole = static_cast<std::int32_t>(std::clamp(raw, least, most));
  return static_cast<std::uint16_t>(whole & 0xffff);
}

double value_of(const wire::map_point& point, std::uint16_t raw) {
  const double number = is_signed(point) ? static_cast<double>(static_cast<std::int16_t>(raw)) : raw;
  return point.offset + point.scale * number;
}

}  // namespace

class modbus_face::impl : public std::enable_shared_from_this<modbus_face::impl> {
 public:
  impl(model_loop& loop, modbus_backend backend) : loop_(loop), backend_(std::move(backend)) {}
  ~impl() {
    for (const auto& [socket, unused] : peers_) ::close(socket);
    for (const int each : {listener_, epoll_, bell_}) {
      if (each >= 0) ::close(each);
    }
  }

  absl::Status listen(const std::string& address, std::uint16_t port, std::string_view map);
  std::uint16_t port() const { return port_; }
  void start() {
    thread_ = std::thread([this] { run(); });
  }
  void stop() {
    if (!thread_.joinable()) return;
    {
      const std::lock_guard held(mutex_);
      ending_ = true;
    }
    ring();
    thread_.join();
  }

 private:
  struct peer {
    std::uint64_t life = 0;
    std::string name;
    wire::frame_reader reader;
  };
  struct reply {
    int socket = -1;
    std::uint64_t life = 0;  // of the connection: a descriptor is used again
    std::string bytes;
  };

  void ring() const {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t rung = ::write(bell_, &one, sizeof one);
  }
  void watch(int descriptor) const {
    epoll_event wanted{};
    wanted.events = EPOLLIN;
    wanted.data.fd = descriptor;
    ::epoll_ctl(epoll_, EPOLL_CTL_ADD, descriptor, &wanted);
  }
  void run();
  void accept_all();
  void receive(int socket);
  void drop(int socket) {
    ::close(socket);
    peers_.erase(socket);
  }
  bool send_answers();
  // on the model loop
  void answer(int socket, std::uint64_t life, const wire::frame& came, const std::string& from);
  wire::frame reply_to(const wire::frame& came, const std::string& from);
  wire::frame read(const wire::frame& came, const wire::request& asked);
  wire::frame write(const wire::frame& came, const wire::request& asked, const std::string& from);
  const wire::map_point* at(wire::register_table table, std::uint32_t address) const;
  void hand_back(reply ready) {
    {
      const std::lock_guard held(mutex_);
      ready_.push_back(std::move(ready));
    }
    ring();
  }

  model_loop& loop_;
  const modbus_backend backend_;
  wire::register_map map_;
  int listener_ = -1;
  int epoll_ = -1;
  int bell_ = -1;
  std::uint16_t port_ = 0;
  std::uint64_t next_life_ = 1;
  std::map<int, peer> peers_;  // the thread's alone
  std::mutex mutex_;           // guards the next two
  std::vector<reply> ready_;
  bool ending_ = false;
  std::thread thread_;
};

absl::Status modbus_face::impl::listen(const std::string& address, std::uint16_t port, std::string_view map) {
  const auto text = wire::shipped_map(map);
  if (!text) return absl::NotFoundError("there is no register map " + std::string(map));
  auto parsed = wire::parse_register_map(*text, map);
  if (!parsed.ok()) return parsed.status();
  map_ = *std::move(parsed);
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  const int yes = 1;
  ::setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in here{};
  here.sin_family = AF_INET;
  here.sin_port = htons(port);
  socklen_t size = sizeof here;
  if (::inet_pton(AF_INET, address.c_str(), &here.sin_addr) != 1 ||
      ::bind(listener_, reinterpret_cast<const sockaddr*>(&here), sizeof here) != 0 ||
      ::listen(listener_, 64) != 0 ||
      ::getsockname(listener_, reinterpret_cast<sockaddr*>(&here), &size) != 0) {
    return absl::UnavailableError("cannot listen for Modbus on " + address + ":" + std::to_string(port));
  }
  port_ = ntohs(here.sin_port);
  epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
  bell_ = ::eventfd(0, EFD_CLOEXEC);
  watch(listener_);
  watch(bell_);
  return absl::OkStatus();
}

void modbus_face::impl::run() {
  std::array<epoll_event, 64> events{};
  while (true) {
    const int count = ::epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), -1);
    for (int each = 0; each < count; ++each) {
      const int descriptor = events[static_cast<std::size_t>(each)].data.fd;
      if (descriptor == bell_) {
        std::uint64_t rung = 0;
        [[maybe_unused]] const ssize_t got = ::read(bell_, &rung, sizeof rung);
      } else if (descriptor == listener_) {
        accept_all();
      } else {
        receive(descriptor);
      }
    }
    if (!send_answers()) return;
  }
}

bool modbus_face::impl::send_answers() {
  std::vector<reply> out;
  {
    const std::lock_guard held(mutex_);
    if (ending_) return false;
    out.swap(ready_);
  }
  for (const reply& each : out) {
    const auto found = peers_.find(each.socket);
    if (found == peers_.end() || found->second.life != each.life) continue;
    // Replies are small and the peer reads them: a buffer that is full belongs to one who does not.
    if (::send(each.socket, each.bytes.data(), each.bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
      drop(each.socket);
    }
  }
  return true;
}

void modbus_face::impl::accept_all() {
  while (true) {
    sockaddr_in from{};
    socklen_t size = sizeof from;
    const int socket =
        ::accept4(listener_, reinterpret_cast<sockaddr*>(&from), &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (socket < 0) return;
    const int yes = 1;
    ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    std::array<char, INET_ADDRSTRLEN> text{};
    ::inet_ntop(AF_INET, &from.sin_addr, text.data(), text.size());
    peers_[socket] = {
        next_life_++, std::string(text.data()) + ":" + std::to_string(ntohs(from.sin_port)), {}};
    watch(socket);
  }
}

void modbus_face::impl::receive(int socket) {
  std::array<char, 4096> buffer{};
  const ssize_t count = ::recv(socket, buffer.data(), buffer.size(), 0);
  if (count <= 0) return drop(socket);
  peer& from = peers_[socket];
  from.reader.feed({buffer.data(), static_cast<std::size_t>(count)});
  while (auto came = from.reader.next()) {
    loop_.post([self = shared_from_this(), socket, life = from.life, frame = *std::move(came),
                name = from.name] { self->answer(socket, life, frame, name); });
  }
  if (from.reader.broken()) drop(socket);
}

void modbus_face::impl::answer(int socket, std::uint64_t life, const wire::frame& came,
                               const std::string& from) {
  if (backend_.lost()) return;
  const auto broken = backend_.exception();
  reply made{socket, life, wire::encode(broken ? refusal(came, *broken) : reply_to(came, from))};
  const instant late = backend_.delay();
  if (late.count() <= 0) return hand_back(std::move(made));
  loop_.at(monotonic_now() + late, [self = shared_from_this(), made] { self->hand_back(made); });
}

wire::frame modbus_face::impl::reply_to(const wire::frame& came, const std::string& from) {
  if (came.pdu.empty()) return refusal({came.transaction, came.unit, std::string(1, '\0')}, illegal_function);
  const auto asked = wire::read_request(came);
  if (!asked) {
    const auto code = static_cast<std::uint8_t>(came.pdu[0]);
    const bool known = code == 3 || code == 4 || code == 6 || code == 16;
    return refusal(came, known ? illegal_value : illegal_function);
  }
  return asked->writes() ? write(came, *asked, from) : read(came, *asked);
}

const wire::map_point* modbus_face::impl::at(wire::register_table table, std::uint32_t address) const {
  const auto found =
      std::find_if(map_.points.begin(), map_.points.end(), [table, address](const wire::map_point& each) {
        return each.table == table && each.address == address;
      });
  return found == map_.points.end() ? nullptr : &*found;
}

// Registers between those of the map read as zero; beyond its ends there is nothing.
wire::frame modbus_face::impl::read(const wire::frame& came, const wire::request& asked) {
  const auto table =
      asked.what == wire::function::read_input ? wire::register_table::input : wire::register_table::holding;
  std::uint32_t end = 0;
  for (const wire::map_point& each : map_.points) {
    if (each.table == table) end = std::max(end, std::uint32_t{each.address} + 1U);
  }
  if (asked.address + std::uint32_t{asked.count} > end) return refusal(came, illegal_address);
  wire::frame made{came.transaction, came.unit, std::string(1, came.pdu[0])};
  made.pdu.push_back(static_cast<char>(asked.count * 2));
  for (std::uint32_t each = asked.address; each < asked.address + std::uint32_t{asked.count}; ++each) {
    const wire::map_point* const point = at(table, each);
    put_word(made.pdu, point == nullptr ? std::uint16_t{0} : raw_of(*point, backend_.read(point->name)));
  }
  return made;
}

wire::frame modbus_face::impl::write(const wire::frame& came, const wire::request& asked,
                                     const std::string& from) {
  for (std::size_t each = 0; each < asked.values.size(); ++each) {
    const wire::map_point* const point =
        at(wire::register_table::holding, asked.address + static_cast<std::uint32_t>(each));
    if (point == nullptr || !point->writable) return refusal(came, illegal_address);
    const double value = value_of(*point, asked.values[each]);
    if ((point->min && value < *point->min - 1e-9) || (point->max && value > *point->max + 1e-9))
      return refusal(came, illegal_value);
  }
  for (std::size_t each = 0; each < asked.values.size(); ++each) {
    const wire::map_point& point =
        *at(wire::register_table::holding, asked.address + static_cast<std::uint32_t>(each));
    const absl::Status done = backend_.write(point.name, value_of(point, asked.values[each]), from);
    if (!done.ok()) {
      return refusal(came, done.code() == absl::StatusCode::kOutOfRange ? illegal_value : device_failure);
    }
  }
  return {came.transaction, came.unit, came.pdu.substr(0, 5)};
}

modbus_face::modbus_face(model_loop& loop, modbus_backend backend)
    : impl_(std::make_shared<impl>(loop, std::move(backend))) {}
modbus_face::~modbus_face() {
  stop();
}
absl::Status modbus_face::listen(const std::string& address, std::uint16_t port, std::string_view map) {
  return impl_->listen(address, port, map);
}
std::uint16_t modbus_face::port() const {
  return impl_->port();
}
void modbus_face::start() {
  impl_->start();
}
void modbus_face::stop() {
  impl_->stop();
}

}  // namespace busbar::sim
