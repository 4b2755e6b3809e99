#include "storage/disk_room.hpp"

#include <fmt/format.h>
#include <sys/statvfs.h>

#include <filesystem>
#include <limits>
#include <optional>
#include <system_error>

#include "actors/core/errors.hpp"

namespace busbar::storage {
namespace {

namespace fs = std::filesystem;

// Of the folder, or of the nearest above it that exists.
std::optional<struct statvfs> file_system_of(const std::string& directory) {
  struct statvfs found {};
  std::error_code error;
  for (fs::path at = fs::absolute(directory, error); !error; at = at.parent_path()) {
    if (::statvfs(at.c_str(), &found) == 0) return found;
    if (at == at.root_path()) break;
  }
  return std::nullopt;
}

// What recovery writes again, at most.
std::uint64_t log_bytes(const std::string& directory) {
  std::uint64_t bytes = 0;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code gone;
    const std::uint64_t size = entry->path().extension() == ".log" ? entry->file_size(gone) : 0;
    if (!gone) bytes += size;
  }
  return bytes;
}

}  // namespace

std::uint64_t free_bytes_at(const std::string& directory) {
  const auto found = file_system_of(directory);
  if (!found.has_value()) return std::numeric_limits<std::uint64_t>::max();
  return static_cast<std::uint64_t>(found->f_bavail) * found->f_frsize;
}

absl::Status check_room(const std::string& directory,
                        const std::function<std::uint64_t(const std::string&)>& free_bytes) {
  const auto where = file_system_of(directory);
  if (where.has_value() && (where->f_flag & ST_RDONLY) != 0) {
    return core::make_fault(
        core::fault::STORE_READ_ONLY,
        fmt::format(
            "open {}: its file system is mounted read-only; nothing was started or changed; see why in the "
            "kernel's log, mount it writable, then start again",
            directory));
  }
  const std::uint64_t needed = room_to_open + log_bytes(directory);
  const std::uint64_t free = free_bytes ? free_bytes(directory) : free_bytes_at(directory);
  if (free >= needed) return absl::OkStatus();
  return core::make_fault(
      core::fault::STORE_READ_ONLY,
      fmt::format(
          "open {}: {} bytes are free on its file system, {} are needed to open; nothing was started or "
          "changed; free space there (remove nothing in the folder itself), then start again",
          directory, free, needed));
}

}  // namespace busbar::storage
