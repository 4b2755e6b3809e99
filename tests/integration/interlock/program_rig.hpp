// busbar-interlock as a process, its two clients, and folders of its own for each test.
#pragma once

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <future>
#include <mutex>

#include "actors/rack/interlock_client.hpp"
#include "actors/rack/interlock_wire.hpp"
#include "daemon/interlock/sealed_file.hpp"
#include "tests/integration/interlock/https_tray.hpp"

extern char** environ;  // NOLINT

namespace busbar::interlock::test {

using namespace std::chrono_literals;

inline constexpr auto patience = 60s;  // a bound on hanging, not a measure

class process {
 public:
  explicit process(std::vector<std::string> arguments) {
    std::vector<char*> argv;
    for (std::string& each : arguments) argv.push_back(each.data());
    argv.push_back(nullptr);
    if (::posix_spawn(&pid_, argv[0], nullptr, nullptr, argv.data(), environ) != 0) pid_ = -1;
  }
  ~process() {
    if (pid_ > 0) end(SIGKILL);
  }
  process(const process&) = delete;
  process& operator=(const process&) = delete;

  // The exit status, or minus the signal.
  int end(int signal) {
    ::kill(pid_, signal);
    return wait();
  }
  int wait() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

 private:
  pid_t pid_ = -1;
};

// A client that waits for a view instead of sleeping.
class watched_client {
 public:
  explicit watched_client(const std::string& path)
      : client_(path, [this](std::shared_ptr<const rack::interlock_view>) {
          const std::lock_guard guard(mutex_);
          ++heard_;
          changed_.notify_all();
        }) {}

  bool until(const std::function<bool(const rack::interlock_view&)>& wanted) {
    const auto deadline = std::chrono::steady_clock::now() + patience;
    std::unique_lock guard(mutex_);
    for (;;) {
      const auto seen = heard_;
      const auto view = client_.last();
      if (view->status != nullptr && wanted(*view)) return true;
      if (!changed_.wait_until(guard, deadline, [this, seen] { return heard_ != seen; })) return false;
    }
  }

  bool until_gate(const std::string& device, bool open) {
    return until([&device, open](const rack::interlock_view& view) {
      return judge_gate(view, device).allowed == open;
    });
  }

  absl::Status arm(const ArmingRecord& record) {
    std::promise<absl::Status> answered;
    client_.arm(record, [&answered](absl::Status status) { answered.set_value(std::move(status)); });
    return answered.get_future().get();
  }

  absl::Status blind(const std::string& device, std::chrono::milliseconds length) {
    std::promise<absl::Status> answered;
    client_.announce_blind_window(
        device, length, [&answered](absl::Status status) { answered.set_value(std::move(status)); });
    return answered.get_future().get();
  }

  std::vector<Latch> latches(std::uint64_t after) {
    std::promise<std::vector<Latch>> answered;
    client_.read_latches(after, [&answered](const absl::Status&, std::vector<Latch> lines) {
      answered.set_value(std::move(lines));
    });
    return answered.get_future().get();
  }

  rack::interlock_client& operator*() { return client_; }
  DeviceStatus row(const std::string& device) const {
    const auto view = client_.last();
    for (const DeviceStatus& each : view->status->devices()) {
      if (each.name() == device) return each;
    }
    return {};
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t heard_ = 0;
  rack::interlock_client client_;  // last: its thread ends before the rest goes
};

// A person at the operator's socket: one request, blocking. code -1: not let in.
inline Answer ask_as_operator(const std::string& path, const Request& request) {
  Answer refused;
  refused.set_code(-1);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) {
    const std::string bytes = encode_frame(request);
    ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    frame_reader reader;
    char chunk[4096];
    for (ssize_t got = ::recv(fd, chunk, sizeof(chunk), 0); got > 0;
         got = ::recv(fd, chunk, sizeof(chunk), 0)) {
      reader.feed({chunk, static_cast<std::size_t>(got)});
      while (auto body = reader.next()) {
        Frame frame;
        if (frame.ParseFromString(*body) && frame.has_answer()) {
          ::close(fd);
          return frame.answer();
        }
      }
    }
  }
  ::close(fd);
  return refused;
}

inline Request reset_of(const std::string& device, const std::string& reason) {
  Request request;
  request.mutable_reset()->set_device(device);
  request.mutable_reset()->set_reason(reason);
  return request;
}

class interlock_program : public ::testing::Test {
 protected:
  interlock_program() {
    std::string pattern = (std::filesystem::temp_directory_path() / "interlock-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    EXPECT_TRUE(make_key_file(folder_ + "/key").ok());
  }
  ~interlock_program() override { std::filesystem::remove_all(folder_); }

  std::unique_ptr<process> start(const std::string& state = "/state") {
    return std::make_unique<process>(
        std::vector<std::string>{INTERLOCK_PROGRAM, "--instance", "r01", "--run-dir", folder_ + "/run",
                                 "--state-dir", folder_ + state, "--key-file", folder_ + "/key"});
  }
  std::string socket(const std::string& name) const { return folder_ + "/run/r01/" + name + ".sock"; }

  // Until the tray has been dry for as long as the record asks for; every answer is the program's own.
  Answer reset_when_dry(const std::string& device) const {
    Answer last;
    const auto deadline = std::chrono::steady_clock::now() + patience;
    do {
      last = ask_as_operator(socket("operator"), reset_of(device, "hose replaced, pressure held"));
    } while (last.code() == static_cast<int>(absl::StatusCode::kFailedPrecondition) &&
             std::chrono::steady_clock::now() < deadline);
    return last;
  }

  ArmingRecord record_of(std::uint64_t generation, const std::vector<ArmedDevice>& devices) const {
    ArmingRecord record;
    record.set_rack("r01");
    record.set_generation(generation);
    for (const ArmedDevice& device : devices) *record.add_devices() = device;
    record.mutable_limits()->set_reset_dry_s(1);
    return record;
  }

  std::string folder_;
};

}  // namespace busbar::interlock::test
