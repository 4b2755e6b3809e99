// The interlock's own key and the arming record at rest: AES-256-GCM, bound to rack and generation, replaced
// by atomic rename.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "busbar/interlock/interlock.pb.h"

namespace busbar::interlock {

using seal_key = std::array<unsigned char, 32>;

// 32 random bytes, mode 0600; refuses to overwrite (ALREADY_EXISTS).
absl::Status make_key_file(const std::string& path);

// Refuses a file that is not a regular file of exactly 32 bytes, or that anybody but its owner can touch.
absl::StatusOr<seal_key> read_key_file(const std::string& path);

// Layout: "BBSEAL1\n" | generation, 8 bytes big-endian | length of rack, 1 byte | rack | nonce 12 | tag 16 |
// ciphertext. All up to the nonce is the additional authenticated data, so a file moved to another rack or
// renumbered does not open.
absl::StatusOr<std::string> seal_record(const seal_key& key, const ArmingRecord& record);

// DATA_LOSS: damaged, foreign key, or tampered with. FAILED_PRECONDITION: of another rack.
absl::StatusOr<ArmingRecord> open_record(const seal_key& key, std::string_view sealed, std::string_view rack);

// Written beside, synced, renamed, folder synced: after OK the new content survives power loss, before it the
// old one stands.
absl::Status replace_file(const std::string& path, std::string_view content);

// NOT_FOUND when there is none; refuses files over 1 MiB.
absl::StatusOr<std::string> read_file(const std::string& path);

}  // namespace busbar::interlock
