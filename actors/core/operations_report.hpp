// What the owner of an operation reports about it. Plain structs; knows no CAF.
#pragma once

#include <string>

namespace busbar::core {

// One row of an operation, as far as it has got. Empty step and message leave what stood there; RUNNING and SUCCEEDED clear
// the fault.
struct component_update {
  std::string operation_id;  // "operations/12"
  std::string target;        // "r01/c07"; a target that was not declared is ignored and counted
  std::string state;         // RUNNING | SUCCEEDED | FAILED | CANCELLED
  std::string step;          // last step reached
  std::string fault;
  std::string message;
};

// The owner is done with it. SUCCEEDED stands only if every declared row is SUCCEEDED; otherwise it becomes FAILED.
struct operation_end {
  std::string operation_id;
  std::string state;  // SUCCEEDED | FAILED | CANCELLED
  std::string fault;
  std::string message;
};

}  // namespace busbar::core
