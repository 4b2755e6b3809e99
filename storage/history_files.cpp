#include "storage/history_files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <system_error>

namespace busbar::storage {
namespace {

constexpr std::string_view suffix = ".hst";
constexpr std::size_t most_said = 64;

class file_handle {
 public:
  file_handle(const std::string& path, int flags) : number_(::open(path.c_str(), flags | O_CLOEXEC, 0600)) {}
  ~file_handle() {
    if (number_ >= 0) ::close(number_);
  }
  file_handle(const file_handle&) = delete;
  file_handle& operator=(const file_handle&) = delete;
  int number() const { return number_; }
  bool good() const { return number_ >= 0; }

 private:
  int number_;
};

// Exactly so many bytes at that place; empty: they are not all there.
std::string read_at(int file, std::uint64_t offset, std::size_t size) {
  std::string bytes(size, '\0');
  std::size_t done = 0;
  while (done < size) {
    const ssize_t got = ::pread(file, bytes.data() + done, size - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return {};
    done += static_cast<std::size_t>(got);
  }
  return bytes;
}

bool write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(file, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(put));
  }
  return true;
}

std::optional<std::int64_t> start_of(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix) || !name.ends_with(suffix) ||
      name.size() <= prefix.size() + 1 + suffix.size())
    return std::nullopt;
  if (name[prefix.size()] != '-') return std::nullopt;
  name.remove_prefix(prefix.size() + 1);
  name.remove_suffix(suffix.size());
  std::int64_t start = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), start);
  return error == std::errc() && end == name.data() + name.size() ? std::optional(start) : std::nullopt;
}

std::int64_t floor_to(std::int64_t value, std::int64_t step) {
  const std::int64_t rest = value % step;
  return value - (rest < 0 ? rest + step : rest);
}

}  // namespace

history_files::history_files(history_files_options options) : options_(std::move(options)) {
  std::error_code failed;
  for (std::filesystem::directory_iterator at(options_.directory, failed), end; !failed && at != end;
       at.increment(failed)) {
    const auto start = start_of(at->path().filename().string(), options_.prefix);
    if (!start) continue;
    const auto size = at->file_size(failed);
    if (!failed) files_[*start] = size;
    failed.clear();
  }
  if (failed) say(fmt::format("cannot list {}: {}", options_.directory, failed.message()));
}

void history_files::say(const std::string& what) {
  if (options_.say == nullptr || said_.size() > most_said || !said_.insert(what).second) return;
  options_.say(what);
}

std::string history_files::path_of(std::int64_t start_s) const {
  return fmt::format("{}/{}-{}{}", options_.directory, options_.prefix, start_s, suffix);
}

std::uint64_t history_files::whole_bytes(int file, const std::string& path) {
  struct stat seen {};
  if (::fstat(file, &seen) != 0) return 0;
  const auto size = static_cast<std::uint64_t>(seen.st_size);
  std::uint64_t at = 0;
  while (at < size) {
    const auto header = decode_header(read_at(file, at, page_header_size));
    if (!header || at + page_header_size + header->bytes > size) {
      say(fmt::format("{} is damaged from byte {} on; what stood there is left out", path, at));
      return at;
    }
    at += page_header_size + header->bytes;
  }
  return at;
}

bool history_files::remove_oldest() {
  const auto oldest = files_.begin();
  std::error_code failed;
  std::filesystem::remove(path_of(oldest->first), failed);
  if (failed) {
    say(fmt::format("cannot delete {}: {}", path_of(oldest->first), failed.message()));
    return false;
  }
  checked_.erase(oldest->first);
  files_.erase(oldest);
  return true;
}

// The journal lives on the same disk, and goes before pictures: old ones make room for it, then new ones are
// left out.
bool history_files::has_room(std::size_t bytes) {
  while (true) {
    std::error_code failed;
    const auto room = std::filesystem::space(options_.directory, failed);
    if (failed || room.available >= options_.least_free + bytes) return true;  // unknown: the write will tell
    if (files_.size() < 2 || !remove_oldest()) {
      say(fmt::format("less than {} MiB are free beside {}; these samples are lost",
                      options_.least_free >> 20, options_.directory));
      return false;
    }
  }
}

void history_files::append(const page_header& header, std::string_view page) {
  if (!has_room(page.size())) return;
  const std::int64_t start = floor_to(header.start_s, options_.span_s);
  const std::string path = path_of(start);
  const file_handle file(path, O_RDWR | O_CREAT | O_APPEND);
  if (!file.good()) {
    return say(fmt::format("cannot write {}: {}; these samples are lost", path, std::strerror(errno)));
  }
  std::uint64_t whole = files_[start];
  if (checked_.insert(start).second) {
    whole = whole_bytes(file.number(), path);
    if (::ftruncate(file.number(), static_cast<off_t>(whole)) != 0) {
      return say(fmt::format("cannot cut the damaged end off {}: {}", path, std::strerror(errno)));
    }
  }
  if (!write_all(file.number(), page)) {
    const int why = errno;
    // A page that is there in part would hide those after it.
    if (::ftruncate(file.number(), static_cast<off_t>(whole)) != 0) checked_.erase(start);
    files_[start] = whole;
    return say(fmt::format("cannot write {}: {}; these samples are lost", path, std::strerror(why)));
  }
  files_[start] = whole + page.size();
}

void history_files::trim(std::int64_t now_s) {
  std::uint64_t all = bytes();
  while (!files_.empty()) {
    const auto oldest = files_.begin();
    const bool old = oldest->first + options_.span_s + options_.kept_s < now_s;
    const bool too_many = all > options_.most_bytes && files_.size() > 1;
    if (!old && !too_many) return;
    all -= oldest->second;
    if (!remove_oldest()) return;
  }
}

void history_files::each_page(std::int64_t from_s, std::int64_t to_s,
                              const std::function<void(const page_at&)>& each) {
  for (const auto& [start, bytes] : files_) {
    if (start + options_.span_s <= from_s || start >= to_s) continue;
    const std::string path = path_of(start);
    const file_handle file(path, O_RDONLY);
    if (!file.good()) {
      say(fmt::format("cannot read {}: {}", path, std::strerror(errno)));
      continue;
    }
    std::uint64_t at = 0;
    while (at < bytes) {
      const auto header = decode_header(read_at(file.number(), at, page_header_size));
      if (!header) {
        say(fmt::format("{} is damaged from byte {} on; what stood there is left out", path, at));
        break;
      }
      const std::int64_t end_s = header->start_s + static_cast<std::int64_t>(header->steps) * header->step_s;
      const std::uint64_t directory = at + page_header_size;
      if (end_s > from_s && header->start_s < to_s) {
        each({file.number(), *header, directory, directory + header->series * page_entry_size});
      }
      at = directory + header->bytes;
    }
  }
}

std::optional<block_values> history_files::find(const page_at& in, std::uint64_t key) {
  std::uint32_t low = 0;
  std::uint32_t high = in.header.series;
  while (low < high) {
    const std::uint32_t middle = low + (high - low) / 2;
    const std::string bytes = read_at(in.file, in.directory + middle * page_entry_size, page_entry_size);
    if (bytes.empty()) return std::nullopt;
    const page_entry entry = decode_entry(bytes);
    if (entry.key == key) {
      const std::uint64_t at = in.blocks + entry.offset;
      const std::size_t size = block_size(read_at(in.file, at, block_size_bytes));
      if (size == 0) return std::nullopt;
      return decode_block(read_at(in.file, at, size), key, in.header.lanes);
    }
    if (entry.key < key) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return std::nullopt;
}

void history_files::each_series(const page_at& in,
                                const std::function<void(std::uint64_t, const block_values&)>& each) {
  const std::string bytes = read_at(in.file, in.directory, in.header.bytes);
  if (bytes.empty()) return;
  const std::string_view all = bytes;
  const std::size_t blocks = in.header.series * page_entry_size;
  for (std::uint32_t i = 0; i < in.header.series; ++i) {
    const page_entry entry = decode_entry(all.substr(i * page_entry_size, page_entry_size));
    if (blocks + entry.offset >= all.size()) continue;
    const auto block = decode_block(all.substr(blocks + entry.offset), entry.key, in.header.lanes);
    if (block) each(entry.key, *block);
  }
}

std::optional<std::int64_t> history_files::oldest_s() const {
  return files_.empty() ? std::nullopt : std::optional(files_.begin()->first);
}

std::uint64_t history_files::bytes() const {
  std::uint64_t all = 0;
  for (const auto& [start, bytes] : files_) all += bytes;
  return all;
}

}  // namespace busbar::storage
