// Probe programs as children: the contract's lines, and the end of whatever does not end by itself.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>

#include "daemon/agent/child_engine.hpp"
#include "daemon/agent/child_process.hpp"
#include "daemon/agent/probe_lines.hpp"

namespace busbar::agent_client {
namespace {

TEST(probe_line, is_read_strictly) {
  const auto good =
      parse_probe_line(R"({"gpu":3,"metric":"h2d","value":12.5,"unit":"GB/s","quality":"good"})", 4);
  ASSERT_TRUE(good.ok());
  const auto& measured = std::get<agent::Measurement>(*good);
  EXPECT_EQ(measured.gpu(), 3u);
  EXPECT_DOUBLE_EQ(measured.value(), 12.5);
  EXPECT_EQ(measured.quality(), agent::GOOD);
  for (const char* wrong : {"", "hello", "[]", "12", R"({"gpu":3})",
                            R"({"gpu":4,"metric":"h2d","value":1,"unit":"","quality":"good"})",
                            R"({"gpu":-1,"metric":"h2d","value":1,"unit":"","quality":"good"})",
                            R"({"gpu":0,"metric":"h2d","value":"1","unit":"","quality":"good"})",
                            R"({"gpu":0,"metric":"h2d","value":null,"unit":"","quality":"good"})",
                            R"({"gpu":0,"metric":"h2d","value":NaN,"unit":"","quality":"good"})",
                            R"({"gpu":0,"metric":"","value":1,"unit":"","quality":"good"})",
                            R"({"gpu":0,"metric":"h2d","value":1,"text":"x","unit":"","quality":"good"})",
                            R"({"gpu":0,"metric":"h2d","value":1,"unit":"","quality":"good","more":1})",
                            R"({"gpu":0,"metric":"h2d","value":1,"unit":"","quality":1})",
                            R"({"progress":2})", R"({"progress":0.5,"gpu":0})",
                            R"({"gpu":0,"metric":"h2d","value":1,"unit":"","quality":"good"} x)"}) {
    EXPECT_FALSE(parse_probe_line(wrong, 4).ok()) << wrong;
  }
}

TEST(probe_line, is_never_good_without_a_value_or_by_a_word_unknown) {
  const auto no_value = parse_probe_line(R"({"gpu":0,"metric":"h2d","unit":"GB/s","quality":"good"})", 4);
  ASSERT_TRUE(no_value.ok());
  EXPECT_EQ(std::get<agent::Measurement>(*no_value).quality(), agent::BAD);
  const auto unheard =
      parse_probe_line(R"({"gpu":0,"metric":"h2d","value":1,"unit":"GB/s","quality":"fine"})", 4);
  ASSERT_TRUE(unheard.ok());
  EXPECT_EQ(std::get<agent::Measurement>(*unheard).quality(), agent::QUALITY_UNSPECIFIED);
}

class child : public ::testing::Test {
 protected:
  child() {
    std::string pattern = (std::filesystem::temp_directory_path() / "busbar-child-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  ~child() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  // A shell script under a probe's name stands for a program that behaves in some way.
  std::filesystem::path script(const std::string& body) {
    const auto path = folder_ / "busbar-probe-reference";
    std::ofstream(path) << "#!/bin/sh\n" << body << "\n";
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path;
  }

  child_end run(const std::string& body, const std::function<bool(const std::string&)>& line) {
    const int fd = ::open(script(body).c_str(), O_RDONLY | O_CLOEXEC);
    const auto end = process_.run(fd, "busbar-probe-reference", "{}\n", line);
    ::close(fd);
    return end;
  }

  std::filesystem::path folder_;
  child_process process_;
};

TEST_F(child, gives_its_lines_its_exit_and_its_last_words) {
  std::vector<std::string> lines;
  const auto end = run("cat; echo one; printf two; echo why >&2; exit 3", [&lines](const std::string& line) {
    lines.push_back(line);
    return true;
  });
  EXPECT_TRUE(end.started);
  EXPECT_FALSE(end.killed);
  EXPECT_EQ(end.exit_code, 3);
  EXPECT_EQ(lines, (std::vector<std::string>{"{}", "one", "two"}));
  EXPECT_EQ(end.stderr_tail, "why\n");
}

TEST_F(child, sees_neither_the_agents_files_nor_its_environment) {
  const int secret = ::open(script("").c_str(), O_RDONLY);  // inheritable on purpose
  ASSERT_GE(secret, 3);
  std::vector<std::string> lines;
  run("ls /proc/self/fd | wc -l; env | grep -v -e ^PWD= -e ^PATH= -e ^_= -e ^SHLVL= -e ^OLDPWD= | wc -l",
      [&lines](const std::string& line) {
        lines.push_back(line);
        return true;
      });
  ::close(secret);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_LE(std::stoi(lines[0]), 5);  // stdin, stdout, stderr, its own program, and the folder that ls reads
  EXPECT_EQ(std::stoi(lines[1]), 0);
}

TEST_F(child, dies_with_all_its_children_when_told) {
  std::string grandchild;
  const auto end =
      run("sleep 1000 & echo $!; trap '' TERM; wait", [this, &grandchild](const std::string& line) {
        grandchild = line;
        process_.kill();
        return true;
      });
  EXPECT_TRUE(end.killed);
  EXPECT_EQ(end.signal, SIGKILL);
  ASSERT_FALSE(grandchild.empty());
  // Killed with its group; gone as soon as it is reaped by whoever inherits it.
  const pid_t pid = static_cast<pid_t>(std::stoi(grandchild));
  const auto state = [pid] {
    std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
    std::string number, name, letter;
    in >> number >> name >> letter;
    return letter;
  };
  while (::kill(pid, 0) == 0 && state() != "Z") std::this_thread::yield();
}

TEST_F(child, does_not_wait_for_what_its_child_left_behind) {
  const auto end = run("sleep 1000 & exit 0", [](const std::string&) { return true; });
  EXPECT_FALSE(end.killed);
  EXPECT_EQ(end.exit_code, 0);
}

TEST_F(child, is_killed_when_its_taker_says_stop_or_it_writes_without_end) {
  EXPECT_TRUE(run("while true; do echo line; done", [](const std::string&) { return false; }).killed);
  const auto no_line = run("head -c 100000 /dev/zero; sleep 1000", [](const std::string&) { return true; });
  EXPECT_TRUE(no_line.killed);
  EXPECT_NE(no_line.error.find("line"), std::string::npos);
  const auto too_much = run("yes", [](const std::string&) { return true; });
  EXPECT_TRUE(too_much.killed);
  EXPECT_NE(too_much.error.find("4 MiB"), std::string::npos);
}

TEST_F(child, shows_a_signal_as_no_success) {
  const auto end = run("kill -SEGV $$", [](const std::string&) { return true; });
  EXPECT_EQ(end.exit_code, -1);
  EXPECT_EQ(end.signal, SIGSEGV);
}

// Collects what an engine reports.
struct report_box {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<agent::Measurement> rows;
  bool done = false;
  bool ok = false;
  std::string error;

  run_callbacks callbacks() {
    return {[](double) {},
            [this](const agent::Measurement& one) {
              const std::lock_guard lock(mutex);
              rows.push_back(one);
              changed.notify_all();
            },
            [this](bool fine, const std::string& why) {
              const std::lock_guard lock(mutex);
              done = true;
              ok = fine;
              error = why;
              changed.notify_all();
            }};
  }
  void wait() {
    std::unique_lock lock(mutex);
    changed.wait_for(lock, std::chrono::seconds(40), [this] { return done; });
  }
};

agent::Run order(const std::string& probe) {
  agent::Run run;
  run.set_run_id("r1");
  run.set_test("t");
  run.set_probe(probe);
  return run;
}

TEST_F(child, runs_the_reference_engine_for_every_device) {
  auto engine = child_engine::open(BUSBAR_PROBE_FOLDER, "reference", 4);
  ASSERT_TRUE(engine.ok()) << engine.status();
  EXPECT_EQ((*engine)->sha256().size(), 64u);
  report_box box;
  auto run = order("training");
  run.add_metrics("loss_curve");
  (*engine)->start(run, box.callbacks());
  box.wait();
  EXPECT_TRUE(box.ok) << box.error;
  ASSERT_EQ(box.rows.size(), 4u);
  for (std::uint32_t gpu = 0; gpu < 4; ++gpu) {
    EXPECT_EQ(box.rows[gpu].gpu(), gpu);
    EXPECT_EQ(box.rows[gpu].text(), "72a2778065c2701c");
    EXPECT_EQ(box.rows[gpu].quality(), agent::GOOD);
  }
}

TEST_F(child, says_why_a_probe_did_not_run) {
  auto engine = child_engine::open(BUSBAR_PROBE_FOLDER, "reference", 4);
  ASSERT_TRUE(engine.ok());
  report_box box;
  auto run = order("matrix_burn");
  (*run.mutable_parameters())["size"] = "enormous";
  (*engine)->start(run, box.callbacks());
  box.wait();
  EXPECT_FALSE(box.ok);
  EXPECT_NE(box.error.find("size"), std::string::npos);
}

TEST_F(child, ends_a_burn_that_is_cancelled) {
  auto engine = child_engine::open(BUSBAR_PROBE_FOLDER, "reference", 1);
  ASSERT_TRUE(engine.ok());
  report_box box;
  auto run = order("matrix_burn");
  run.mutable_duration()->set_seconds(3600);
  (*engine)->start(run, box.callbacks());
  (*engine)->cancel();
  box.wait();
  EXPECT_TRUE(box.done);
  EXPECT_FALSE(box.ok);
  EXPECT_TRUE(box.rows.empty());
}

TEST_F(child, fails_the_test_whose_probe_writes_one_wrong_line) {
  script(
      "cat >/dev/null; echo '{\"gpu\":0,\"metric\":\"a\",\"value\":1,\"unit\":\"\",\"quality\":\"good\"}'; "
      "echo done");
  auto engine = child_engine::open(folder_, "reference", 1);
  ASSERT_TRUE(engine.ok()) << engine.status();
  report_box box;
  (*engine)->start(order("diagnostics"), box.callbacks());
  box.wait();
  EXPECT_FALSE(box.ok);
  EXPECT_NE(box.error.find("contract"), std::string::npos);
}

TEST_F(child, runs_no_program_that_changed_since_it_was_announced) {
  script("exit 0");
  auto engine = child_engine::open(folder_, "reference", 1);
  ASSERT_TRUE(engine.ok()) << engine.status();
  script("exit 0 # another");
  report_box box;
  (*engine)->start(order("diagnostics"), box.callbacks());
  box.wait();
  EXPECT_FALSE(box.ok);
  EXPECT_NE(box.error.find("no longer"), std::string::npos);
}

TEST_F(child, takes_no_program_that_others_may_write) {
  const auto path = script("exit 0");
  std::filesystem::permissions(path, std::filesystem::perms::others_write,
                               std::filesystem::perm_options::add);
  EXPECT_EQ(child_engine::open(folder_, "reference", 1).status().code(), absl::StatusCode::kPermissionDenied);
  std::vector<std::string> problems;
  EXPECT_TRUE(child_engine::open_all(folder_, 1, &problems).empty());
  EXPECT_EQ(problems.size(), 1u);
}

}  // namespace
}  // namespace busbar::agent_client
