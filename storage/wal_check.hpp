// The store's write-ahead logs, read as RocksDB wrote them, before RocksDB reads them. A record that a crash
// cut off at the very end was never acknowledged, and RocksDB drops it. Everything else that does not fit (a
// flipped bit, a hole, zeros) stands where acknowledged changes stood: RocksDB's own recovery modes stop
// there, or skip it, without a word (a damaged length in the last 32 KiB passes for a cut-off record, a run
// of zeros for padding).
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace busbar::storage {

struct log_damage {
  std::size_t offset = 0;  // of the damaged record's beginning: all before it is whole
  std::string what;
};

// Of one log's bytes. Nothing: whole, or cut off in its last record.
std::optional<log_damage> find_damage(std::string_view log);

// STORE_DAMAGED names the first damaged log and the ways out. Also while an acceptance of a lost tail is not
// finished.
absl::Status check_logs(const std::string& store_directory);

// What a person accepted by --accept-lost-tail: the first damaged log ends before its damage, later logs are
// gone, and all that was taken is kept aside as cut-NAME. Answers what was lost, for people; empty: no log is
// damaged. Until finish_cut() the store is refused by check_logs, so that no crash hides the loss.
absl::StatusOr<std::string> cut_lost_tail(const std::string& store_directory);
// The loss is on record: what was kept aside is kept as lost-NAME.
absl::Status finish_cut(const std::string& store_directory);

}  // namespace busbar::storage
