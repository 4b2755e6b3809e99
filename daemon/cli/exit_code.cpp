#include "daemon/cli/exit_code.hpp"

#include <absl/status/status.h>

#include <algorithm>
#include <array>

namespace busbar::cli {
namespace {

// Least telling first.
constexpr auto order = std::to_array<exit_code>(
    {exit_code::done, exit_code::no, exit_code::unknown, exit_code::conflict, exit_code::timeout,
     exit_code::not_permitted, exit_code::usage, exit_code::unreachable});

}  // namespace

exit_code worst(exit_code a, exit_code b) {
  const auto place = [](exit_code code) { return std::find(order.begin(), order.end(), code); };
  return place(a) < place(b) ? b : a;
}

exit_code worst(std::initializer_list<exit_code> codes) {
  exit_code result = exit_code::done;
  for (const exit_code code : codes) result = worst(result, code);
  return result;
}

exit_code exit_code_of(int code, std::string_view fault) {
  switch (static_cast<absl::StatusCode>(code)) {
    case absl::StatusCode::kOk:
      return exit_code::done;
    case absl::StatusCode::kCancelled:
      return exit_code::no;
    case absl::StatusCode::kNotFound:  // a name that nobody holds: the command is wrong, like a mistyped verb
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kUnimplemented:
      return exit_code::usage;
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
      return exit_code::not_permitted;
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kResourceExhausted:
      return exit_code::conflict;
    case absl::StatusCode::kDeadlineExceeded:
      return exit_code::timeout;
    case absl::StatusCode::kUnavailable:
      return fault.empty() || fault == "BMC_UNREACHABLE" ? exit_code::unreachable : exit_code::conflict;
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kDataLoss:
    case absl::StatusCode::kDoNotUseReservedForFutureExpansionUseDefaultInSwitchInstead_:
      break;
  }
  return exit_code::unknown;
}

std::span<const exit_text> exit_texts() {
  static constexpr auto texts = std::to_array<exit_text>({
      {exit_code::done, "done"},
      {exit_code::no, "what you asked is false or unhealthy"},
      {exit_code::usage, "the command, a name in it or its files are wrong; nothing was done"},
      {exit_code::unknown, "unknown: it could not be decided"},
      {exit_code::not_permitted, "you are not permitted to do this"},
      {exit_code::conflict, "conflict or precondition: something stands against it now"},
      {exit_code::timeout, "the time allowed was over"},
      {exit_code::unreachable, "a daemon or device did not answer"},
  });
  return texts;
}

}  // namespace busbar::cli
