// What an arming record must be, and what busbard may change in one. Pure.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <string_view>

#include "busbar/interlock/interlock.pb.h"

namespace busbar::interlock {

// A record with the defaults written out.
struct limits {
  std::int64_t poll_min_ms = 250;
  std::int64_t poll_service_times = 8;
  std::int64_t stale_polls = 3;
  std::int64_t request_timeout_ms = 2000;
  std::int64_t reset_dry_s = 60;
  std::int64_t cut_after_ms = 2000;
  std::int64_t repeat_after_ms = 1000;
};

// The bounds no record leaves, not even by an operator: beyond them polling is no protection.
inline constexpr limits limits_floor{.poll_min_ms = 50,
                                     .poll_service_times = 1,
                                     .stale_polls = 1,
                                     .request_timeout_ms = 100,
                                     .reset_dry_s = 1,
                                     .cut_after_ms = 100,
                                     .repeat_after_ms = 100};
inline constexpr limits limits_ceiling{.poll_min_ms = 5000,
                                       .poll_service_times = 64,
                                       .stale_polls = 20,
                                       .request_timeout_ms = 30000,
                                       .reset_dry_s = 86400,
                                       .cut_after_ms = 10000,
                                       .repeat_after_ms = 5000};
inline constexpr std::int64_t confirm_max_ms = 3000;
inline constexpr std::int64_t coolant_confirm_max_ms = 10000;
inline constexpr std::int64_t stroke_min_ms = 10;
inline constexpr std::int64_t stroke_max_ms = 120'000;
inline constexpr int valves_max = 8;
inline constexpr int devices_max = 64;
inline constexpr int detectors_max = 64;

limits limits_of(const ArmingRecord& record);

// Whole and meant for this rack: INVALID_ARGUMENT with the first thing wrong.
absl::Status check_record(const ArmingRecord& record, std::string_view rack);

// Whether `next` may replace `held` by busbard's word alone: a newer generation (or the very same record
// again), every device, detector and valve kept, no limit wider, no detector believed later.
// FAILED_PRECONDITION otherwise. A device's address, pin and account are busbard's to change: they say where
// the same detectors are read, and a wrong one leaves the tray not armed and its gate closed.
absl::Status check_restricts(const ArmingRecord& held, const ArmingRecord& next);

// The roll-back rule alone, which no operator overrides.
absl::Status check_generation(const ArmingRecord& held, const ArmingRecord& next);

bool same_record(const ArmingRecord& left, const ArmingRecord& right);

}  // namespace busbar::interlock
