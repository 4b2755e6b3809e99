// Programs that a benchmark starts, and the sockets it speaks to them over.
#pragma once

#include <fcntl.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

extern char** environ;  // NOLINT

namespace busbar::bench {

using json = nlohmann::json;

inline std::int64_t now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

inline std::vector<pid_t> children;  // ended with this program, however it ends

[[noreturn]] inline void give_up(const std::string& why) {
  std::fprintf(stderr, "bench: %s\n", why.c_str());
  for (const pid_t each : children) ::kill(each, SIGTERM);
  std::exit(1);
}

inline pid_t spawn(std::vector<std::string> words, const std::string& log) {
  std::vector<char*> argv;
  for (std::string& each : words) argv.push_back(each.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (const int fd : {1, 2})
    posix_spawn_file_actions_addopen(&actions, fd, log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  pid_t pid = -1;
  if (::posix_spawn(&pid, argv[0], &actions, nullptr, argv.data(), environ) != 0)
    give_up("cannot start " + words[0]);
  posix_spawn_file_actions_destroy(&actions);
  children.push_back(pid);
  return pid;
}

inline int connect_to(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), std::min(path.size() + 1, sizeof(address.sun_path) - 1));
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  for (int tries = 0; tries < 400; ++tries) {
    if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) return fd;
    ::usleep(50'000);
  }
  give_up("nobody listens at " + path);
}

inline json ask_sim(const std::string& path, const json& request) {
  const int fd = connect_to(path);
  const std::string line = request.dump() + "\n";
  if (::send(fd, line.data(), line.size(), MSG_NOSIGNAL) < 0) give_up("the simulator is gone");
  std::string text;
  char chunk[65536];
  for (ssize_t got = 1; got > 0;) {
    got = ::recv(fd, chunk, sizeof(chunk), 0);
    if (got > 0) text.append(chunk, static_cast<std::size_t>(got));
  }
  ::close(fd);
  const json answer = json::parse(text, nullptr, false);
  if (!answer.is_object() || !answer.contains("result")) give_up("the simulator says " + text);
  return answer["result"];
}

}  // namespace busbar::bench
