// The store on disk: RocksDB with small-database options, one owner. RocksDB's headers stay behind rocks_store.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "storage/store.hpp"

namespace rocksdb {
class FileSystem;
}

namespace busbar::storage {

struct rocks_options {
  std::string directory;                        // made if absent; one owner at a time
  std::uint64_t low_water_bytes = 512ULL << 20;  // free space below which the store asks to shed old events
  std::uint64_t stop_bytes = 64ULL << 20;        // free space below which only safety writes are taken
  std::uint64_t ballast_bytes = 8ULL << 20;      // reserved file, given up for 1,000 trip records on a full disk; 0: none
  std::uint64_t wal_bytes = 64ULL << 20;         // bound of the write-ahead log, hence of the replay at start
  bool logs_were_cut = false;                    // cut_lost_tail() was here: logs end earlier than the manifest says
  std::shared_ptr<rocksdb::FileSystem> file_system;            // tests: injects faults; absent: the machine's
  std::function<std::uint64_t(const std::string&)> free_bytes;  // tests; absent: statvfs of the directory
};

// STORE_DAMAGED if the files cannot be read or a log is damaged where it was acknowledged (wal_check.hpp), STORE_READ_ONLY if the
// disk has no room to open (disk_room.hpp), ALREADY_EXISTS if another process holds them. None of these changes anything.
absl::StatusOr<std::unique_ptr<store>> open_rocks_store(rocks_options options);

// A consistent copy by hard links into a folder that must not exist, of a store that may be in use (support bundle, upgrade).
absl::Status checkpoint_rocks_store(store& source, const std::string& directory);

}  // namespace busbar::storage
