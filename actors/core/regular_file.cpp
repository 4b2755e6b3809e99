#include "actors/core/regular_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace busbar::core {
namespace {

absl::StatusOr<std::string> read_all(int file, const std::string& path, std::size_t size) {
  std::string bytes(size, '\0');
  std::size_t got = 0;
  while (got < size) {
    const ssize_t part = ::read(file, bytes.data() + got, size - got);
    if (part < 0 && errno == EINTR) continue;
    if (part < 0) return absl::UnavailableError(fmt::format("{}: {}", path, std::strerror(errno)));
    if (part == 0) break;  // it became shorter meanwhile
    got += static_cast<std::size_t>(part);
  }
  bytes.resize(got);
  return bytes;
}

}  // namespace

absl::StatusOr<std::string> read_regular_file(const std::string& path, std::size_t most_bytes) {
  // O_NONBLOCK: opening a pipe that nobody writes must not wait.
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return absl::NotFoundError(fmt::format("{}: {}", path, std::strerror(errno)));
  struct stat about {};
  absl::StatusOr<std::string> bytes = absl::FailedPreconditionError(path + " is no regular file");
  if (::fstat(file, &about) == 0 && S_ISREG(about.st_mode)) {
    const auto size = static_cast<std::size_t>(about.st_size);
    bytes = size <= most_bytes ? read_all(file, path, size)
                               : absl::FailedPreconditionError(fmt::format(
                                     "{} has {} bytes, at most {} are read", path, size, most_bytes));
  }
  ::close(file);
  return bytes;
}

}  // namespace busbar::core
