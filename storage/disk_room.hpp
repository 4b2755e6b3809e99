// Whether a state folder can be opened at all: asked before anything in it is touched. RocksDB aborts the
// process when the disk fills up while it opens (an assertion of its file writer, 7.8), so room is made sure
// of first.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <functional>
#include <string>

namespace busbar::storage {

// A new manifest, log and options file, on top of what the recovered logs need to be flushed.
inline constexpr std::uint64_t room_to_open = 16ULL << 20;

// Bytes free to this user where the folder is, or where it would be made.
std::uint64_t free_bytes_at(const std::string& directory);

// STORE_READ_ONLY, with the folder, what is free and what to do: the file system is mounted read-only, or
// holds less than `room_to_open` and the logs of the store in `directory`. `free_bytes` empty: free_bytes_at.
// Changes nothing.
absl::Status check_room(const std::string& directory,
                        const std::function<std::uint64_t(const std::string&)>& free_bytes = {});

}  // namespace busbar::storage
