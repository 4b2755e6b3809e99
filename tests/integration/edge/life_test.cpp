// The whole life of a daemon in a process of its own, over a test rack.
#include "daemon/busbard/life.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include <fstream>
#include <iterator>

#include "tests/integration/edge/edge_fixture.hpp"

namespace busbar::test {
namespace {

class life : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "busbar-life-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    config_.instance = "r01";
    config_.run_dir = folder_ / "run";
    config_.state_dir = folder_ / "state";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // Runs in the child only; the parent must not have made threads of gRPC before.
  pid_t start(const char* log_name, const daemon::rack_factory& factory) {
    const std::string log = (folder_ / log_name).string();
    const pid_t child = fork();
    if (child == 0) {
      const int file = open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
      dup2(file, STDERR_FILENO);
      daemon::block_signals();
      _exit(static_cast<int>(daemon::serve(config_, limits_, factory)));
    }
    return child;
  }

  std::string log_of(const char* log_name) const {
    std::ifstream file(folder_ / log_name);
    return std::string((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  }

  // Until the daemon has logged event; false when it ended before.
  bool wait_for_event(pid_t child, const char* log_name, const std::string& event) {
    while (log_of(log_name).find("event=" + event) == std::string::npos) {
      siginfo_t seen{};
      if (waitid(P_PID, static_cast<id_t>(child), &seen, WEXITED | WNOHANG | WNOWAIT) == 0 && seen.si_pid == child) return false;
      usleep(5'000);
    }
    return true;
  }

  static int exit_of(pid_t child) {
    int status = 0;
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status)) return -1;
    return WEXITSTATUS(status);
  }

  static absl::StatusOr<std::unique_ptr<daemon::rack_daemon>> make(const manifest::daemon_config&) {
    return std::unique_ptr<daemon::rack_daemon>(std::make_unique<test_rack>());
  }

  std::filesystem::path folder_;
  manifest::daemon_config config_;
  daemon::life_options limits_;
};

TEST_F(life, starts_serves_and_stops_in_order) {
  const pid_t child = start("log", &make);
  ASSERT_TRUE(wait_for_event(child, "log", "ready")) << log_of("log");
  kill(child, SIGTERM);
  EXPECT_EQ(exit_of(child), 0) << log_of("log");
  const std::string log = log_of("log");
  std::size_t place = 0;
  for (const char* event : {"event=starting", "event=rack_wired", "event=edge_serving", "event=ready", "event=stopping",
                            "step=admission", "step=streams", "step=operations", "step=devices", "step=store", "event=stopped"}) {
    const std::size_t found = log.find(event, place);
    ASSERT_NE(found, std::string::npos) << event << " in its order in\n" << log;
    place = found;
  }
  EXPECT_FALSE(std::filesystem::exists(config_.run_dir / "r01" / "busbard.sock"));
}

TEST_F(life, a_second_daemon_of_the_instance_is_refused) {
  const pid_t first = start("first", &make);
  ASSERT_TRUE(wait_for_event(first, "first", "ready")) << log_of("first");
  const pid_t second = start("second", &make);
  EXPECT_EQ(exit_of(second), 5) << log_of("second");
  EXPECT_NE(log_of("second").find("another busbard"), std::string::npos);
  kill(first, SIGTERM);
  EXPECT_EQ(exit_of(first), 0);
}

TEST_F(life, a_second_daemon_on_the_state_folder_is_told_which_process_holds_it) {
  const pid_t first = start("first", &make);
  ASSERT_TRUE(wait_for_event(first, "first", "ready")) << log_of("first");
  config_.run_dir = folder_ / "other_run";
  const pid_t second = start("second", [](const manifest::daemon_config&) -> absl::StatusOr<std::unique_ptr<daemon::rack_daemon>> {
    return absl::InternalError("the store was opened all the same");
  });
  EXPECT_EQ(exit_of(second), 5) << log_of("second");
  for (const std::string& word : {"process " + std::to_string(first), std::string("instance r01"), config_.state_dir.string()})
    EXPECT_NE(log_of("second").find(word), std::string::npos) << word << " in " << log_of("second");
  kill(first, SIGTERM);
  EXPECT_EQ(exit_of(first), 0);
  const pid_t third = start("third", &make);
  EXPECT_TRUE(wait_for_event(third, "third", "ready")) << "a lock goes with its process: " << log_of("third");
  kill(third, SIGTERM);
  EXPECT_EQ(exit_of(third), 0);
}

TEST_F(life, a_state_folder_that_was_open_to_others_is_closed_with_all_in_it) {
  namespace fs = std::filesystem;
  fs::create_directories(config_.state_dir / "store" / "deep");
  std::ofstream(config_.state_dir / "store" / "deep" / "file") << "kept";
  for (const auto& entry : fs::recursive_directory_iterator(config_.state_dir))
    fs::permissions(entry.path(), fs::is_directory(entry) ? fs::perms(0755) : fs::perms(0644));
  fs::permissions(config_.state_dir, fs::perms(0755));
  const pid_t child = start("log", &make);
  ASSERT_TRUE(wait_for_event(child, "log", "ready")) << log_of("log");
  const auto open_to_others = [](const fs::path& path) {
    return (fs::status(path).permissions() & (fs::perms::group_all | fs::perms::others_all)) != fs::perms::none;
  };
  EXPECT_FALSE(open_to_others(config_.state_dir));
  std::size_t looked_at = 0;
  for (const auto& entry : fs::recursive_directory_iterator(config_.state_dir)) {
    EXPECT_FALSE(open_to_others(entry.path())) << entry.path();
    ++looked_at;
  }
  EXPECT_GE(looked_at, 3U);
  EXPECT_NE(fs::status(config_.run_dir / "r01").permissions() & fs::perms::others_exec, fs::perms::none)
      << "the sockets' folder is to be passed through";
  kill(child, SIGTERM);
  EXPECT_EQ(exit_of(child), 0);
}

TEST_F(life, a_socket_left_by_a_killed_daemon_is_replaced) {
  const pid_t first = start("first", &make);
  ASSERT_TRUE(wait_for_event(first, "first", "ready")) << log_of("first");
  kill(first, SIGKILL);
  EXPECT_EQ(exit_of(first), -1);
  ASSERT_TRUE(std::filesystem::exists(config_.run_dir / "r01" / "busbard.sock"));
  const pid_t second = start("second", &make);
  EXPECT_TRUE(wait_for_event(second, "second", "ready")) << log_of("second");
  kill(second, SIGTERM);
  EXPECT_EQ(exit_of(second), 0);
}

TEST_F(life, a_rack_that_cannot_start_is_told_and_ends_it) {
  const pid_t child = start("log", [](const manifest::daemon_config&) -> absl::StatusOr<std::unique_ptr<daemon::rack_daemon>> {
    return absl::FailedPreconditionError("the store is of a newer release");
  });
  EXPECT_EQ(exit_of(child), 5);
  EXPECT_NE(log_of("log").find("the store is of a newer release"), std::string::npos);
}

// A rack whose devices never stop: the step is given up by name, the later steps are done all the same.
class stuck_rack : public daemon::rack_daemon {
 public:
  std::shared_ptr<core::snapshot_hub> hub() const override { return inner_.hub(); }
  core::event_source events() const override { return inner_.events(); }
  void submit(std::shared_ptr<const core::command> what, core::answer_ptr answer) override {
    inner_.submit(std::move(what), std::move(answer));
  }
  std::vector<std::string> degraded() const override { return {"a reason"}; }
  bool round_trip(std::chrono::milliseconds limit) override { return inner_.round_trip(limit); }
  bool stop_operations(std::chrono::milliseconds limit) override { return inner_.stop_operations(limit); }
  bool stop_devices(std::chrono::milliseconds) override { return false; }
  bool stop_store(std::chrono::milliseconds limit) override { return inner_.stop_store(limit); }

 private:
  test_rack inner_;
};

TEST_F(life, a_step_of_the_stop_that_hangs_is_given_up_by_name) {
  const pid_t child = start("log", [](const manifest::daemon_config&) -> absl::StatusOr<std::unique_ptr<daemon::rack_daemon>> {
    return std::unique_ptr<daemon::rack_daemon>(std::make_unique<stuck_rack>());
  });
  ASSERT_TRUE(wait_for_event(child, "log", "ready"));
  kill(child, SIGINT);
  EXPECT_EQ(exit_of(child), 6);
  const std::string log = log_of("log");
  EXPECT_NE(log.find("event=stop_step_given_up step=devices"), std::string::npos) << log;
  EXPECT_NE(log.find("event=stop_step step=store"), std::string::npos) << log;
}

// A step that does not come back at all.
class hung_rack final : public stuck_rack {
 public:
  bool stop_devices(std::chrono::milliseconds) override {
    for (;;) pause();
  }
};

TEST_F(life, a_step_of_the_stop_that_never_comes_back_ends_the_process_by_name) {
  limits_.devices_limit = std::chrono::milliseconds(0);
  const pid_t child = start("log", [](const manifest::daemon_config&) -> absl::StatusOr<std::unique_ptr<daemon::rack_daemon>> {
    return std::unique_ptr<daemon::rack_daemon>(std::make_unique<hung_rack>());
  });
  ASSERT_TRUE(wait_for_event(child, "log", "ready"));
  kill(child, SIGTERM);
  EXPECT_EQ(exit_of(child), 6);
  EXPECT_NE(log_of("log").find("event=stop_step_hung step=devices"), std::string::npos) << log_of("log");
}

TEST_F(life, settings_are_printed_as_they_are_read) {
  config_.tcp = manifest::tcp_config{"127.0.0.1:7443", "/c", "/k", "/a", {"fleet", "console"}, {}};
  config_.site_dir = "/site";
  config_.vault_key_file = "/key";
  config_.interlock_socket = "/i";
  config_.agent_ca_dir = "/ca";
  const std::string text = daemon::print(config_);
  const auto again = manifest::read_daemon_config({"/etc/busbard.yaml", text});
  for (const auto& error : again.errors) ADD_FAILURE() << manifest::to_text(error);
  EXPECT_EQ(daemon::print(again.config), text);
}

}  // namespace
}  // namespace busbar::test
