#include "storage/evidence.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <system_error>

#include "actors/core/errors.hpp"
#include "actors/core/journal_batch.hpp"

namespace busbar::storage {
namespace {

class file_descriptor {
 public:
  explicit file_descriptor(int descriptor) : descriptor_(descriptor) {}
  ~file_descriptor() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  file_descriptor(const file_descriptor&) = delete;
  file_descriptor& operator=(const file_descriptor&) = delete;
  int get() const { return descriptor_; }

 private:
  const int descriptor_;
};

absl::Status failed(std::string_view what, const std::string& path) {
  const int error = errno;
  return core::make_fault(core::fault::STORE_READ_ONLY,
                          fmt::format("{} {}: {}", what, path, std::generic_category().message(error)));
}

// "sha256:ab.." -> "sha256-ab..": a name every file system takes.
std::string path_of(const std::string& directory, std::string_view name) {
  std::string file(name);
  for (char& letter : file) {
    if (letter == ':' || letter == '/') letter = '-';
  }
  return directory + "/" + file;
}

absl::Status write_all(int descriptor, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return failed("write", path);
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return absl::OkStatus();
}

absl::Status write_synced(const std::string& path, std::string_view bytes) {
  const file_descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (file.get() < 0) return failed("open", path);
  if (const absl::Status done = write_all(file.get(), bytes, path); !done.ok()) return done;
  if (::fsync(file.get()) != 0) return failed("sync", path);
  return absl::OkStatus();
}

absl::Status sync_folder(const std::string& directory) {
  const file_descriptor folder(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() < 0 || ::fsync(folder.get()) != 0) return failed("sync", directory);
  return absl::OkStatus();
}

}  // namespace

absl::Status replace_synced(const std::string& path, std::string_view bytes) {
  const std::string aside = path + ".new";
  if (const absl::Status done = write_synced(aside, bytes); !done.ok()) {
    ::unlink(aside.c_str());
    return done;
  }
  if (std::rename(aside.c_str(), path.c_str()) != 0) return failed("rename", path);
  return sync_folder(path.substr(0, path.rfind('/')));
}

absl::Status write_evidence_file(const std::string& directory, std::string_view name, std::string_view bytes) {
  const std::string path = path_of(directory, name);
  struct stat known {};
  if (::stat(path.c_str(), &known) == 0 && static_cast<std::size_t>(known.st_size) == bytes.size()) {
    return absl::OkStatus();
  }
  return replace_synced(path, bytes);
}

absl::Status remove_evidence_files(const std::string& directory, const std::vector<std::string>& names) {
  bool any = false;
  for (const std::string& name : names) {
    const std::string path = path_of(directory, name);
    for (const std::string& file : {path, path + ".new"}) {
      if (::unlink(file.c_str()) == 0) {
        any = true;
      } else if (errno != ENOENT) {
        return failed("remove", file);
      }
    }
  }
  return any ? sync_folder(directory) : absl::OkStatus();
}

absl::StatusOr<std::string> read_evidence_file(const std::string& directory, std::string_view name) {
  const std::string path = path_of(directory, name);
  std::ifstream file(path, std::ios::binary);
  if (!file) return core::make_fault(core::fault::STORE_DAMAGED, fmt::format("evidence {} is gone from {}", name, path));
  std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (core::evidence_name(bytes) != name) {
    return core::make_fault(core::fault::STORE_DAMAGED, fmt::format("evidence {} in {} was changed", name, path));
  }
  return bytes;
}

}  // namespace busbar::storage
