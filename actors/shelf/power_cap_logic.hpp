// A rack's power limit by caps on its GPUs: pure logic, no clock, no I/O.
//
// Three bands (Dynamo, ISCA 2016): above cap_at x limit the GPUs are capped so that the rack can draw no more
// than aim x limit; below uncap_at x limit, for as long as a hold time, the caps are released in steps.
// Between the two nothing moves. What can be drawn counts, not what is drawn: caps bound the sum of all GPUs,
// so the next load step cannot pass the limit either. Low priorities are cut first, down to what the devices
// take, never below.
//
// Unknown is never zero: a GPU without a proven cap counts with its most, a rack without a fresh measurement
// is capped.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace busbar::shelf {

// Watts at the rack's input side of the busbar. A share is of the limit.
struct cap_policy {
  double rack_limit_w = 0;
  double cap_at = 0.985;
  double aim = 0.95;
  double uncap_at = 0.90;
  // What everything but the GPUs may draw: CPUs, NICs, switches, pumps. Used where no measurement tells.
  double others_w = 0;
  double step_w = 10;                     // caps move in such steps
  std::int64_t stale_ns = 3'000'000'000;  // an older measurement is none
  std::int64_t hold_ns = 5'000'000'000;   // below uncap_at for so long before a release
  std::int64_t release_every_ns = 5'000'000'000;
  double release_share = 0.10;             // of the room, a release
  std::int64_t repeat_ns = 2'000'000'000;  // a cap that is not read back is asked again no sooner
};

struct gpu_limits {
  std::string name;             // "r01/c07/gpu2"
  int priority = 0;             // lower is cut first
  double min_w = 0, max_w = 0;  // what the device takes as a cap
};

// ---- events
struct rack_measured {
  std::optional<double> rack_w;  // none: the sensor said nothing usable
  std::optional<double> gpus_w;  // of that, all GPUs together
};
// Usable shelves: what they can deliver together, N+N or not. Lost or gained at any time.
struct supply_changed {
  double capacity_w = 0;
};
struct cap_read {  // read back from the device after a write of ours, or seen
  std::string gpu;
  std::optional<double> cap_w;
};
struct tick {};
using cap_event = std::variant<rack_measured, supply_changed, cap_read, tick>;

// ---- effects
struct set_cap {
  std::string gpu;
  double watts = 0;
};
enum class cap_condition { capped, measurement_stale, caps_not_enough };
struct condition_changed {
  cap_condition which;
  bool holds = false;
  double shortfall_w = 0;  // of caps_not_enough: what even the least caps leave over the limit
};
using cap_effect = std::variant<set_cap, condition_changed>;

struct gpu_state {
  gpu_limits limits;
  double wanted_w = 0;
  std::optional<double> proven_w;  // as read back; none: unknown, the GPU may draw its most
  std::optional<std::int64_t> asked_at_ns;
};

struct cap_state {
  cap_policy policy;
  double capacity_w = 0;
  std::map<std::string, gpu_state, std::less<>> gpus;
  std::optional<double> rack_w;
  std::optional<double> others_w;  // measured: rack less GPUs
  std::int64_t measured_at_ns = 0;
  bool ever_measured = false;
  std::optional<std::int64_t> low_since_ns;
  std::int64_t released_at_ns = 0;
  bool capped = false, stale = false;
  double shortfall_w = 0;

  double limit_w() const;     // the smaller of the rack's limit and what the shelves deliver
  double can_draw_w() const;  // all GPUs at their caps and the others as far as known
};

cap_state begin_caps(const cap_policy& policy, double capacity_w, const std::vector<gpu_limits>& gpus);
std::vector<cap_effect> step(cap_state& state, const cap_event& event, std::int64_t now_ns);

}  // namespace busbar::shelf
