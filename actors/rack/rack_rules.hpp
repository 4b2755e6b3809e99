// The rules a rack decides by: what opens each step, what host power needs, what a proven fabric is. Pure
// functions over the members' last durable states; each refusal is a fault with words for the operator.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "actors/core/clock.hpp"
#include "actors/core/errors.hpp"
#include "actors/devices/bmc.hpp"
#include "actors/rack/interlock_port.hpp"
#include "busbar/journal/state.pb.h"

namespace busbar::rack {

using member_map = std::map<std::string, std::shared_ptr<const journal::Node>>;

// Flow and pressure have to be in band this long before they count as proven.
constexpr std::int64_t flow_soak_ns = 10'000'000'000;
// A cooling reading older than this says nothing any more (polled once a second).
constexpr std::int64_t cooling_stale_ns = 4'000'000'000;
// Own figures for the power budget until trays are measured under their caps: peak draw, kW.
constexpr double compute_tray_peak_kw = 6.5;
constexpr double switch_tray_peak_kw = 3.0;
constexpr unsigned most_blind_trays = 6;

// What is known of cooling, with the time since when it has been in band.
struct cooling_state {
  std::optional<devices::cooling_facts> facts;
  std::int64_t read_at_ns = 0;
  std::int64_t in_band_since_ns = core::never_ns;
  absl::Status last_error;
};

void take_cooling(cooling_state& state, const journal::CoolingSpec& limits,
                  const absl::StatusOr<devices::cooling_facts>& read, core::instant now);

struct refusal {
  core::fault code;
  std::string why;
};

// Nothing when the thing is proven; else what is missing.
std::optional<refusal> flow_not_proven(const cooling_state& state, const journal::CoolingSpec& limits,
                                       core::instant now);
// The interlock holds an older arming record than the one the journal says it had, or none
// (rack_interlock.cpp).
std::optional<refusal> record_is_old(const journal::Rack& rack, const interlock_view& heard);
// The interlock's latch file ends below a line that was seen of it: what lies between is not known
// (rack_interlock.cpp).
std::optional<refusal> latches_are_old(const journal::Rack& rack, const interlock_view& heard);
std::optional<refusal> rack_detectors_not_dry(const cooling_state& state, core::instant now);

// A trip of this very scope (the rack's name or a member's) that no person has reset; null: none is known.
const interlock::TripStatus* open_trip(const interlock_view* heard, std::string_view scope);
// The one that holds this member down: its own or the rack's.
const interlock::TripStatus* trip_over(const interlock_view* heard, std::string_view rack,
                                       std::string_view member);
// "trip 12 of r01 (no flow): 80.0, limit 120.0": words that stay the same while it is open.
std::string trip_words(const interlock::TripStatus& trip);
std::string_view words_of(interlock::Cause cause);

std::string step_word(journal::RackStep step);
bool is_failed(const journal::Node& node);
// Nothing of it draws power: read back off, or never turned on by us and never read on. Of what a trip took and
// nobody has read since, nothing is known. A rack controller has nothing that could be on.
bool is_off(const journal::Node& node);
bool is_tray(const journal::Node& node);  // compute or switch: it has a host, detectors, NVLinks
std::vector<std::shared_ptr<const journal::Node>> of_kind(const member_map& members,
                                                          journal::MemberKind kind);
std::uint32_t count_not_failed(const member_map& members, journal::MemberKind kind);

// production | degraded | cordoned, by what has not failed.
std::string ceiling_of(const journal::RackSpec& spec, const member_map& members);

// What the arrow out of a step still waits for; empty when its member guard is open.
std::string members_wait(journal::RackStep from, const journal::RackSpec& spec, const member_map& members);

// How far a member should go while the rack stands at `step`.
journal::NodeStep goal_of(journal::RackStep step, const journal::Rack& rack, const journal::Node& member);

// kW that would be drawn at most with one more member of this kind on, those promised power included; refused
// above the manifest's limit or what the shelves that are on can give.
std::optional<refusal> over_budget(const journal::RackSpec& spec, const member_map& members,
                                   const std::set<std::string>& promised, const journal::Node& next);

// The fabric read from both sides: one primary, one clique and partition, every GPU's links up, as many ports
// up on the switch side as links on the GPU side.
std::optional<refusal> fabric_not_proven(const journal::RackSpec& spec, const member_map& members,
                                         const std::map<std::string, devices::nvlink_facts>& read);

}  // namespace busbar::rack
