// What a rack and its plant say to one another, on either side of the wire (proto/busbar/plant). Knows no CAF
// and no gRPC.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "busbar/journal/state.pb.h"

namespace busbar::plant {

// What a rack needs, for so long.
struct demand {
  std::string rack;
  std::optional<double> flow_lpm, heat_kw, valve_percent;
  bool short_of_flow = false;
  std::int64_t lease_ns = 10'000'000'000;
};

// How the rack's CDU does, as the plant sees it.
struct plant_view {
  std::string plant, cdu, mode, waits_for;
  journal::Health health = journal::HEALTH_UNKNOWN;
  std::optional<std::int64_t> reading_age_ns;  // of the values below; absent: nothing was read
  std::optional<double> supply_c, dp_kpa, flow_lpm, supply_set_point_c, dp_set_point_kpa;
  bool cooling_short = false;
  std::string short_why;
};

// The rack's end. The answer comes once, on any thread, within the port's own deadline.
class plant_port {
 public:
  virtual ~plant_port() = default;
  // Where the plant is served: unix:/path or host:port; empty: nowhere. Again with the same: nothing.
  virtual void connect(const std::string& address) = 0;
  virtual void renew(const demand& wanted, std::function<void(absl::StatusOr<plant_view>)> reply) = 0;
};

// The plant's end: finish() takes effect once. Dropped unfinished, it finishes with UNAVAILABLE. Thread-safe.
class demand_answer {
 public:
  virtual ~demand_answer() = default;
  virtual void finish(absl::StatusOr<plant_view> view) const = 0;
};
using demand_answer_ptr = std::shared_ptr<const demand_answer>;
using demand_ptr = std::shared_ptr<const demand>;

}  // namespace busbar::plant
