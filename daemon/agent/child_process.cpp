#include "daemon/agent/child_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace busbar::agent_client {
namespace {

constexpr std::size_t longest_line = 16 * 1024;
constexpr std::size_t most_output = 4 * 1024 * 1024;
constexpr std::size_t stderr_kept = 2048;
constexpr int child_program_fd = 3;

class fd_handle {
 public:
  explicit fd_handle(int fd = -1) : fd_(fd) {}
  ~fd_handle() { reset(); }
  fd_handle(const fd_handle&) = delete;
  fd_handle& operator=(const fd_handle&) = delete;
  int get() const { return fd_; }
  void reset(int fd = -1) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = fd;
  }

 private:
  int fd_;
};

struct pipe_pair {
  fd_handle read;
  fd_handle write;
  bool open() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return false;
    read.reset(ends[0]);
    write.reset(ends[1]);
    return true;
  }
};

// dup2 onto itself keeps close-on-exec, so the child's numbers are reached over copies above them all.
int spawn(int program_fd, const std::string& name, int in, int out, int err, pid_t* pid) {
  fd_handle program(::fcntl(program_fd, F_DUPFD_CLOEXEC, 10));
  fd_handle input(::fcntl(in, F_DUPFD_CLOEXEC, 10));
  fd_handle output(::fcntl(out, F_DUPFD_CLOEXEC, 10));
  fd_handle errors(::fcntl(err, F_DUPFD_CLOEXEC, 10));
  if (program.get() < 0 || input.get() < 0 || output.get() < 0 || errors.get() < 0) return errno;
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_adddup2(&actions, input.get(), 0);
  posix_spawn_file_actions_adddup2(&actions, output.get(), 1);
  posix_spawn_file_actions_adddup2(&actions, errors.get(), 2);
  posix_spawn_file_actions_adddup2(&actions, program.get(), child_program_fd);
  posix_spawn_file_actions_addclosefrom_np(&actions, child_program_fd + 1);
  sigset_t none;
  sigset_t all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  std::string argument = name;
  std::string path = "PATH=/usr/bin:/bin";
  char* arguments[] = {argument.data(), nullptr};
  char* environment[] = {path.data(), nullptr};
  const int failed = ::posix_spawn(pid, "/proc/self/fd/3", &actions, &attributes, arguments, environment);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  return failed;
}

// Whole lines out of what was read so far. False: the taker said stop, or a limit is broken (then `error`
// says which).
bool take_lines(std::string& pending, std::string_view fresh, std::size_t* total,
                const std::function<bool(const std::string&)>& line, std::string* error) {
  *total += fresh.size();
  if (*total > most_output) {
    *error = "the probe wrote more than 4 MiB";
    return false;
  }
  pending.append(fresh);
  std::size_t begin = 0;
  for (std::size_t end = pending.find('\n'); end != std::string::npos; end = pending.find('\n', begin)) {
    if (!line(pending.substr(begin, end - begin))) return false;
    begin = end + 1;
  }
  pending.erase(0, begin);
  if (pending.size() > longest_line) {
    *error = "the probe wrote a line of more than 16 KiB";
    return false;
  }
  return true;
}

struct streams {
  int out;
  int err;
  int exit;  // pidfd: readable when the child has ended
  int stop;
};

// Until the child has ended and its output is read, or it must die (true).
bool follow(const streams& watched, const std::function<bool(const std::string&)>& line, child_end* end) {
  std::array<pollfd, 4> polled = {{{watched.out, POLLIN, 0},
                                   {watched.err, POLLIN, 0},
                                   {watched.exit, POLLIN, 0},
                                   {watched.stop, POLLIN, 0}}};
  std::string pending;
  std::size_t total = 0;
  std::array<char, 8192> buffer;
  bool exited = false;
  while (true) {
    // After its exit only what stands in the pipe is read: a grandchild that holds it open does not hold us.
    const int ready = ::poll(polled.data(), polled.size(), exited ? 0 : -1);
    if (ready < 0 && errno == EINTR) continue;
    if (polled[3].revents != 0) return true;
    bool moved = false;
    for (std::size_t i = 0; i < 2; ++i) {
      if (polled[i].fd < 0 || (polled[i].revents & (POLLIN | POLLHUP | POLLERR)) == 0) continue;
      const ssize_t n = ::read(polled[i].fd, buffer.data(), buffer.size());
      if (n <= 0) {
        polled[i].fd = -1;
        continue;
      }
      moved = true;
      const std::string_view fresh(buffer.data(), static_cast<std::size_t>(n));
      if (i == 0 && !take_lines(pending, fresh, &total, line, &end->error)) return true;
      if (i == 1) {
        end->stderr_tail.append(fresh);
        if (end->stderr_tail.size() > stderr_kept)
          end->stderr_tail.erase(0, end->stderr_tail.size() - stderr_kept);
      }
    }
    if (exited && !moved) break;
    if (polled[2].revents != 0) {
      exited = true;
      polled[2].fd = -1;
    }
  }
  if (!pending.empty()) (void)line(pending);  // a last line without its end is a line: the parser judges it
  return false;
}

}  // namespace

child_process::child_process() : stop_fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

child_process::~child_process() {
  ::close(stop_fd_);
}

void child_process::kill() {
  const std::uint64_t one = 1;
  (void)!::write(stop_fd_, &one, sizeof one);
}

void child_process::arm() {
  std::uint64_t count = 0;
  (void)!::read(stop_fd_, &count, sizeof count);
}

child_end child_process::run(int program_fd, const std::string& name, const std::string& input,
                             const std::function<bool(const std::string&)>& line) {
  child_end end;
  pipe_pair in;
  pipe_pair out;
  pipe_pair err;
  pid_t pid = -1;
  int failed = in.open() && out.open() && err.open() ? 0 : errno;
  // Written before the child lives, so no SIGPIPE can come of it; what does not fit the pipe is refused, not
  // waited for.
  if (failed == 0) ::fcntl(in.write.get(), F_SETFL, O_NONBLOCK);
  if (failed == 0 &&
      ::write(in.write.get(), input.data(), input.size()) != static_cast<ssize_t>(input.size()))
    failed = EMSGSIZE;
  if (failed == 0) failed = spawn(program_fd, name, in.read.get(), out.write.get(), err.write.get(), &pid);
  if (failed != 0) {
    end.error = "cannot start " + name + ": " + std::strerror(failed);
    return end;
  }
  end.started = true;
  in.read.reset();
  in.write.reset();
  out.write.reset();
  err.write.reset();
  const fd_handle exit_fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (exit_fd.get() < 0) {
    end.killed = true;
    end.error = "cannot watch the probe's process";
  } else {
    end.killed = follow({out.read.get(), err.read.get(), exit_fd.get(), stop_fd_}, line, &end);
  }
  ::kill(-pid, SIGKILL);  // the whole group: also what a probe left behind. Not reaped yet, so the number is
                          // still its own
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status)) end.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) end.signal = WTERMSIG(status);
  return end;
}

}  // namespace busbar::agent_client
