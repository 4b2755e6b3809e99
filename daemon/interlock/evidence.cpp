#include "daemon/interlock/evidence.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include "daemon/interlock/sealed_file.hpp"

namespace busbar::interlock {
namespace {

constexpr std::int64_t before_ns = 10'000'000'000;
constexpr std::int64_t after_ns = 60'000'000'000;
constexpr std::size_t file_size = evidence_row_size * (evidence_rows_max + 1);
constexpr std::string_view mark = "BBEVID1\n";

absl::Status failed(std::string_view what, const std::string& path) {
  return absl::UnavailableError(fmt::format("evidence: cannot {} {}: {}", what, path, std::strerror(errno)));
}

void put(std::string& out, std::uint64_t value) {
  for (int i = 0; i < 8; ++i) out.push_back(static_cast<char>((value >> (8 * i)) & 0xFFU));
}

template <std::size_t size>
void copy_text(std::array<char, size>& into, std::string_view text) {
  std::copy_n(text.begin(), std::min(size, text.size()), into.begin());
}

std::uint64_t trip_in(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  std::array<unsigned char, 16> head{};
  std::uint64_t trip = 0;
  if (file >= 0 && ::pread(file, head.data(), head.size(), 0) == static_cast<ssize_t>(head.size())) {
    for (std::size_t i = 0; i < 8; ++i) trip |= std::uint64_t{head[8 + i]} << (8 * i);
  }
  if (file >= 0) ::close(file);
  return trip;
}

}  // namespace

evidence_recorder::~evidence_recorder() {
  if (file_ >= 0) ::close(file_);
}

absl::Status evidence_recorder::open(const std::string& folder) {
  folder_ = folder;
  std::uint64_t oldest = UINT64_MAX;
  for (std::size_t index = 0; index < evidence_files; ++index) {
    const std::string path = fmt::format("{}/evidence-{}.bin", folder_, index);
    const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file < 0) return failed("open", path);
    const int code = ::posix_fallocate(file, 0, static_cast<off_t>(file_size));
    ::close(file);
    if (code != 0)
      return absl::UnavailableError(fmt::format("evidence: no room for {}: {}", path, std::strerror(code)));
    const std::uint64_t trip = trip_in(path);
    if (trip >= oldest) continue;
    oldest = trip;
    next_file_ = index;
  }
  open_ = true;
  return absl::OkStatus();
}

void evidence_recorder::add(std::int64_t now_ns, std::string_view device, std::string_view point,
                            double value) {
  row made;
  made.at_ns = now_ns;
  made.value = value;
  copy_text(made.device, device);
  copy_text(made.point, point);
  if (file_ >= 0) {
    waiting_.push_back(made);
    return;
  }
  before_.push_back(made);
  while (before_.size() > evidence_rows_max / 2 || before_.front().at_ns < now_ns - before_ns)
    before_.pop_front();
}

void evidence_recorder::keep(std::uint64_t trip, std::int64_t now_ns, std::int64_t wall_ns) {
  if (!open_) return;
  until_ns_ = now_ns + after_ns;
  if (file_ >= 0) return;
  const std::string path = fmt::format("{}/evidence-{}.bin", folder_, next_file_);
  file_ = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (file_ < 0) return;
  next_file_ = (next_file_ + 1) % evidence_files;
  trip_ = trip;
  tripped_ns_ = now_ns;
  tripped_wall_ns_ = wall_ns;
  rows_ = 0;
  waiting_.assign(before_.begin(), before_.end());
  before_.clear();
}

absl::Status evidence_recorder::write_header() {
  std::string head(mark);
  put(head, trip_);
  put(head, static_cast<std::uint64_t>(tripped_ns_));
  put(head, static_cast<std::uint64_t>(tripped_wall_ns_));
  put(head, rows_);
  head.resize(evidence_row_size, '\0');
  return ::pwrite(file_, head.data(), head.size(), 0) == static_cast<ssize_t>(head.size())
             ? absl::OkStatus()
             : failed("write", folder_);
}

absl::Status evidence_recorder::flush(std::int64_t now_ns) {
  if (file_ < 0) return absl::OkStatus();
  std::string bytes;
  for (const row& each : waiting_) {
    if (rows_ + bytes.size() / evidence_row_size >= evidence_rows_max) break;
    put(bytes, static_cast<std::uint64_t>(each.at_ns));
    put(bytes, std::bit_cast<std::uint64_t>(each.value));
    bytes.append(each.device.data(), each.device.size());
    bytes.append(each.point.data(), each.point.size());
  }
  waiting_.clear();
  const auto at = static_cast<off_t>((rows_ + 1) * evidence_row_size);
  absl::Status status = absl::OkStatus();
  if (!bytes.empty()) {
    if (::pwrite(file_, bytes.data(), bytes.size(), at) != static_cast<ssize_t>(bytes.size()))
      status = failed("write", folder_);
    else
      rows_ += bytes.size() / evidence_row_size;
    if (status.ok()) status = write_header();
  }
  return now_ns >= until_ns_ || !status.ok() ? finish() : status;
}

absl::Status evidence_recorder::finish() {
  const bool synced = ::fdatasync(file_) == 0;
  const absl::Status status = synced ? absl::OkStatus() : failed("sync", folder_);
  ::close(std::exchange(file_, -1));
  return status;
}

}  // namespace busbar::interlock
