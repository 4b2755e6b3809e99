// busbar-interlock as a program: real TLS, real files, kill -9.
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

namespace busbar::interlock {
namespace {

using namespace std::chrono_literals;
using test::https_tray;
using ::testing::HasSubstr;

constexpr auto patience = 60s;  // a bound on hanging, not a measure

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
Answer ask_as_operator(const std::string& path, const Request& request) {
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

Request reset_of(const std::string& device, const std::string& reason) {
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

  std::unique_ptr<process> start() {
    return std::make_unique<process>(
        std::vector<std::string>{INTERLOCK_PROGRAM, "--instance", "r01", "--run-dir", folder_ + "/run",
                                 "--state-dir", folder_ + "/state", "--key-file", folder_ + "/key"});
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

TEST_F(interlock_program, arms_opens_the_gate_and_says_what_a_trip_can_do) {
  https_tray tray;
  const auto running = start();
  watched_client client(socket("interlock"));
  ASSERT_TRUE(client.until([](const rack::interlock_view& view) { return view.status != nullptr; }));
  EXPECT_FALSE((*client).gate("r01/c01").allowed);
  ASSERT_TRUE(client.arm(record_of(1, {tray.device("r01/c01")})).ok());
  ASSERT_TRUE(client.until_gate("r01/c01", true)) << client.row("r01/c01").reason();
  const auto status = (*client).last()->status;
  EXPECT_EQ(status->trips(), Status::TRAYS);
  EXPECT_THAT(status->trips_text(),
              HasSubstr("trips: trays off; not with this record: shelves cut, valves closed"));
  EXPECT_TRUE(status->armed_rack());
  EXPECT_EQ(status->realtime() && status->memory_locked(), status->realtime_detail().empty());
  EXPECT_EQ(running->end(SIGTERM), 0);
  EXPECT_FALSE(std::filesystem::exists(socket("interlock")));
}

TEST_F(interlock_program, keeps_a_latch_through_kill_9_until_a_person_resets_it_dry_and_with_a_reason) {
  https_tray tray;
  auto running = start();
  watched_client client(socket("interlock"));
  ASSERT_TRUE(client.arm(record_of(1, {tray.device("r01/c01")})).ok());
  ASSERT_TRUE(client.until_gate("r01/c01", true)) << client.row("r01/c01").reason();
  tray.make_wet("1_Manifold");
  ASSERT_TRUE(client.until([](const rack::interlock_view& view) {
    return !view.status->latches().empty() && view.status->latches(0).durable();
  }));
  EXPECT_EQ(running->end(SIGKILL), -SIGKILL);
  tray.make_dry("1_Manifold");
  const std::int64_t before = (*client).last()->status->started_wall_ns();
  running = start();

  // The sealed record arms it again: nobody hands one over.
  ASSERT_TRUE(client.until([&client, before](const rack::interlock_view& view) {
    return view.status->started_wall_ns() != before && client.row("r01/c01").armed() &&
           client.row("r01/c01").latched();
  }));
  EXPECT_EQ((*client).gate("r01/c01").fault, "POWER_LEAK_LATCHED");
  const auto lines = client.latches(0);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0].number(), 1U);
  EXPECT_EQ(lines[0].detector(), "1_Manifold");

  if (::geteuid() == 0) {
    const Answer without = ask_as_operator(socket("operator"), reset_of("r01/c01", ""));
    EXPECT_EQ(without.code(), static_cast<int>(absl::StatusCode::kInvalidArgument)) << without.message();
    EXPECT_FALSE((*client).gate("r01/c01").allowed);
    const Answer with = reset_when_dry("r01/c01");
    EXPECT_EQ(with.code(), 0) << with.message();
    EXPECT_TRUE(client.until_gate("r01/c01", true)) << client.row("r01/c01").reason();
    ASSERT_EQ(client.latches(1).size(), 1U);
    EXPECT_EQ(client.latches(1)[0].principal(), "uid 0");
  } else {
    // The user who runs both is busbard's: the operator's socket does not let it in.
    EXPECT_EQ(ask_as_operator(socket("operator"), reset_of("r01/c01", "hose replaced")).code(), -1);
  }

  bool left_session_deleted = false;
  for (const http_request& request : tray.asked()) {
    left_session_deleted = left_session_deleted || request.method == "DELETE";
    const bool own_session = request.path.rfind("/redfish/v1/SessionService/Sessions", 0) == 0;
    const bool force_off = request.path == test::reset_path && request.body == R"({"ResetType":"ForceOff"})";
    EXPECT_TRUE(request.method == "GET" || own_session || force_off) << request.method << ' ' << request.path;
  }
  EXPECT_TRUE(left_session_deleted);
}

TEST_F(interlock_program, turns_off_the_tray_that_leaks_reads_it_off_and_leaves_the_other_alone) {
  https_tray wet;
  https_tray dry;
  const auto running = start();
  watched_client client(socket("interlock"));
  ASSERT_TRUE(client.arm(record_of(1, {wet.device("r01/c01"), dry.device("r01/c02")})).ok());
  ASSERT_TRUE(client.until_gate("r01/c01", true));
  ASSERT_TRUE(client.until_gate("r01/c02", true));
  wet.make_wet("0_ColdPlate");
  ASSERT_TRUE(client.until([](const rack::interlock_view& view) {
    return view.status->open_trips_size() == 1 && view.status->open_trips(0).closed();
  }));
  const auto posts = [](const https_tray& tray) {
    const auto asked = tray.asked();
    return std::count_if(asked.begin(), asked.end(),
                         [](const http_request& each) { return each.path == test::reset_path; });
  };
  EXPECT_EQ(posts(wet), 1);
  EXPECT_EQ(posts(dry), 0);
  EXPECT_TRUE((*client).gate("r01/c02").allowed);
}

TEST_F(interlock_program, carries_a_trip_on_that_a_kill_9_interrupted) {
  https_tray tray;
  auto running = start();
  watched_client client(socket("interlock"));
  ASSERT_TRUE(client.arm(record_of(1, {tray.device("r01/c01")})).ok());
  ASSERT_TRUE(client.until_gate("r01/c01", true));
  tray.ignore_off(true);
  tray.make_wet("0_ColdPlate");
  ASSERT_TRUE(client.until([](const rack::interlock_view& view) {
    return view.status->open_trips_size() == 1 && !view.status->open_trips(0).closed();
  }));
  running->end(SIGKILL);
  tray.ignore_off(false);
  running = start();
  ASSERT_TRUE(client.until([](const rack::interlock_view& view) {
    return view.status->open_trips_size() == 1 && view.status->open_trips(0).closed();
  }));
}

TEST_F(interlock_program, refuses_a_wet_reset) {
  if (::geteuid() != 0) GTEST_SKIP() << "the operator's socket needs root here";
  https_tray tray;
  const auto running = start();
  watched_client client(socket("interlock"));
  ASSERT_TRUE(client.arm(record_of(1, {tray.device("r01/c01")})).ok());
  tray.make_wet("0_Manifold");
  ASSERT_TRUE(client.until([](const rack::interlock_view& view) { return !view.status->latches().empty(); }));
  const Answer answer = ask_as_operator(socket("operator"), reset_of("r01/c01", "looks fine to me"));
  EXPECT_EQ(answer.code(), static_cast<int>(absl::StatusCode::kFailedPrecondition)) << answer.message();
}

TEST_F(interlock_program, sends_no_password_to_a_device_with_another_certificate) {
  https_tray tray;
  const auto running = start();
  watched_client client(socket("interlock"));
  ArmedDevice device = tray.device("r01/c01");
  device.set_pin_sha256(std::string(64, '0'));
  ASSERT_TRUE(client.arm(record_of(1, {device})).ok());
  ASSERT_TRUE(client.until([&client](const rack::interlock_view&) {
    return client.row("r01/c01").reason().find("CERTIFICATE_CHANGED") != std::string::npos;
  }));
  EXPECT_TRUE(tray.asked().empty());
  EXPECT_FALSE((*client).gate("r01/c01").allowed);
}

TEST_F(interlock_program, a_device_that_hangs_loses_its_own_gate_and_delays_no_other) {
  https_tray good;
  https_tray bad;
  const auto running = start();
  watched_client client(socket("interlock"));
  ASSERT_TRUE(client.arm(record_of(1, {good.device("r01/c01"), bad.device("r01/c02")})).ok());
  ASSERT_TRUE(client.until_gate("r01/c01", true));
  ASSERT_TRUE(client.until_gate("r01/c02", true));
  bad.stall(true);
  ASSERT_TRUE(client.until_gate("r01/c02", false));
  EXPECT_TRUE(client.until_gate("r01/c01", true));
  bad.stall(false);
  EXPECT_TRUE(client.until_gate("r01/c02", true)) << client.row("r01/c02").reason();
}

TEST_F(interlock_program, refuses_roll_back_and_removal_over_busbards_socket) {
  https_tray tray;
  const auto running = start();
  watched_client client(socket("interlock"));
  ASSERT_TRUE(client.arm(record_of(5, {tray.device("r01/c01")})).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(client.arm(record_of(4, {tray.device("r01/c01")}))));
  EXPECT_TRUE(absl::IsFailedPrecondition(client.arm(record_of(6, {}))));
  EXPECT_TRUE(client.arm(record_of(5, {tray.device("r01/c01")})).ok());
  EXPECT_TRUE(client.arm(record_of(6, {tray.device("r01/c01"), tray.device("r01/c02")})).ok());
}

TEST_F(interlock_program, shows_a_blind_window_and_no_open_gate_in_it) {
  https_tray tray;
  const auto running = start();
  watched_client client(socket("interlock"));
  ASSERT_TRUE(client.arm(record_of(1, {tray.device("r01/c01")})).ok());
  ASSERT_TRUE(client.until_gate("r01/c01", true));
  EXPECT_TRUE(absl::IsInvalidArgument(client.blind("r01/c01", 11min)));
  ASSERT_TRUE(client.blind("r01/c01", 5min).ok());
  ASSERT_TRUE(client.until([&client](const rack::interlock_view&) { return client.row("r01/c01").blind(); }));
  EXPECT_FALSE((*client).gate("r01/c01").allowed);
  ASSERT_TRUE(client.blind("r01/c01", 0ms).ok());
  EXPECT_TRUE(client.until_gate("r01/c01", true));
}

TEST_F(interlock_program, is_told_dead_by_its_client_once_it_is_not_heard) {
  auto running = start();
  watched_client client(socket("interlock"));
  ASSERT_TRUE(client.until(
      [](const rack::interlock_view& view) { return view.life == rack::interlock_life::alive; }));
  running->end(SIGKILL);
  EXPECT_TRUE(
      client.until([](const rack::interlock_view& view) { return view.life == rack::interlock_life::dead; }));
  running = start();
  EXPECT_TRUE(client.until(
      [](const rack::interlock_view& view) { return view.life == rack::interlock_life::alive; }));
}

TEST_F(interlock_program, runs_once_on_a_state_folder) {
  const auto running = start();
  watched_client client(socket("interlock"));
  ASSERT_TRUE(client.until([](const rack::interlock_view& view) { return view.status != nullptr; }));
  EXPECT_EQ(start()->wait(), 5);
  EXPECT_EQ(running->end(SIGTERM), 0);
}

TEST_F(interlock_program, does_not_start_without_a_key) {
  std::filesystem::remove(folder_ + "/key");
  EXPECT_EQ(start()->wait(), 1);
  EXPECT_EQ(process({INTERLOCK_PROGRAM, "--instance", "r01"}).wait(), 2);
  EXPECT_EQ(process({INTERLOCK_PROGRAM, "key", "new", folder_ + "/key"}).wait(), 0);
  EXPECT_EQ(process({INTERLOCK_PROGRAM, "key", "new", folder_ + "/key"}).wait(), 5);
}

}  // namespace
}  // namespace busbar::interlock
