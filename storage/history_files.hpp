// The files of one resolution of the history: pages appended to a file for each stretch of time, the oldest
// files deleted when they are too old or too many bytes. Not thread-safe. Nothing fails: what goes wrong is
// said and left out.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "storage/history_page.hpp"

namespace busbar::storage {

struct history_files_options {
  std::string directory;
  std::string prefix;         // "s", "m"
  std::int64_t span_s = 600;  // of one file
  std::int64_t kept_s = 0;
  std::uint64_t most_bytes = 0;
  std::uint64_t least_free = 0;  // of the disk, for others: what would leave less is not written
  std::function<void(const std::string& what)> say;
};

class history_files {
 public:
  // Finds the files that are there. The folder is there.
  explicit history_files(history_files_options options);

  void append(const page_header& header, std::string_view page);
  void trim(std::int64_t now_s);

  // Pages that may hold something of [from_s, to_s), file by file; false from `each` ends it.
  struct page_at {
    int file = -1;
    page_header header;
    std::uint64_t directory = 0;  // offsets in the file
    std::uint64_t blocks = 0;
  };
  void each_page(std::int64_t from_s, std::int64_t to_s, const std::function<void(const page_at&)>& each);
  // The block of one series; nullopt: it has none there, or a damaged one.
  static std::optional<block_values> find(const page_at& in, std::uint64_t key);
  // All of a page's series.
  static void each_series(const page_at& in,
                          const std::function<void(std::uint64_t key, const block_values&)>& each);

  std::optional<std::int64_t> oldest_s() const;  // where the first file begins
  std::uint64_t bytes() const;

 private:
  std::string path_of(std::int64_t start_s) const;
  // Bytes up to the end of the last whole page.
  std::uint64_t whole_bytes(int file, const std::string& path);
  void say(const std::string& what);
  bool remove_oldest();
  bool has_room(std::size_t bytes);

  const history_files_options options_;
  std::map<std::int64_t, std::uint64_t> files_;  // start -> bytes
  std::set<std::int64_t> checked_;               // of these the tail is whole
  std::set<std::string> said_;
};

}  // namespace busbar::storage
