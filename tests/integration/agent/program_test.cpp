// busbar-agent itself, as a tray runs it.
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <fstream>

#include "tests/integration/agent/gate_fixture.hpp"

namespace busbar::test {
namespace {

using kind = agent_event::kind;

class busbar_agent : public gate_test {
 protected:
  pid_t start(const std::string& token) {
    const std::string program = std::string(BUSBAR_PROGRAM_FOLDER) + "/busbar-agent";
    const auto token_file = folder_ / "token";
    std::ofstream(token_file) << token << "\n";
    std::vector<std::string> words = {program,
                                      "--endpoint",
                                      endpoint(),
                                      "--token-file",
                                      token_file.string(),
                                      "--serial",
                                      "SN7",
                                      "--state-dir",
                                      (folder_ / "agent").string(),
                                      "--engines",
                                      BUSBAR_PROGRAM_FOLDER,
                                      "--gpus",
                                      "2"};
    std::vector<char*> arguments;
    for (auto& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    pid_t pid = -1;
    EXPECT_EQ(posix_spawn(&pid, program.c_str(), nullptr, nullptr, arguments.data(), environ), 0);
    return pid;
  }
};

TEST_F(busbar_agent, is_born_runs_a_probe_comes_back_after_a_kill_and_says_goodbye) {
  open_gate();
  const std::string token = gate_->issue_token("r01/c07", "SN7");
  const pid_t first = start(token);
  const auto hello = events_.next();
  ASSERT_EQ(hello.what, kind::hello);
  EXPECT_EQ(hello.hello.limits(), "reference");
  EXPECT_FALSE(hello.hello.boot_id().empty());
  auto run = run_of("run-1", "burn", "matrix_burn");
  run.mutable_duration()->set_seconds(0);
  run.add_metrics("result_hash");
  ASSERT_TRUE(gate_->run("r01/c07", run));
  for (int gpu = 0; gpu < 2; ++gpu) EXPECT_EQ(events_.next_result().measurement.text(), "c6330a1df9039cf7");
  EXPECT_TRUE(events_.next_result().test_done.ok());

  kill(first, SIGKILL);
  int status = 0;
  ASSERT_EQ(waitpid(first, &status, 0), first);
  ASSERT_EQ(events_.next().what, kind::lost);
  const pid_t second = start(token);  // its token is used up: it comes with the certificate it kept
  ASSERT_EQ(events_.next().what, kind::hello);
  kill(second, SIGTERM);
  ASSERT_EQ(waitpid(second, &status, 0), second);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  const auto left = events_.next();
  ASSERT_EQ(left.what, kind::lost);
  EXPECT_NE(left.reason.find("signal"), std::string::npos);
}

}  // namespace
}  // namespace busbar::test
