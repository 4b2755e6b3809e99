#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

#include "tests/bench/interlock_rig.hpp"

namespace busbar::bench {

using interlock::Answer;
using interlock::Frame;
using interlock::Request;
using interlock::Status;

interlock_link::interlock_link(const std::string& path) : fd_(connect_to(path)) {
  thread_ = std::thread([this] { listen(); });
}

interlock_link::~interlock_link() {
  ::shutdown(fd_, SHUT_RDWR);
  thread_.join();
  ::close(fd_);
}

void interlock_link::listen() {
  interlock::frame_reader reader;
  std::vector<char> chunk(65536);
  for (ssize_t got = 1; got > 0;) {
    got = ::recv(fd_, chunk.data(), chunk.size(), 0);
    const std::int64_t at_ns = now_ns();
    if (got > 0) reader.feed({chunk.data(), static_cast<std::size_t>(got)});
    while (const auto body = reader.next()) {
      Frame frame;
      if (!frame.ParseFromString(*body)) give_up("an unreadable frame of the interlock");
      const std::lock_guard guard(mutex_);
      if (frame.has_answer()) answers_[frame.answer().request_id()] = frame.answer();
      if (frame.has_status()) {
        for (const interlock::DeviceStatus& each : frame.status().devices()) {
          auto& known = intervals_[each.name()];
          const std::int64_t interval = std::int64_t{each.poll_ms()} * ms;
          if (known.empty() || known.back().second != interval) known.emplace_back(at_ns, interval);
        }
        last_ = std::make_shared<const Status>(std::move(*frame.mutable_status()));
        last_at_ns_ = at_ns;
        ++heard_;
      }
      changed_.notify_all();
    }
  }
  const std::lock_guard guard(mutex_);
  gone_ = true;
  changed_.notify_all();
}

Answer interlock_link::ask(Request request) {
  std::unique_lock guard(mutex_);
  const std::uint64_t id = ++id_;
  request.set_request_id(id);
  const std::string bytes = interlock::encode_frame(request);
  if (::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL) < 0) give_up("the interlock is gone");
  changed_.wait(guard, [this, id] { return gone_ || answers_.contains(id); });
  if (!answers_.contains(id)) give_up("the interlock has closed its socket");
  Answer answer = answers_[id];
  answers_.erase(id);
  return answer;
}

bool interlock_link::within(std::int64_t limit_ns, const std::function<bool(const Status&)>& wanted) {
  const auto end = std::chrono::steady_clock::time_point(std::chrono::nanoseconds(now_ns() + limit_ns));
  std::unique_lock guard(mutex_);
  for (;;) {
    const std::uint64_t seen = heard_;
    if (last_ != nullptr && wanted(*last_)) return true;
    if (gone_) give_up("the interlock has closed its socket");
    if (!changed_.wait_until(guard, end, [this, seen] { return gone_ || heard_ != seen; })) return false;
  }
}

std::int64_t interlock_link::until(const std::string& what,
                                   const std::function<bool(const Status&)>& wanted) {
  if (!within(120'000 * ms, wanted)) {
    give_up("waited in vain for " + what + ": " + last().ShortDebugString().substr(0, 3000));
  }
  const std::lock_guard guard(mutex_);
  return last_at_ns_;
}

Status interlock_link::last() const {
  const std::lock_guard guard(mutex_);
  return last_ == nullptr ? Status{} : *last_;
}

std::int64_t interlock_link::interval_ns(const std::string& device, std::int64_t before_ns) const {
  const std::lock_guard guard(mutex_);
  const auto found = intervals_.find(device);
  if (found == intervals_.end()) give_up("the interlock says no interval of " + device);
  std::int64_t interval = found->second.front().second;
  for (const auto& [at, length] : found->second) {
    if (at <= before_ns) interval = length;
  }
  return interval;
}

}  // namespace busbar::bench
