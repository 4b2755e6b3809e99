// Between actors errors are caf::error, everywhere else absl::Status. The one bridge: code, fault name and text survive the
// round trip; what CAF itself reports (time-outs, dead receivers) gets the canonical code a client can act on.
#pragma once

#include <absl/status/status.h>

#include <caf/error.hpp>
#include <caf/make_message.hpp>
#include <caf/message.hpp>

#include <cstdint>
#include <string>

#include "actors/core/errors.hpp"

namespace busbar::core {

// One code for each canonical status (those without a fault), then one for each fault, by the fault's own name.
enum class error_code : std::uint8_t {
  none = 0,
  cancelled = 1, unknown = 2, invalid_argument = 3, deadline_exceeded = 4, not_found = 5, already_exists = 6,
  permission_denied = 7, resource_exhausted = 8, failed_precondition = 9, aborted = 10, out_of_range = 11,
  unimplemented = 12, internal = 13, unavailable = 14, data_loss = 15, unauthenticated = 16,
  first_fault = 32,  // a fault's code is first_fault + its place in faults.def
};

// "deadline_exceeded", or the fault's name.
std::string to_string(error_code code);

// none for an ok status.
caf::error to_caf(const absl::Status& status);
// Ok for none.
absl::Status to_status(const caf::error& error);
// A fault straight into a caf::error.
caf::error make_fault_error(fault code, std::string_view message);

}  // namespace busbar::core

CAF_ERROR_CODE_ENUM(busbar::core::error_code, "busbar")
