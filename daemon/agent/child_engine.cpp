#include "daemon/agent/child_engine.hpp"

#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "daemon/agent/openssl_handles.hpp"
#include "daemon/agent/probe_lines.hpp"
#include "daemon/agent/x509.hpp"

namespace busbar::agent_client {
namespace {

struct engine_row {
  const char* name;
  std::vector<std::string> probes;
};

// Names the agent runs, in order of preference where several offer a probe. A program of another name is not
// looked at.
const std::vector<engine_row>& known_engines() {
  static const std::vector<engine_row> rows = {
      {"nccl", {"collective"}},
      {"cuda", {"diagnostics", "memory_copy", "host_device", "matrix_burn", "training"}},
      {"ucx", {"collective"}},
      {"reference", {"diagnostics", "memory_copy", "host_device", "matrix_burn", "training", "collective"}},
  };
  return rows;
}

using digest_context = std::unique_ptr<EVP_MD_CTX, openssl_deleter<EVP_MD_CTX_free>>;

// Of what the open file holds; its offset is left alone.
absl::StatusOr<std::string> digest_of(int fd) {
  digest_context context(EVP_MD_CTX_new());
  if (!context || EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) != 1)
    return absl::InternalError("no SHA-256");
  std::array<char, 65536> buffer;
  off_t at = 0;
  while (true) {
    const ssize_t n = ::pread(fd, buffer.data(), buffer.size(), at);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return absl::UnavailableError(absl::StrCat("cannot read the program: ", std::strerror(errno)));
    if (n == 0) break;
    EVP_DigestUpdate(context.get(), buffer.data(), static_cast<std::size_t>(n));
    at += n;
  }
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned size = 0;
  EVP_DigestFinal_ex(context.get(), digest.data(), &size);
  static constexpr char digits[] = "0123456789abcdef";
  std::string out;
  for (unsigned i = 0; i < size; ++i) {
    out.push_back(digits[digest[i] >> 4]);
    out.push_back(digits[digest[i] & 15]);
  }
  return out;
}

struct open_program {
  int fd = -1;
  ~open_program() {
    if (fd >= 0) ::close(fd);
  }
};

absl::Status open_checked(const std::filesystem::path& path, open_program* out) {
  out->fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (out->fd < 0) return absl::NotFoundError(absl::StrCat(path.string(), ": ", std::strerror(errno)));
  struct stat facts {};
  if (::fstat(out->fd, &facts) != 0 || !S_ISREG(facts.st_mode) || (facts.st_mode & S_IXUSR) == 0) {
    return absl::FailedPreconditionError(path.string() + " is not a program");
  }
  if ((facts.st_mode & (S_IWGRP | S_IWOTH)) != 0 || (facts.st_uid != 0 && facts.st_uid != ::geteuid())) {
    return absl::PermissionDeniedError(path.string() + " may be written by others than root and its owner");
  }
  return absl::OkStatus();
}

// What the child's end says, in the words of TestDone. Empty: ended well.
std::string what_ended(const child_end& end, const std::string& line_error) {
  if (!end.started) return end.error;
  if (!line_error.empty()) return line_error;
  if (!end.error.empty()) return end.error;
  if (end.killed) return "the probe was killed";
  if (end.signal != 0) return absl::StrCat("the probe ended by signal ", end.signal, ": ", end.stderr_tail);
  if (end.exit_code != 0) return absl::StrCat("the probe ended with ", end.exit_code, ": ", end.stderr_tail);
  return {};
}

}  // namespace

absl::StatusOr<std::shared_ptr<child_engine>> child_engine::open(const std::filesystem::path& folder,
                                                                 const std::string& name,
                                                                 std::uint32_t gpus) {
  const auto path = folder / ("busbar-probe-" + name);
  open_program program;
  if (auto opened = open_checked(path, &program); !opened.ok()) return opened;
  auto digest = digest_of(program.fd);
  if (!digest.ok()) return digest.status();
  return std::shared_ptr<child_engine>(new child_engine(path, name, *std::move(digest), gpus));
}

std::vector<std::shared_ptr<engine>> child_engine::open_all(const std::filesystem::path& folder,
                                                            std::uint32_t gpus,
                                                            std::vector<std::string>* problems) {
  std::vector<std::shared_ptr<engine>> found;
  for (const auto& row : known_engines()) {
    auto one = open(folder, row.name, gpus);
    if (one.ok()) {
      found.push_back(*std::move(one));
    } else if (one.status().code() != absl::StatusCode::kNotFound) {
      problems->push_back(std::string(one.status().message().data(), one.status().message().size()));
    }
  }
  return found;
}

child_engine::child_engine(std::filesystem::path program, std::string name, std::string digest,
                           std::uint32_t gpus)
    : program_(std::move(program)),
      name_(std::move(name)),
      digest_(std::move(digest)),
      gpus_(gpus),
      thread_([this] { work(); }) {}

child_engine::~child_engine() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    child_.kill();
  }
  changed_.notify_all();
  thread_.join();
}

bool child_engine::offers(const std::string& probe) const {
  for (const auto& row : known_engines()) {
    if (row.name == name_) return std::find(row.probes.begin(), row.probes.end(), probe) != row.probes.end();
  }
  return false;
}

void child_engine::start(const agent::Run& run, run_callbacks report) {
  {
    const std::lock_guard lock(mutex_);
    child_.arm();
    waiting_ = order{run, std::move(report)};
    running_ = true;
  }
  changed_.notify_all();
}

void child_engine::cancel() {
  const std::lock_guard lock(mutex_);
  if (running_) child_.kill();
}

void child_engine::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return waiting_.has_value() || ending_; });
    if (!waiting_) return;
    const order one = *std::exchange(waiting_, std::nullopt);
    lock.unlock();
    carry_out(one);
    lock.lock();
  }
}

void child_engine::carry_out(const order& one) {
  std::string error;
  open_program program;
  if (auto opened = open_checked(program_, &program); !opened.ok()) {
    error = std::string(opened.message().data(), opened.message().size());
  } else if (const auto digest = digest_of(program.fd); !digest.ok() || *digest != digest_) {
    error = "the program of engine " + name_ + " is no longer the one that was announced";
  } else {
    std::string line_error;
    const auto take = [this, &one, &line_error](const std::string& line) {
      auto parsed = parse_probe_line(line, gpus_);
      if (!parsed.ok()) {
        line_error = std::string(parsed.status().message().data(), parsed.status().message().size());
        return false;
      }
      if (const auto* progress = std::get_if<probe_progress>(&*parsed)) {
        one.report.progress(progress->fraction);
      } else {
        one.report.measurement(std::get<agent::Measurement>(*std::move(parsed)));
      }
      return true;
    };
    const auto end = child_.run(program.fd, "busbar-probe-" + name_, probe_request(one.run, gpus_), take);
    error = what_ended(end, line_error);
  }
  {
    const std::lock_guard lock(mutex_);
    running_ = false;
  }
  one.report.done(error.empty(), error);
}

}  // namespace busbar::agent_client
