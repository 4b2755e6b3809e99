#include "daemon/interlock/folder_lock.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace busbar::interlock {
namespace {

std::string holder_of(int file) {
  std::array<char, 512> text{};
  const ssize_t got = ::pread(file, text.data(), text.size(), 0);
  std::string words(text.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
  while (!words.empty() && words.back() == '\n') words.pop_back();
  return words.empty() ? "one that is just starting" : words;
}

}  // namespace

folder_lock::~folder_lock() {
  if (file_ >= 0) ::close(file_);
}

absl::Status folder_lock::take(const std::string& path, std::string_view what, std::string_view who) {
  file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file_ < 0) return absl::UnavailableError(fmt::format("cannot open {}: {}", path, std::strerror(errno)));
  if (::flock(file_, LOCK_EX | LOCK_NB) != 0) {
    return absl::FailedPreconditionError(
        fmt::format("another busbar-interlock runs on the {} of {}: {}; nothing was started; stop that one "
                    "first, or give this one another folder",
                    what, path.substr(0, path.rfind('/')), holder_of(file_)));
  }
  const std::string line = fmt::format("{}\n", who);
  // Only words for the next one: the lock holds without them.
  [[maybe_unused]] const bool told =
      ::ftruncate(file_, 0) == 0 &&
      ::pwrite(file_, line.data(), line.size(), 0) == static_cast<ssize_t>(line.size());
  return absl::OkStatus();
}

}  // namespace busbar::interlock
