// The interlock's memory of leaks: a preallocated file of numbered records of 512 bytes, each with its CRC,
// synced one by one. Its blocks exist before a leak does, so a full disk does not lose one. busbard imports
// records by number.
//
// Record: "BBLT" | crc32 of all after it | number u64 | kind u32 | wall ns i64 | device 32 | detector 64 |
// principal 64 | detail 128 | trip u64 | cause u32 | until wall ns i64, texts zero-terminated, integers
// little-endian, the rest zero (so are the last three in records of before there were trips). An unused
// record is all zero.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "busbar/interlock/interlock.pb.h"

namespace busbar::interlock {

inline constexpr std::size_t latch_record_size = 512;
inline constexpr std::size_t latch_records_max = 1024;

std::string encode_latch(const Latch& line);
// Empty: all zero (unused) gives ok with no value; anything else that does not check gives DATA_LOSS.
absl::StatusOr<std::optional<Latch>> decode_latch(std::string_view record);

class latch_file {
 public:
  latch_file() = default;
  ~latch_file();
  latch_file(const latch_file&) = delete;
  latch_file& operator=(const latch_file&) = delete;

  // Opens or creates. damage() tells of records that did not check, and of a LOST line, that no later RESET
  // of
  // "*" acknowledged: what was latched is not known, so the caller keeps every gate closed. An error means
  // that there is no file to write to. lost_if_missing: where a file is expected, the LOST line that a new
  // one begins with, so that the loss outlives this process as well; empty: a first start.
  absl::Status open(const std::string& path, std::string_view lost_if_missing = {});

  const std::vector<Latch>& lines() const { return lines_; }
  const std::string& damage() const { return damage_; }

  // Durable when it returns OK. Writing a number a second time (an earlier try failed) uses the same place.
  // When the file is full it is first replaced by one that holds only the open latches and the last 64 lines.
  // sync false: kept by the kernel, so that it outlives this process but not the host; the next synced line
  // takes it along.
  absl::Status append(const Latch& line, bool sync = true);

 private:
  absl::Status create(const std::string& path, std::string_view lost) const;
  absl::Status read_all();
  absl::Status compact();
  bool is_needed(std::size_t index) const;
  absl::Status write_at(std::size_t index, const Latch& line, bool sync) const;

  std::string path_;
  int fd_ = -1;
  std::size_t next_ = 0;      // index of the first unused record
  std::vector<Latch> lines_;  // as on disk
  std::string damage_;
  bool spoiled_ = false;  // by records that did not check; a LOST line is kept as it is
};

}  // namespace busbar::interlock
