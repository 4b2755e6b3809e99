// What the trips of a rack can command and what they wait for, drawn from an arming record. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "busbar/interlock/interlock.pb.h"

namespace busbar::interlock {

inline constexpr std::int64_t ms_in_ns = 1'000'000;
inline constexpr std::int64_t s_in_ns = 1'000 * ms_in_ns;

enum class target_kind { tray, shelf, valve };

// One thing that a trip commands. There is one command for each kind, and each takes energy or liquid away:
// ForceOff of a tray, ForceOff of a shelf, Closed of a valve.
struct trip_target {
  std::string key;     // "r01/c07", "r01/p01", "r01/m01/supply"
  std::string device;  // whose connection carries the command
  std::string valve;   // name at that device; else empty
  target_kind kind = target_kind::tray;
  std::int64_t stroke_ns = 0;
};

struct trip_plan {
  std::string rack;
  std::vector<trip_target>
      targets;  // compute trays, switch trays, valves, shelves; each in the record's order
  std::set<std::string> rack_sensors;  // devices whose leak is a leak of the rack
  std::map<std::string, std::map<std::string, std::int64_t>> confirm_ns;  // device, detector
  std::optional<double> flow_min_lpm;
  std::optional<double> supply_max_c;
  std::optional<double> pressure_max_kpa;
  std::int64_t coolant_confirm_ns = s_in_ns;
  std::int64_t cut_after_ns = 2 * s_in_ns;
  std::int64_t repeat_after_ns = s_in_ns;
};

bool is_tray(const ArmedDevice& device);
bool is_rack_sensor(const ArmedDevice& device);  // of a kind whose detectors are the rack's

trip_plan plan_of(const ArmingRecord& record);

// What a trip does with this record, and what it cannot do: for a Status.
Status::Trips extent_of(const trip_plan& plan);
std::string describe(const trip_plan& plan);

// What a cause makes a trip of the whole rack do, besides turning every tray off.
struct cause_rule {
  bool closes_valves = false;
  bool cuts_shelves = false;
};
cause_rule rule_of(Cause cause);
std::string_view name_of(Cause cause);

}  // namespace busbar::interlock
