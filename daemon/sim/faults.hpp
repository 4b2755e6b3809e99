// What has been switched on against the simulated site, and what is in force at a given moment.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/sim/http_message.hpp"

namespace busbar::sim {

enum class fault_kind {
#define BUSBAR_SIM_FAULT(name, ...) name,
#include "daemon/sim/faults.def"
#undef BUSBAR_SIM_FAULT
};

// Which part of a member a kind may name. none: it concerns the member as a whole.
enum class fault_part {
  none,
  detector,   // r01/c01/0_ColdPlate, cdu01/r01_rope
  psu,        // psuN
  gpu,        // gpuN
  link,       // gpuN/nvlinkM
  card,       // nicN, gpuN
  component,  // of firmware
  sensor,     // of the CDU: supply, dp, level, r01_flow
  valve,      // supply, return, flow
  outlet,     // outletN
};

struct fault_text {
  fault_kind kind;
  std::string_view name;
  std::string_view targets;
  fault_part part;
  double severity;
  std::string_view meaning;
};

// Coolant of a burst reaches the detector below it so much later.
inline constexpr instant wetting_delay = std::chrono::seconds(2);

const std::vector<fault_text>& fault_table();
const fault_text& text_of(fault_kind kind);

struct fault_request {
  std::string kind;
  std::string target;  // r01/c07, r01/c07/gpu2, cdu01, cdu01/r01_rope
  instant delay{0};
  std::optional<instant> duration;  // none: until cleared
  std::optional<double> severity;
  std::string value;
};

struct fault {
  std::uint64_t id = 0;
  fault_kind kind{};
  std::string member;  // r01/c07
  std::string part;    // gpu2, a detector, a component; empty: the model's first
  double severity = 0;
  std::string value;
  instant from{0};
  std::optional<instant> until;
};

// r01/c07/gpu2/nvlink5 -> member r01/c07, part gpu2/nvlink5; cdu01/r01_rope -> cdu01, r01_rope.
struct fault_place {
  std::string member;
  std::string part;
};
fault_place place_of(const std::string& target);
// 1-based; 0: it stands in no rack.
int number_of_rack(const std::string& member);
// c, s, p, m for a rack's controller, o for a PDU (r01/u01), u for a CDU; ? when it is none of them.
char kind_letter(const std::string& member);
// Null when there is no kind of that name.
const fault_text* fault_named(std::string_view name);

class fault_book {
 public:
  absl::StatusOr<std::uint64_t> add(const fault_request& request, instant now);
  // An empty kind or target matches all; a kind that is a number is the one fault of that id. How many were
  // removed.
  std::size_t clear(std::string_view kind, std::string_view target);
  const std::vector<fault>& all() const { return faults_; }
  const fault* find(fault_kind kind, std::string_view member, instant now) const;
  // As find, and the fault's part is `part`, or it names none and `part` is `first`.
  const fault* find_part(fault_kind kind, std::string_view member, std::string_view part,
                         std::string_view first, instant now) const;
  std::optional<instant> next_change(instant now) const;

 private:
  std::vector<fault> faults_;
  std::uint64_t last_id_ = 0;
};

}  // namespace busbar::sim
