#include "actors/devices/modbus/tcp_loop.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <limits>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <unordered_map>
#include <utility>

namespace busbar::devices::modbus {
namespace {

constexpr std::int64_t never_ns = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t connect_timeout_ns = 2'000'000'000;
constexpr std::size_t receive_bytes = 4096;

std::int64_t steady_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

absl::StatusOr<sockaddr_in> parse_address(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  sockaddr_in address{};
  address.sin_family = AF_INET;
  std::uint16_t port = 0;
  if (colon != std::string::npos) {
    const char* const end = text.data() + text.size();
    const auto parsed = std::from_chars(text.data() + colon + 1, end, port);
    if (parsed.ec != std::errc() || parsed.ptr != end) port = 0;
  }
  if (port == 0 || ::inet_pton(AF_INET, text.substr(0, colon).c_str(), &address.sin_addr) != 1) {
    return absl::InvalidArgumentError(fmt::format("'{}' is no address of the form 10.0.0.7:502", text));
  }
  address.sin_port = htons(port);
  return address;
}

struct job {
  std::size_t device = 0;
  request wanted;
  priority urgency = priority::telemetry;
  std::int64_t deadline_ns = 0;
  words_callback reply;
};

}  // namespace

class tcp_loop::impl : public std::enable_shared_from_this<tcp_loop::impl> {
 public:
  impl() : epoll_(::epoll_create1(EPOLL_CLOEXEC)), bell_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    epoll_event wanted{};
    wanted.events = EPOLLIN;
    wanted.data.u64 = bell_id;
    ::epoll_ctl(epoll_, EPOLL_CTL_ADD, bell_, &wanted);
  }
  ~impl() {
    ::close(bell_);
    ::close(epoll_);
  }

  void start() {
    thread_ = std::thread([this] { run(); });
  }
  void stop() {
    {
      const std::lock_guard<std::mutex> held(mutex_);
      ending_ = true;
    }
    ring();
    thread_.join();
  }

  std::size_t add(std::string name, const sockaddr_in& address, exchange_options options) {
    const std::lock_guard<std::mutex> held(mutex_);
    const std::size_t id = next_device_++;
    added_.push_back(std::make_unique<device>(id, std::move(name), address, options));
    ring();
    return id;
  }
  void submit(job wanted) {
    {
      const std::lock_guard<std::mutex> held(mutex_);
      if (!ending_) {
        jobs_.push_back(std::move(wanted));
        if (jobs_.size() == 1) ring();
        return;
      }
    }
    wanted.reply(absl::CancelledError("the Modbus loop has ended"));
  }
  exchange_counts counts(std::size_t id) {
    const std::lock_guard<std::mutex> held(mutex_);
    const auto found = published_.find(id);
    return found == published_.end() ? exchange_counts() : found->second;
  }
  void forget(std::size_t id) {
    const std::lock_guard<std::mutex> held(mutex_);
    dropped_.push_back(id);
    ring();
  }

 private:
  static constexpr std::uint64_t bell_id = ~0ULL;

  struct device {
    device(std::size_t given, std::string name, const sockaddr_in& where, exchange_options options)
        : id(given), talk(std::move(name), options), address(where) {}
    std::size_t id;
    exchange talk;
    sockaddr_in address;
    int socket = -1;
    bool open = false;
    std::int64_t connect_by_ns = never_ns;
    std::int64_t wakes_at_ns = never_ns;
    std::string unsent;
    std::unordered_map<std::uint64_t, words_callback> replies;
  };

  void ring() const {
    const std::uint64_t one = 1;
    // A full counter rings as well.
    if (::write(bell_, &one, sizeof one) < 0 && errno != EAGAIN) return;
  }

  void run();
  bool take_work(std::int64_t now_ns);
  void take_jobs(std::vector<job>& jobs, std::int64_t now_ns);
  void cancel_all();
  void on_socket(device& one, std::uint32_t events);
  void receive(device& one, std::int64_t now_ns);
  void connect(device& one, std::int64_t now_ns);
  void flush(device& one, std::int64_t now_ns);
  void lose(device& one, std::string_view why, std::int64_t now_ns);
  void close_socket(device& one);
  void watch(device& one, std::uint32_t events, int operation) const;
  void run_effects(device& one, exchange_effects& effects, std::int64_t now_ns);
  void run_effect(device& one, exchange_effect& effect, std::int64_t now_ns);
  void reschedule(device& one);
  void wake_due(std::int64_t now_ns);
  int wait_ms(std::int64_t now_ns) const;

  const int epoll_;
  const int bell_;
  std::thread thread_;

  std::mutex mutex_;  // guards what stands until the blank line
  bool ending_ = false;
  std::size_t next_device_ = 0;
  std::vector<std::unique_ptr<device>> added_;
  std::vector<std::size_t> dropped_;
  std::vector<job> jobs_;
  std::unordered_map<std::size_t, exchange_counts> published_;

  // the loop's thread alone
  std::unordered_map<std::size_t, std::unique_ptr<device>> devices_;
  std::set<std::pair<std::int64_t, std::size_t>> alarms_;
  std::uint64_t next_ticket_ = 1;
};

void tcp_loop::impl::run() {
  std::array<epoll_event, 64> events{};
  while (take_work(steady_ns())) {
    const int count =
        ::epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), wait_ms(steady_ns()));
    for (int at = 0; at < count; ++at) {
      const epoll_event& event = events[static_cast<std::size_t>(at)];
      if (event.data.u64 == bell_id) {
        std::uint64_t rung = 0;
        if (::read(bell_, &rung, sizeof rung) < 0) continue;
      } else if (const auto found = devices_.find(event.data.u64); found != devices_.end()) {
        on_socket(*found->second, event.events);
      }
    }
    wake_due(steady_ns());
  }
  cancel_all();
}

bool tcp_loop::impl::take_work(std::int64_t now_ns) {
  std::vector<std::unique_ptr<device>> added;
  std::vector<std::size_t> dropped;
  std::vector<job> jobs;
  {
    const std::lock_guard<std::mutex> held(mutex_);
    added.swap(added_);
    dropped.swap(dropped_);
    jobs.swap(jobs_);
    for (const auto& [id, one] : devices_) published_[id] = one->talk.counts();
    if (ending_) {
      jobs_ = std::move(jobs);  // cancel_all answers them
      return false;
    }
  }
  for (auto& one : added) devices_.emplace(one->id, std::move(one));
  take_jobs(jobs, now_ns);
  for (const std::size_t id : dropped) {
    const auto found = devices_.find(id);
    if (found == devices_.end()) continue;
    device& one = *found->second;
    alarms_.erase({one.wakes_at_ns, one.id});
    close_socket(one);
    for (auto& [ticket, reply] : one.replies) reply(absl::CancelledError("the device was given up"));
    devices_.erase(found);
  }
  return true;
}

void tcp_loop::impl::take_jobs(std::vector<job>& jobs, std::int64_t now_ns) {
  for (job& wanted : jobs) {
    const auto found = devices_.find(wanted.device);
    if (found == devices_.end()) {
      wanted.reply(absl::CancelledError("the device was given up"));
      continue;
    }
    device& one = *found->second;
    const std::uint64_t ticket = next_ticket_++;
    one.replies.emplace(ticket, std::move(wanted.reply));
    exchange_effects effects;
    one.talk.submit(ticket, std::move(wanted.wanted), wanted.urgency, wanted.deadline_ns, now_ns, effects);
    run_effects(one, effects, now_ns);
  }
}

void tcp_loop::impl::cancel_all() {
  for (auto& [id, one] : devices_) {
    close_socket(*one);
    for (auto& [ticket, reply] : one->replies) reply(absl::CancelledError("the Modbus loop has ended"));
  }
  devices_.clear();
  std::vector<job> jobs;
  {
    const std::lock_guard<std::mutex> held(mutex_);
    jobs.swap(jobs_);
  }
  for (job& one : jobs) one.reply(absl::CancelledError("the Modbus loop has ended"));
}

void tcp_loop::impl::on_socket(device& one, std::uint32_t events) {
  const std::int64_t now = steady_ns();
  if (!one.open) {
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(one.socket, SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) {
      lose(one, fmt::format("connect: {}", std::strerror(error)), now);
      return;
    }
    if ((events & EPOLLOUT) == 0) return;
    one.open = true;
    one.connect_by_ns = never_ns;
    watch(one, EPOLLIN, EPOLL_CTL_MOD);
    exchange_effects effects;
    one.talk.connected(now, effects);
    run_effects(one, effects, now);
    return;
  }
  if ((events & EPOLLOUT) != 0) flush(one, now);
  if (one.open && (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) receive(one, now);
}

void tcp_loop::impl::receive(device& one, std::int64_t now_ns) {
  std::array<char, receive_bytes> buffer{};
  const ssize_t count = ::recv(one.socket, buffer.data(), buffer.size(), 0);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count <= 0) {
    lose(one, count == 0 ? "closed the connection" : std::strerror(errno), now_ns);
    return;
  }
  exchange_effects effects;
  one.talk.received({buffer.data(), static_cast<std::size_t>(count)}, now_ns, effects);
  run_effects(one, effects, now_ns);
}

void tcp_loop::impl::connect(device& one, std::int64_t now_ns) {
  one.socket = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (one.socket < 0) {
    lose(one, fmt::format("socket: {}", std::strerror(errno)), now_ns);
    return;
  }
  const int yes = 1;
  ::setsockopt(one.socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  one.open = false;
  one.connect_by_ns = now_ns + connect_timeout_ns;
  watch(one, EPOLLOUT, EPOLL_CTL_ADD);
  const auto* address = reinterpret_cast<const sockaddr*>(&one.address);
  if (::connect(one.socket, address, sizeof one.address) != 0 && errno != EINPROGRESS) {
    lose(one, fmt::format("connect: {}", std::strerror(errno)), now_ns);
  }
}

void tcp_loop::impl::watch(device& one, std::uint32_t events, int operation) const {
  epoll_event wanted{};
  wanted.events = events;
  wanted.data.u64 = one.id;
  ::epoll_ctl(epoll_, operation, one.socket, &wanted);
}

void tcp_loop::impl::flush(device& one, std::int64_t now_ns) {
  while (!one.unsent.empty()) {
    const ssize_t count = ::send(one.socket, one.unsent.data(), one.unsent.size(), MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) {
      watch(one, EPOLLIN | EPOLLOUT, EPOLL_CTL_MOD);
      return;
    }
    if (count < 0) {
      lose(one, fmt::format("send: {}", std::strerror(errno)), now_ns);
      return;
    }
    one.unsent.erase(0, static_cast<std::size_t>(count));
    if (one.unsent.empty()) watch(one, EPOLLIN, EPOLL_CTL_MOD);
  }
}

void tcp_loop::impl::close_socket(device& one) {
  if (one.socket >= 0) ::close(one.socket);  // leaves epoll by itself
  one.socket = -1;
  one.open = false;
  one.connect_by_ns = never_ns;
  one.unsent.clear();
}

void tcp_loop::impl::lose(device& one, std::string_view why, std::int64_t now_ns) {
  close_socket(one);
  exchange_effects effects;
  one.talk.disconnected(why, now_ns, effects);
  run_effects(one, effects, now_ns);
}

void tcp_loop::impl::run_effects(device& one, exchange_effects& effects, std::int64_t now_ns) {
  for (exchange_effect& effect : effects) run_effect(one, effect, now_ns);
  reschedule(one);
}

void tcp_loop::impl::run_effect(device& one, exchange_effect& effect, std::int64_t now_ns) {
  if (auto* const bytes = std::get_if<send_bytes>(&effect)) {
    if (!one.open) return;
    one.unsent += bytes->bytes;
    flush(one, now_ns);
  } else if (auto* const answer = std::get_if<completed>(&effect)) {
    const auto found = one.replies.find(answer->ticket);
    if (found == one.replies.end()) return;
    const words_callback reply = std::move(found->second);
    one.replies.erase(found);
    reply(std::move(answer->result));
  } else if (std::holds_alternative<open_connection>(effect)) {
    connect(one, now_ns);
  } else {
    close_socket(one);
  }
}

void tcp_loop::impl::reschedule(device& one) {
  const std::int64_t next = std::min(one.talk.next_wake_ns(), one.connect_by_ns);
  if (next == one.wakes_at_ns) return;
  alarms_.erase({one.wakes_at_ns, one.id});
  one.wakes_at_ns = next;
  if (next != never_ns) alarms_.insert({next, one.id});
}

void tcp_loop::impl::wake_due(std::int64_t now_ns) {
  std::vector<std::size_t> due;
  for (const auto& [when, id] : alarms_) {
    if (when > now_ns) break;
    due.push_back(id);
  }
  for (const std::size_t id : due) {
    device& one = *devices_.at(id);
    if (now_ns >= one.connect_by_ns) {
      lose(one, "connect: no answer within 2 s", now_ns);
      continue;
    }
    exchange_effects effects;
    one.talk.wake(now_ns, effects);
    run_effects(one, effects, now_ns);
  }
}

int tcp_loop::impl::wait_ms(std::int64_t now_ns) const {
  if (alarms_.empty()) return 1000;
  const std::int64_t left = alarms_.begin()->first - now_ns;
  return left <= 0 ? 0 : static_cast<int>(std::min<std::int64_t>((left + 999'999) / 1'000'000, 1000));
}

namespace {

// The caller's handle. Gives the device up when the last copy goes.
class tcp_link final : public link {
 public:
  using owner = std::function<void(std::optional<job>)>;
  tcp_link(std::size_t id, owner submit, std::function<exchange_counts()> counts)
      : id_(id), submit_(std::move(submit)), counts_(std::move(counts)) {}
  ~tcp_link() override { submit_(std::nullopt); }
  tcp_link(const tcp_link&) = delete;
  tcp_link& operator=(const tcp_link&) = delete;

  void transact(request wanted, priority urgency, std::chrono::milliseconds deadline,
                words_callback reply) override {
    const std::int64_t by = steady_ns() + std::chrono::nanoseconds(deadline).count();
    submit_(job{id_, std::move(wanted), urgency, by, std::move(reply)});
  }
  exchange_counts counts() const override { return counts_(); }

 private:
  std::size_t id_;
  owner submit_;
  std::function<exchange_counts()> counts_;
};

}  // namespace

tcp_loop::tcp_loop() : impl_(std::make_shared<impl>()) {
  impl_->start();
}
tcp_loop::~tcp_loop() {
  impl_->stop();
}

absl::StatusOr<std::shared_ptr<link>> tcp_loop::open(const std::string& address, exchange_options options) {
  auto parsed = parse_address(address);
  if (!parsed.ok()) return parsed.status();
  const std::shared_ptr<impl> held = impl_;
  const std::size_t id = held->add(address, *parsed, options);
  auto submit = [held, id](std::optional<job> wanted) {
    if (wanted.has_value()) {
      held->submit(std::move(*wanted));
    } else {
      held->forget(id);
    }
  };
  return std::make_shared<tcp_link>(id, std::move(submit), [held, id] { return held->counts(id); });
}

}  // namespace busbar::devices::modbus
