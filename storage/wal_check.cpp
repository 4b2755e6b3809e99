#include "storage/wal_check.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <vector>

#include "actors/core/errors.hpp"
#include "storage/evidence.hpp"

namespace busbar::storage {
namespace {

namespace fs = std::filesystem;

// RocksDB's log format (db/log_format.h): blocks of 32 KiB; a record is CRC (4), length (2), type (1),
// payload, and does not cross a block; what is left of a block and too short for a header is zeros. A logical
// record is one whole, or first, middles, last.
constexpr std::size_t block_bytes = 32768;
constexpr std::size_t header_bytes = 7;
enum record_type : unsigned { none = 0, whole = 1, first = 2, middle = 3, last = 4 };

constexpr std::array<std::uint32_t, 256> crc_table = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? 0x82f63b78U : 0U);
    table[i] = value;
  }
  return table;
}();

unsigned byte_at(std::string_view bytes, std::size_t at) {
  return static_cast<unsigned char>(bytes[at]);
}

// CRC-32C, masked as in the log.
std::uint32_t masked_crc(std::string_view bytes) {
  std::uint32_t crc = ~0U;
  for (const char c : bytes) crc = crc_table[(crc ^ static_cast<unsigned char>(c)) & 0xff] ^ (crc >> 8);
  crc = ~crc;
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8U;
}

struct record {
  std::uint32_t crc = 0;
  std::size_t length = 0;
  unsigned type = 0;
};

record header_at(std::string_view log, std::size_t at) {
  std::uint32_t crc = 0;
  for (std::size_t i = 4; i > 0; --i) crc = (crc << 8) | byte_at(log, at + i - 1);
  return {crc, byte_at(log, at + 4) | (byte_at(log, at + 5) << 8), byte_at(log, at + 6)};
}

// The checksum is over type and payload; the length is not under it.
bool fits(std::string_view log, std::size_t at, const record& seen, std::size_t length) {
  return masked_crc(log.substr(at + header_bytes - 1, 1 + length)) == seen.crc;
}

bool begins_whole_record(std::string_view log, std::size_t at, std::size_t block_end) {
  if (at + header_bytes > block_end) return false;
  const record seen = header_at(log, at);
  const bool begins = seen.type == whole || seen.type == first;
  return begins && at + header_bytes + seen.length <= block_end && fits(log, at, seen, seen.length);
}

// A record that reaches over the end of the log: cut off, unless what is there shows that its length is what
// was damaged.
std::optional<std::string> not_a_cut(std::string_view log, std::size_t at, const record& seen) {
  const std::size_t rest = log.size() - at - header_bytes;
  if (seen.type < whole || seen.type > last) return fmt::format("a record of unknown type {}", seen.type);
  if (at / block_bytes * block_bytes + block_bytes < at + header_bytes + seen.length)
    return "a length beyond its block";
  if (fits(log, at, seen, rest)) return "a damaged length";
  for (std::size_t next = at + header_bytes; next < log.size(); ++next)
    if (begins_whole_record(log, next, log.size())) return "a damaged length";
  return std::nullopt;
}

}  // namespace

std::optional<log_damage> find_damage(std::string_view log) {
  std::size_t begun = 0;  // where the logical record of the moment begins
  bool inside = false;
  for (std::size_t at = 0; at < log.size();) {
    const std::size_t block_end = std::min(log.size(), at / block_bytes * block_bytes + block_bytes);
    if (!inside) begun = at;
    if (block_end - at < header_bytes) {
      at = block_end;  // padding, or a header cut off
      continue;
    }
    const record seen = header_at(log, at);
    const std::size_t end = at + header_bytes + seen.length;
    if (end > block_end) {
      const bool at_the_end = block_end == log.size();
      const auto damage =
          at_the_end ? not_a_cut(log, at, seen) : std::optional<std::string>("a length beyond its block");
      if (!damage.has_value()) return std::nullopt;
      return log_damage{begun, *damage};
    }
    if (seen.type < whole || seen.type > last)
      return log_damage{begun, seen.type == none && seen.length == 0
                                   ? std::string("zeros where a record was")
                                   : fmt::format("a record of unknown type {}", seen.type)};
    if (!fits(log, at, seen, seen.length)) return log_damage{begun, "a checksum that does not fit"};
    const bool begins = seen.type == whole || seen.type == first;
    if (begins == inside) return log_damage{begun, "a part of a record is missing"};
    inside = seen.type == first || seen.type == middle;
    at = end;
  }
  return std::nullopt;
}

namespace {

constexpr std::string_view cut_prefix = "cut-";
constexpr std::string_view lost_prefix = "lost-";

absl::Status damaged(std::string_view what) {
  return core::make_fault(core::fault::STORE_DAMAGED, what);
}

absl::Status failed(std::string_view act, const fs::path& path, const std::error_code& error) {
  return absl::UnavailableError(fmt::format("{} {}: {}", act, path.string(), error.message()));
}

// Names in the folder that begin and end so, in order: RocksDB's numbers have leading zeros.
std::vector<std::string> names_in(const std::string& directory, std::string_view prefix) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    const bool is_log = name.size() > 4 && name.ends_with(".log") && name.starts_with(prefix);
    const char after = is_log ? name[prefix.size()] : '\0';
    if (after >= '0' && after <= '9') names.push_back(name);
  }
  std::sort(names.begin(), names.end(), [](const std::string& left, const std::string& right) {
    return left.size() != right.size() ? left.size() < right.size() : left < right;
  });
  return names;
}

absl::StatusOr<std::string> content_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file.is_open() || file.bad())
    return absl::UnavailableError(fmt::format("read {}: failed", path.string()));
  return bytes;
}

struct found_damage {
  std::size_t index = 0;  // in the logs given
  std::string content;
  log_damage damage;
};

absl::StatusOr<std::optional<found_damage>> first_damage(const fs::path& folder,
                                                         const std::vector<std::string>& logs) {
  for (std::size_t i = 0; i < logs.size(); ++i) {
    auto content = content_of(folder / logs[i]);
    if (!content.ok()) return content.status();
    auto damage = find_damage(*content);
    if (damage.has_value()) return found_damage{i, *std::move(content), *std::move(damage)};
  }
  return std::optional<found_damage>();
}

absl::Status cut_file(const fs::path& path, std::size_t bytes) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  const bool done = file >= 0 && ::ftruncate(file, static_cast<off_t>(bytes)) == 0 && ::fsync(file) == 0;
  const std::error_code error(errno, std::generic_category());
  if (file >= 0) ::close(file);
  return done ? absl::OkStatus() : failed("cut", path, error);
}

}  // namespace

absl::Status check_logs(const std::string& store_directory) {
  const fs::path folder(store_directory);
  if (const auto cut = names_in(store_directory, cut_prefix); !cut.empty()) {
    return damaged(fmt::format(
        "an acceptance of lost changes of the store in {} was not finished ({} is there); start once "
        "more with --accept-lost-tail",
        store_directory, cut.front()));
  }
  const auto logs = names_in(store_directory, "");
  const auto found = first_damage(folder, logs);
  if (!found.ok()) return found.status();
  if (!found->has_value()) return absl::OkStatus();
  const found_damage& damage = **found;
  return damaged(fmt::format(
      "{} is damaged at byte {} of {}: {}. Changes that were acknowledged are in it and after it, and would "
      "be lost; nothing "
      "was started or changed. Keep a copy of the folder, then put a backup of the whole state folder back. "
      "Only where there "
      "is none: start once with --accept-lost-tail, which goes on from what stands before the damage",
      (folder / logs[damage.index]).string(), damage.damage.offset, damage.content.size(),
      damage.damage.what));
}

absl::StatusOr<std::string> cut_lost_tail(const std::string& store_directory) {
  const fs::path folder(store_directory);
  const auto logs = names_in(store_directory, "");
  const auto found = first_damage(folder, logs);
  if (!found.ok()) return found.status();
  if (!found->has_value()) {
    const auto cut = names_in(store_directory, cut_prefix);  // of a life that ended before finish_cut
    return cut.empty()
               ? std::string()
               : fmt::format("changes in and after {} are lost", cut.front().substr(cut_prefix.size()));
  }
  const found_damage& damage = **found;
  const fs::path damaged_log = folder / logs[damage.index];
  // Kept first, cut last: a crash in between finds the damage again.
  const std::string aside = (folder / (std::string(cut_prefix) + logs[damage.index])).string();
  if (const absl::Status kept = replace_synced(aside, damage.content); !kept.ok()) return kept;
  for (std::size_t i = damage.index + 1; i < logs.size(); ++i) {
    std::error_code error;
    fs::rename(folder / logs[i], folder / (std::string(cut_prefix) + logs[i]), error);
    if (error) return failed("put aside", folder / logs[i], error);
  }
  if (const absl::Status cut = cut_file(damaged_log, damage.damage.offset); !cut.ok()) return cut;
  return fmt::format("changes in and after {} from byte {} of {} on are lost: {}", logs[damage.index],
                     damage.damage.offset, damage.content.size(), damage.damage.what);
}

absl::Status finish_cut(const std::string& store_directory) {
  const fs::path folder(store_directory);
  for (const std::string& name : names_in(store_directory, cut_prefix)) {
    const std::string kept = std::string(lost_prefix) + name.substr(cut_prefix.size());
    std::error_code error;
    fs::rename(folder / name, folder / kept, error);
    if (error) return failed("keep", folder / name, error);
  }
  return absl::OkStatus();
}

}  // namespace busbar::storage
