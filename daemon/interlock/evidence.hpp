// The evidence of a trip: every reading of 10 s before it and 60 s after it, as it came, in a file whose
// blocks exist before the trip does. Eight files in turn; the oldest is written over, and its trip number
// with it.
//
// File: header of 64 bytes "BBEVID1\n" | trip u64 | monotonic ns of the trip i64 | wall ns of it i64 | rows
// u64 | zero; then rows of 64 bytes: monotonic ns i64 | value f64 | device 16 | point 32, texts zero-padded
// (a longer one is cut), integers and floats little-endian. A detector's value is 0 dry, 1 leak, NaN unknown;
// power 0 off, 1 on; a command -1; other values in the unit of their point's name.
#pragma once

#include <absl/status/status.h>

#include <array>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace busbar::interlock {

inline constexpr std::size_t evidence_row_size = 64;
inline constexpr std::size_t evidence_files = 8;
inline constexpr std::size_t evidence_rows_max = 65'536;  // of a file: 4 MiB

class evidence_recorder {
 public:
  evidence_recorder() = default;
  ~evidence_recorder();
  evidence_recorder(const evidence_recorder&) = delete;
  evidence_recorder& operator=(const evidence_recorder&) = delete;

  // Makes the files that are missing. An error leaves a recorder that keeps nothing; a trip goes on without
  // it.
  absl::Status open(const std::string& folder);

  void add(std::int64_t now_ns, std::string_view device, std::string_view point, double value);
  // Of a trip: what is held goes to the file with the next flush, what follows until 60 s after as it comes.
  // A further trip in that time is in the same file, whose end moves.
  void keep(std::uint64_t trip, std::int64_t now_ns, std::int64_t wall_ns);
  // Writes what waits; after commands and latches, never before. Syncs once, when the time is over.
  absl::Status flush(std::int64_t now_ns);
  bool keeping() const { return file_ >= 0; }

 private:
  struct row {
    std::int64_t at_ns = 0;
    double value = 0;
    std::array<char, 16> device{};
    std::array<char, 32> point{};
  };
  absl::Status write_header();
  absl::Status finish();

  std::string folder_;
  bool open_ = false;
  std::deque<row> before_;  // of the last 10 s, at most evidence_rows_max / 2
  std::vector<row> waiting_;
  int file_ = -1;
  std::uint64_t trip_ = 0;
  std::uint64_t rows_ = 0;
  std::int64_t tripped_ns_ = 0;
  std::int64_t tripped_wall_ns_ = 0;
  std::int64_t until_ns_ = 0;
  std::size_t next_file_ = 0;
};

}  // namespace busbar::interlock
