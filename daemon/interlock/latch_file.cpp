#include "daemon/interlock/latch_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "daemon/interlock/sealed_file.hpp"
#include "daemon/interlock/text.hpp"

namespace busbar::interlock {
namespace {

constexpr std::string_view mark = "BBLT";
constexpr std::size_t device_size = 32;
constexpr std::size_t detector_size = 64;
constexpr std::size_t principal_size = 64;
constexpr std::size_t detail_size = 128;
constexpr std::size_t kept_lines = 64;

constexpr std::array<std::uint32_t, 256> make_crc_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t n = 0; n < 256; ++n) {
    std::uint32_t value = n;
    for (int bit = 0; bit < 8; ++bit) value = (value & 1U) != 0 ? 0xEDB88320U ^ (value >> 1U) : value >> 1U;
    table[n] = value;
  }
  return table;
}

std::uint32_t crc32(std::string_view bytes) {
  static constexpr auto table = make_crc_table();
  std::uint32_t value = 0xFFFFFFFFU;
  for (const char byte : bytes)
    value = table[(value ^ static_cast<unsigned char>(byte)) & 0xFFU] ^ (value >> 8U);
  return value ^ 0xFFFFFFFFU;
}

void put_number(std::string& out, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<char>((value >> (8 * i)) & 0xFFU));
}

void put_text(std::string& out, std::string_view text, std::size_t size) {
  std::string field(cut_text(text, size - 1));
  field.resize(size, '\0');
  out += field;
}

class field_reader {
 public:
  explicit field_reader(std::string_view bytes) : bytes_(bytes) {}

  std::uint64_t number(int size) {
    std::uint64_t value = 0;
    for (int i = 0; i < size; ++i) {
      value |= std::uint64_t{static_cast<unsigned char>(bytes_[static_cast<std::size_t>(i)])} << (8 * i);
    }
    bytes_.remove_prefix(static_cast<std::size_t>(size));
    return value;
  }

  std::string text(std::size_t size) {
    const std::string_view field = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return mend_text(field.substr(0, field.find('\0')));
  }

 private:
  std::string_view bytes_;
};

absl::Status failed(std::string_view what, const std::string& path) {
  return absl::UnavailableError(fmt::format("{} {}: {}", what, path, std::strerror(errno)));
}

}  // namespace

std::string encode_latch(const Latch& line) {
  std::string body;
  put_number(body, line.number(), 8);
  put_number(body, static_cast<std::uint64_t>(line.kind()), 4);
  put_number(body, static_cast<std::uint64_t>(line.wall_time_ns()), 8);
  put_text(body, line.device(), device_size);
  put_text(body, line.detector(), detector_size);
  put_text(body, line.principal(), principal_size);
  put_text(body, line.detail(), detail_size);
  put_number(body, line.trip(), 8);
  put_number(body, static_cast<std::uint64_t>(line.cause()), 4);
  put_number(body, static_cast<std::uint64_t>(line.until_wall_ns()), 8);
  body.resize(latch_record_size - mark.size() - 4, '\0');
  std::string record(mark);
  put_number(record, crc32(body), 4);
  return record + body;
}

absl::StatusOr<std::optional<Latch>> decode_latch(std::string_view record) {
  if (record.size() != latch_record_size) return absl::DataLossError("short record");
  if (record.find_first_not_of('\0') == std::string_view::npos) return std::nullopt;
  field_reader head(record.substr(mark.size()));
  const std::string_view body = record.substr(mark.size() + 4);
  if (record.substr(0, mark.size()) != mark || head.number(4) != crc32(body))
    return absl::DataLossError("record does not check");
  field_reader fields(body);
  Latch line;
  line.set_number(fields.number(8));
  const auto kind = static_cast<int>(fields.number(4));
  if (line.number() == 0 || kind == Latch::KIND_UNSPECIFIED || !Latch::Kind_IsValid(kind))
    return absl::DataLossError("record of unknown kind");
  line.set_kind(static_cast<Latch::Kind>(kind));
  line.set_wall_time_ns(static_cast<std::int64_t>(fields.number(8)));
  line.set_device(fields.text(device_size));
  line.set_detector(fields.text(detector_size));
  line.set_principal(fields.text(principal_size));
  line.set_detail(fields.text(detail_size));
  line.set_trip(fields.number(8));
  const auto cause = static_cast<int>(fields.number(4));
  if (!Cause_IsValid(cause)) return absl::DataLossError("record of unknown cause");
  line.set_cause(static_cast<Cause>(cause));
  line.set_until_wall_ns(static_cast<std::int64_t>(fields.number(8)));
  line.set_durable(true);
  return line;
}

latch_file::~latch_file() {
  if (fd_ >= 0) ::close(fd_);
}

absl::Status latch_file::create(const std::string& path, std::string_view lost) const {
  std::string content;
  if (!lost.empty()) {
    Latch line;
    line.set_number(1);
    line.set_kind(Latch::LOST);
    line.set_device("*");
    line.set_detail(std::string(lost));
    content = encode_latch(line);
  }
  // replace_file writes real bytes, so the blocks are allocated on every file system.
  content.resize(latch_record_size * latch_records_max, '\0');
  return replace_file(path, content);
}

absl::Status latch_file::open(const std::string& path, std::string_view lost_if_missing) {
  path_ = path;
  if (::access(path.c_str(), F_OK) != 0) {
    if (errno != ENOENT) return failed("cannot look for", path);
    if (absl::Status status = create(path, lost_if_missing); !status.ok()) return status;
  }
  fd_ = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (fd_ < 0) return failed("cannot open", path);
  if (absl::Status status = read_all(); !status.ok()) return status;
  // A line that the host may still lose would be called lost by busbard, which has seen its number.
  if (::fdatasync(fd_) != 0) return failed("cannot sync", path);
  // Room is made now, not in the middle of a trip.
  return !spoiled_ && next_ > latch_records_max / 4 * 3 ? compact() : absl::OkStatus();
}

absl::Status latch_file::read_all() {
  lines_.clear();
  damage_.clear();
  spoiled_ = false;
  next_ = 0;
  std::string record(latch_record_size, '\0');
  for (std::size_t index = 0; index < latch_records_max; ++index) {
    const ssize_t got =
        ::pread(fd_, record.data(), record.size(), static_cast<off_t>(index * latch_record_size));
    if (got < 0) return failed("cannot read", path_);
    const auto line = decode_latch(std::string_view(record.data(), static_cast<std::size_t>(got)));
    if (!line.ok()) {
      damage_ = fmt::format("record {}: {}", index, std::string(line.status().message()));
      spoiled_ = true;
      next_ = index + 1;
      continue;
    }
    if (!line->has_value()) continue;
    next_ = index + 1;
    if ((*line)->kind() == Latch::LOST) damage_ = (*line)->detail();
    if ((*line)->kind() == Latch::RESET && (*line)->device() == "*") {
      damage_.clear();
      spoiled_ = false;
    }
    lines_.push_back(**line);
  }
  return absl::OkStatus();
}

absl::Status latch_file::write_at(std::size_t index, const Latch& line, bool sync) const {
  if (fd_ < 0) return absl::UnavailableError("the latch file is not open");
  const std::string record = encode_latch(line);
  const ssize_t written =
      ::pwrite(fd_, record.data(), record.size(), static_cast<off_t>(index * latch_record_size));
  if (written != static_cast<ssize_t>(record.size())) return failed("cannot write", path_);
  if (sync && ::fdatasync(fd_) != 0) return failed("cannot sync", path_);
  return absl::OkStatus();
}

absl::Status latch_file::append(const Latch& line, bool sync) {
  const bool acknowledges = line.kind() == Latch::RESET && line.device() == "*";
  if (next_ >= latch_records_max) {
    // Damaged records are dropped only by the person who acknowledges them.
    if (spoiled_ && !acknowledges)
      return absl::DataLossError("the latch file is full and damaged: " + damage_);
    if (absl::Status status = compact(); !status.ok()) return status;
  }
  if (absl::Status status = write_at(next_, line, sync); !status.ok()) return status;
  ++next_;
  lines_.push_back(line);
  if (acknowledges) {
    damage_.clear();
    spoiled_ = false;
  }
  return absl::OkStatus();
}

// Which lines a restart needs: the latest, what is latched, trips that nobody has reset, bypasses that run.
bool latch_file::is_needed(std::size_t index) const {
  const Latch& line = lines_[index];
  if (lines_.size() - index <= kept_lines) return true;
  const auto undone = [&line](const Latch& later) {
    if (line.kind() == Latch::BYPASS)
      return later.kind() == Latch::BYPASS_ENDED && later.device() == line.device() &&
             later.detector() == line.detector();
    return later.kind() == Latch::RESET && later.device() == line.device();
  };
  if (line.kind() == Latch::RESET || line.kind() == Latch::STEP_DONE || line.kind() == Latch::BYPASS_ENDED)
    return false;
  return std::none_of(lines_.begin() + static_cast<std::ptrdiff_t>(index) + 1, lines_.end(), undone);
}

absl::Status latch_file::compact() {
  std::vector<Latch> lines;
  for (std::size_t index = 0; index < lines_.size(); ++index) {
    if (is_needed(index)) lines.push_back(lines_[index]);
  }
  std::string content;
  for (const Latch& line : lines) content += encode_latch(line);
  content.resize(latch_record_size * latch_records_max, '\0');
  if (absl::Status status = replace_file(path_, content); !status.ok()) return status;
  const int fresh = ::open(path_.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (fresh < 0) return failed("cannot open", path_);
  ::close(fd_);
  fd_ = fresh;
  next_ = lines.size();
  lines_ = std::move(lines);
  return absl::OkStatus();
}

}  // namespace busbar::interlock
