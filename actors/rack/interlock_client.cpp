#include "actors/rack/interlock_client.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "actors/rack/interlock_wire.hpp"

namespace busbar::rack {
namespace {

using clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto request_deadline = 5s;
constexpr auto backoff_first = 50ms;
constexpr auto backoff_last = 1000ms;
constexpr std::size_t open_requests_max = 256;

using completion = std::function<void(absl::Status, const interlock::Answer*)>;

struct open_request {
  clock::time_point deadline;
  interlock::Request message;
  bool sent = false;
  completion reply;
};

absl::Status status_of(const interlock::Answer& answer) {
  if (answer.code() == 0) return absl::OkStatus();
  return {static_cast<absl::StatusCode>(answer.code()), answer.message()};
}

int connect_to(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) return -1;
  std::memcpy(address.sun_path, path.data(), path.size());
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return -1;
  // A Unix socket connects at once or not at all (EAGAIN: the listener's queue is full).
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) return fd;
  ::close(fd);
  return -1;
}

}  // namespace

class interlock_client::loop {
 public:
  loop(std::string path, observer watcher)
      : path_(std::move(path)),
        watcher_(std::move(watcher)),
        wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    thread_ = std::thread([this] { run(); });
  }

  ~loop() {
    {
      const std::lock_guard guard(mutex_);
      stop_ = true;
    }
    wake();
    thread_.join();
    ::close(wake_);
  }

  loop(const loop&) = delete;
  loop& operator=(const loop&) = delete;

  void ask(interlock::Request message, completion reply) {
    bool full = false;
    {
      const std::lock_guard guard(mutex_);
      full = inbox_.size() >= open_requests_max;
      if (!full)
        inbox_.push_back({clock::now() + request_deadline, std::move(message), false, std::move(reply)});
    }
    if (full) return reply(absl::ResourceExhaustedError("too many requests wait for the interlock"), nullptr);
    wake();
  }

  std::shared_ptr<const interlock_view> view() const {
    const std::lock_guard guard(mutex_);
    auto made = std::make_shared<interlock_view>();
    made->status = status_;
    if (status_ == nullptr) return made;
    made->age = std::chrono::duration_cast<std::chrono::milliseconds>(clock::now() - heard_);
    made->life = made->age < interlock_dead_after ? interlock_life::alive : interlock_life::dead;
    return made;
  }

  void observe(observer watcher) {
    const std::lock_guard guard(mutex_);
    watcher_ = std::move(watcher);
  }

 private:
  void wake() const {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(wake_, &one, sizeof(one));
  }

  void run() {
    while (take_inbox()) {
      if (fd_ < 0 && clock::now() >= retry_at_) connect();
      fill_output();
      wait();
      expire();
      watch_life();
    }
    disconnect();
    for (auto& [id, request] : open_)
      request.reply(absl::CancelledError("the interlock's client stops"), nullptr);
    open_.clear();
  }

  // False when it is time to stop.
  bool take_inbox() {
    const std::lock_guard guard(mutex_);
    for (open_request& request : inbox_) {
      request.message.set_request_id(++last_id_);
      open_.emplace(last_id_, std::move(request));
    }
    inbox_.clear();
    return !stop_;
  }

  void connect() {
    fd_ = connect_to(path_);
    if (fd_ < 0) {
      retry_at_ = clock::now() + backoff_;
      backoff_ = std::min<std::chrono::milliseconds>(backoff_ * 2, backoff_last);
      return;
    }
    reader_ = {};
    output_.clear();
  }

  void disconnect() {
    if (fd_ < 0) return;
    ::close(fd_);
    fd_ = -1;
    retry_at_ = clock::now() + backoff_;
    backoff_ = std::min<std::chrono::milliseconds>(backoff_ * 2, backoff_last);
    // What was sent may or may not have been done; every request may be repeated, so the caller decides.
    std::vector<completion> lost;
    std::erase_if(open_, [&lost](auto& entry) {
      if (!entry.second.sent) return false;
      lost.push_back(std::move(entry.second.reply));
      return true;
    });
    for (completion& reply : lost)
      reply(absl::UnavailableError("the interlock closed the connection"), nullptr);
  }

  void fill_output() {
    if (fd_ < 0) return;
    for (auto& [id, request] : open_) {
      if (request.sent || output_.size() > interlock::frame_max) continue;
      output_ += interlock::encode_frame(request.message);
      request.message.Clear();  // secrets stay no longer than needed
      request.message.set_request_id(id);
      request.sent = true;
    }
  }

  void wait() {
    pollfd fds[2] = {{wake_, POLLIN, 0},
                     {fd_, static_cast<short>(output_.empty() ? POLLIN : POLLIN | POLLOUT), 0}};
    const auto until = next_due();
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - clock::now());
    ::poll(fds, fd_ < 0 ? 1 : 2, static_cast<int>(std::max<std::int64_t>(0, left.count())));
    std::uint64_t drained = 0;
    [[maybe_unused]] const auto got = ::read(wake_, &drained, sizeof(drained));
    if (fd_ < 0) return;
    if ((fds[1].revents & POLLOUT) != 0 && !send_some()) return disconnect();
    if ((fds[1].revents & (POLLIN | POLLHUP | POLLERR)) != 0 && !receive()) disconnect();
  }

  clock::time_point next_due() const {
    auto due = clock::now() + 1000ms;
    if (fd_ < 0) due = std::min(due, retry_at_);
    for (const auto& [id, request] : open_) due = std::min(due, request.deadline);
    if (told_ == interlock_life::alive) due = std::min(due, heard_ + interlock_dead_after);
    return due;
  }

  bool send_some() {
    const ssize_t sent = ::send(fd_, output_.data(), output_.size(), MSG_NOSIGNAL);
    if (sent < 0) return errno == EAGAIN || errno == EINTR;
    output_.erase(0, static_cast<std::size_t>(sent));
    return true;
  }

  bool receive() {
    char bytes[16384];
    const ssize_t got = ::recv(fd_, bytes, sizeof(bytes), 0);
    if (got == 0) return false;
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    reader_.feed({bytes, static_cast<std::size_t>(got)});
    while (auto body = reader_.next()) {
      interlock::Frame frame;
      if (!frame.ParseFromString(*body)) return false;
      if (frame.has_status()) hear(std::move(*frame.mutable_status()));
      if (frame.has_answer()) finish(frame.answer());
    }
    return !reader_.broken();
  }

  void hear(interlock::Status status) {
    backoff_ = backoff_first;
    {
      const std::lock_guard guard(mutex_);
      status_ = std::make_shared<const interlock::Status>(std::move(status));
      heard_ = clock::now();
    }
    tell(interlock_life::alive);
  }

  void finish(const interlock::Answer& answer) {
    const auto found = open_.find(answer.request_id());
    if (found == open_.end()) return;  // answered after its deadline
    const completion reply = std::move(found->second.reply);
    open_.erase(found);
    reply(status_of(answer), &answer);
  }

  void expire() {
    const auto now = clock::now();
    std::vector<completion> late;
    std::erase_if(open_, [&late, now](auto& entry) {
      if (entry.second.deadline > now) return false;
      late.push_back(std::move(entry.second.reply));
      return true;
    });
    for (completion& reply : late)
      reply(absl::DeadlineExceededError("the interlock did not answer"), nullptr);
  }

  void watch_life() {
    if (told_ == interlock_life::alive && clock::now() - heard_ >= interlock_dead_after)
      tell(interlock_life::dead);
  }

  void tell(interlock_life life) {
    told_ = life;
    observer watcher;
    {
      const std::lock_guard guard(mutex_);
      watcher = watcher_;
    }
    if (watcher) watcher(view());
  }

  const std::string path_;
  mutable std::mutex mutex_;  // guards the next five
  observer watcher_;
  std::vector<open_request> inbox_;
  std::shared_ptr<const interlock::Status> status_;
  clock::time_point heard_;  // written by the thread under the mutex, read by it without
  bool stop_ = false;

  // The thread's own.
  int wake_;
  int fd_ = -1;
  interlock::frame_reader reader_;
  std::string output_;
  std::map<std::uint64_t, open_request> open_;
  std::uint64_t last_id_ = 0;
  clock::time_point retry_at_ = clock::now();
  std::chrono::milliseconds backoff_ = backoff_first;
  interlock_life told_ = interlock_life::never_heard;
  std::thread thread_;
};

interlock_client::interlock_client(std::string socket_path, observer watcher)
    : loop_(std::make_unique<loop>(std::move(socket_path), std::move(watcher))) {}

interlock_client::~interlock_client() = default;

void interlock_client::arm(const interlock::ArmingRecord& record, done reply) {
  interlock::Request request;
  *request.mutable_arm()->mutable_record() = record;
  loop_->ask(std::move(request), [reply = std::move(reply)](absl::Status status, const interlock::Answer*) {
    reply(std::move(status));
  });
}

void interlock_client::announce_blind_window(std::string device, std::chrono::milliseconds length,
                                             done reply) {
  interlock::Request request;
  request.mutable_blind_window()->set_device(std::move(device));
  request.mutable_blind_window()->set_length_ms(
      static_cast<std::uint64_t>(std::max<std::int64_t>(0, length.count())));
  loop_->ask(std::move(request), [reply = std::move(reply)](absl::Status status, const interlock::Answer*) {
    reply(std::move(status));
  });
}

void interlock_client::read_latches(std::uint64_t after,
                                    std::function<void(absl::Status, std::vector<interlock::Latch>)> reply) {
  interlock::Request request;
  request.mutable_read_latches()->set_after_number(after);
  request.mutable_read_latches()->set_all_kinds(true);
  loop_->ask(std::move(request),
             [reply = std::move(reply)](absl::Status status, const interlock::Answer* answer) {
               std::vector<interlock::Latch> latches;
               if (answer != nullptr) latches.assign(answer->latches().begin(), answer->latches().end());
               reply(std::move(status), std::move(latches));
             });
}

std::shared_ptr<const interlock_view> interlock_client::last() const {
  return loop_->view();
}

void interlock_client::observe(observer watcher) {
  loop_->observe(std::move(watcher));
}

}  // namespace busbar::rack
