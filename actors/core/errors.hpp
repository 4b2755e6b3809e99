// One fault vocabulary and two carriers of it: absl::Status in CAF-free code, caf::error between actors. The one map to gRPC
// codes is tested value by value (tests/unit/core).
#pragma once

#include <absl/status/status.h>

#include <optional>
#include <string>
#include <string_view>

namespace busbar::core {

enum class fault {
#define BUSBAR_FAULT(name, ...) name,
#include "actors/core/faults.def"
#undef BUSBAR_FAULT
};

// What `busbar explain` prints and what a condition, an error detail and an event all call by the same name.
struct fault_text {
  fault code;
  std::string_view name;
  absl::StatusCode status;       // canonical code at the edge
  std::string_view meaning;      // what it says about the device or request
  std::string_view evidence;     // where to look
  std::string_view next_step;    // what an operator does next
  std::string_view commands;     // ready to type, one a line
};

const fault_text& text_of(fault code);
std::string_view name_of(fault code);
std::optional<fault> fault_named(std::string_view name);

// A status that carries its fault; message says what was tried, on what, what came back, what to do next.
absl::Status make_fault(fault code, std::string_view message);
// The same with what was expected and what was seen there instead: pins, versions, values, as they are.
absl::Status make_fault(fault code, std::string_view message, std::string_view expected, std::string_view seen);
// The fault a status carries, if any.
std::optional<fault> fault_of(const absl::Status& status);
// Empty when the status carries none.
std::string expected_of(const absl::Status& status);
std::string seen_of(const absl::Status& status);

}  // namespace busbar::core
