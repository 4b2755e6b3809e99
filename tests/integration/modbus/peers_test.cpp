// The driver against Modbus programs nobody here wrote, and they against the framing's other side.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "actors/devices/modbus/tcp_loop.hpp"
#include "tests/support/modbus_server.hpp"

extern char** environ;

namespace busbar::devices::modbus {
namespace {

using namespace std::chrono_literals;

// A program whose standard input is a pipe of ours: it is asked to end by closing it.
class child {
 public:
  explicit child(std::vector<std::string> words) {
    std::array<int, 2> in{}, out{};
    if (::pipe2(in.data(), O_CLOEXEC) != 0 || ::pipe2(out.data(), O_CLOEXEC) != 0) return;
    posix_spawn_file_actions_t wires;
    posix_spawn_file_actions_init(&wires);
    posix_spawn_file_actions_adddup2(&wires, in[0], 0);
    posix_spawn_file_actions_adddup2(&wires, out[1], 1);
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    if (::posix_spawn(&process_, arguments[0], &wires, nullptr, arguments.data(), environ) != 0)
      process_ = -1;
    posix_spawn_file_actions_destroy(&wires);
    ::close(in[0]);
    ::close(out[1]);
    input_ = in[1];
    output_ = out[0];
  }
  ~child() {
    ::close(input_);
    ::close(output_);
    if (process_ > 0) ::waitpid(process_, nullptr, 0);
  }
  child(const child&) = delete;
  child& operator=(const child&) = delete;
  std::string line() const {
    std::string text;
    for (char byte = 0; ::read(output_, &byte, 1) == 1 && byte != '\n';) text.push_back(byte);
    return text;
  }

 private:
  pid_t process_ = -1;
  int input_ = -1;
  int output_ = -1;
};

absl::StatusOr<std::vector<std::uint16_t>> ask(link& wire, request wanted) {
  std::promise<absl::StatusOr<std::vector<std::uint16_t>>> promise;
  wire.transact(
      std::move(wanted), priority::command, 10s,
      [&promise](absl::StatusOr<std::vector<std::uint16_t>> got) { promise.set_value(std::move(got)); });
  return promise.get_future().get();
}

void read_and_write(const std::string& port) {
  ASSERT_FALSE(port.empty()) << "the peer did not start";
  tcp_loop loop;
  const auto wire = *loop.open("127.0.0.1:" + port);
  for (const auto& [address, count] : {std::pair(0, 1), std::pair(7, 125), std::pair(500, 60)}) {
    const auto words = ask(*wire, {function::read_holding,
                                   1,
                                   static_cast<std::uint16_t>(address),
                                   static_cast<std::uint16_t>(count),
                                   {}});
    ASSERT_TRUE(words.ok()) << words.status();
    for (int at = 0; at < count; ++at) {
      EXPECT_EQ((*words)[static_cast<std::size_t>(at)],
                test::register_of(static_cast<std::uint16_t>(address + at)));
    }
  }
  ASSERT_TRUE(ask(*wire, {function::write_single, 1, 40, 0, {4711}}).ok());
  ASSERT_TRUE(ask(*wire, {function::write_multiple, 1, 41, 0, {1, 2, 3}}).ok());
  const auto back = ask(*wire, {function::read_holding, 1, 40, 4, {}});
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(*back, (std::vector<std::uint16_t>{4711, 1, 2, 3}));
  // Past its last register it says so, and the connection goes on.
  EXPECT_EQ(ask(*wire, {function::read_holding, 1, 5000, 2, {}}).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(ask(*wire, {function::read_holding, 1, 1, 1, {}}).ok());
}

// What a peer's client reads from a device that speaks by our framing.
void is_read_by(std::vector<std::string> command) {
  test::modbus_server device([](const frame& came) {
    return test::modbus_answer{encode(test::honest_reply(came)), 0, false};
  });
  const std::string port = device.address().substr(device.address().find(':') + 1);
  command.insert(command.end(), {port, "100", "20"});
  const child peer(std::move(command));
  std::string wanted;
  for (std::uint16_t at = 100; at < 120; ++at)
    wanted += fmt::format("{}{}", wanted.empty() ? "" : " ", test::register_of(at));
  EXPECT_EQ(peer.line(), wanted);
}

std::vector<std::string> script(std::string_view name) {
  return {"/usr/bin/python3", fmt::format("{}/{}", MODBUS_SCRIPTS, name)};
}

bool pymodbus_is_there() {
  return std::system("/usr/bin/python3 -c 'import pymodbus.client, pymodbus.server' 2>/dev/null") == 0;
}

TEST(modbus_peers, reads_and_writes_a_device_by_pymodbus) {
  if (!pymodbus_is_there()) GTEST_SKIP() << "python3-pymodbus is not installed";
  const child peer(script("pymodbus_server.py"));
  read_and_write(peer.line());
}

TEST(modbus_peers, is_read_by_pymodbus) {
  if (!pymodbus_is_there()) GTEST_SKIP() << "python3-pymodbus is not installed";
  is_read_by(script("pymodbus_client.py"));
}

TEST(modbus_peers, reads_and_writes_a_device_by_libmodbus) {
  if (std::string_view(LIBMODBUS_PEER).empty()) GTEST_SKIP() << "libmodbus-dev is not installed";
  const child peer({LIBMODBUS_PEER, "serve"});
  read_and_write(peer.line());
}

TEST(modbus_peers, is_read_by_libmodbus) {
  if (std::string_view(LIBMODBUS_PEER).empty()) GTEST_SKIP() << "libmodbus-dev is not installed";
  is_read_by({LIBMODBUS_PEER, "read"});
}

}  // namespace
}  // namespace busbar::devices::modbus
