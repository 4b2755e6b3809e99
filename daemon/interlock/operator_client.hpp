// A person's way to the operator's socket: reset a latch, with a reason. One request, one answer, at most
// five seconds.
#pragma once

#include <absl/status/status.h>

#include <string>

namespace busbar::interlock {

// device: "r01/c07", or "*" to acknowledge a damaged latch file. Refused while its detectors are not dry and
// fresh.
absl::Status reset_latch(const std::string& operator_socket, const std::string& device,
                         const std::string& reason);

}  // namespace busbar::interlock
