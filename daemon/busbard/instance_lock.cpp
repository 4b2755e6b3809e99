#include "daemon/busbard/instance_lock.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>

namespace busbar::daemon {
namespace {

namespace fs = std::filesystem;

constexpr fs::perms for_others = fs::perms::group_all | fs::perms::others_all;

// What the holder wrote of itself; a holder that is just starting may not have yet.
std::string holder_of(int file) {
  std::array<char, 512> text{};
  const ssize_t got = pread(file, text.data(), text.size(), 0);
  std::string words(text.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
  while (!words.empty() && words.back() == '\n') words.pop_back();
  return words.empty() ? "another busbard that is just starting" : "another busbard: " + words;
}

absl::Status make_with(const fs::path& folder, mode_t mask) {
  const mode_t before = umask(mask);
  std::error_code error;
  fs::create_directories(folder, error);
  umask(before);
  if (error) return absl::InternalError(fmt::format("cannot make {}: {}", folder.string(), error.message()));
  return absl::OkStatus();
}

}  // namespace

instance_lock::~instance_lock() {
  if (file_ >= 0) close(file_);
}

absl::Status instance_lock::take(const fs::path& folder, std::string_view what, const std::string& who) {
  const std::string path = (folder / "busbard.lock").string();
  file_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file_ < 0) return absl::InternalError(fmt::format("cannot open {}: {}", path, std::strerror(errno)));
  if (flock(file_, LOCK_EX | LOCK_NB) != 0) {
    return absl::AlreadyExistsError(fmt::format(
        "the {} {} is held by {}; nothing was started; stop that one first, or give this one another", what,
        folder.string(), holder_of(file_)));
  }
  const std::string line = who + "\n";
  // Only words for the next one: the lock holds without them.
  [[maybe_unused]] const bool told = ftruncate(file_, 0) == 0 && pwrite(file_, line.data(), line.size(), 0) ==
                                                                     static_cast<ssize_t>(line.size());
  return absl::OkStatus();
}

absl::Status make_run_folder(const fs::path& folder) {
  return make_with(folder, 022);
}

absl::Status make_private_folder(const fs::path& folder) {
  if (const absl::Status made = make_with(folder, 077); !made.ok()) return made;
  std::error_code error;
  const fs::file_status found = fs::status(folder, error);
  if (error || (found.permissions() & for_others) == fs::perms::none) return absl::OkStatus();
  fs::permissions(folder, for_others, fs::perm_options::remove, error);
  if (error) {
    return absl::FailedPreconditionError(fmt::format(
        "{} is open to others (mode {:04o}) and cannot be closed: {}; give it to the daemon's user",
        folder.string(), static_cast<unsigned>(found.permissions()), error.message()));
  }
  // The closed folder keeps others out already; what is in it is closed for the day it is copied elsewhere.
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code ignored;  // gone meanwhile, or another user's: behind the closed folder
    if (!entry->is_symlink(ignored))
      fs::permissions(entry->path(), for_others, fs::perm_options::remove, ignored);
  }
  return absl::OkStatus();
}

}  // namespace busbar::daemon
