// Rules that the interlock's events and its Status share. Private to interlock_logic.
#pragma once

#include <string>
#include <vector>

#include "daemon/interlock/interlock_logic.hpp"

namespace busbar::interlock {

using effects = std::vector<effect>;

inline constexpr std::size_t reason_max = 127;  // what a line of the latch file holds
inline constexpr std::int64_t bypass_max_s = 8 * 3600;

device_state* find_device(state& of, const std::string& name);
bool is_blind(const device_state& device, std::int64_t now_ms);
// The verdict of one needed detector; what was not read is unknown.
reading reading_of(const device_state& device, const std::string& detector);
// Why a device is not armed; empty when it is.
std::string why_not_armed(const state& of, const device_state& device, std::int64_t now_ms);
// Every detector that is not bypassed.
bool all_dry(const state& of, const device_state& device);
// Why the gate of an armed device is closed; empty when it is open.
std::string why_gate_closed(const state& of, const device_state& device, std::int64_t now_ms);
std::string why_rack_not_armed(const state& of);

void refuse(effects& out, std::uint64_t request, absl::Status status, std::string fault = {});
// Feeds trip_logic and runs what it wants: commands first, then a heartbeat, then the latch file.
void run_trips(state& of, const trip_event& what, std::int64_t now_ms, effects& out);
void on_trip_requested(state& of, const trip_requested& what, std::int64_t now_ms, effects& out);
void on_bypass_asked(state& of, const bypass_asked& what, std::int64_t now_ms, effects& out);
// Whether a person may reset this now.
absl::Status check_reset(state& of, const reset_asked& what, std::int64_t now_ms);

}  // namespace busbar::interlock
