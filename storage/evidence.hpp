// Evidence over 64 KiB: a file named by its digest, durable before anything names it.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <string>
#include <string_view>
#include <vector>

namespace busbar::storage {

// Written aside, synced, renamed, folder synced. The same content twice is one file. STORE_READ_ONLY if the disk refuses.
absl::Status write_evidence_file(const std::string& directory, std::string_view name, std::string_view bytes);
// Written aside, synced, renamed, folder synced: the old content or the new one, at any crash.
absl::Status replace_synced(const std::string& path, std::string_view bytes);
// Those that are there are unlinked, and what a crash left of writing them; then the folder is synced once.
absl::Status remove_evidence_files(const std::string& directory, const std::vector<std::string>& names);
// STORE_DAMAGED if the content no longer has the digest it is named by.
absl::StatusOr<std::string> read_evidence_file(const std::string& directory, std::string_view name);

}  // namespace busbar::storage
