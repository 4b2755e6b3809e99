#include "actors/core/error_bridge.hpp"

#include <caf/exit_reason.hpp>
#include <caf/message.hpp>
#include <caf/sec.hpp>

#include <array>
#include <cstddef>
#include <utility>

namespace busbar::core {
namespace {

constexpr std::array fault_codes = {
#define BUSBAR_FAULT(name, ...) fault::name,
#include "actors/core/faults.def"
#undef BUSBAR_FAULT
};
constexpr auto first_fault = static_cast<std::size_t>(error_code::first_fault);
static_assert(first_fault + fault_codes.size() <= 256, "CAF 0.17 keeps an error's code in one byte");

error_code code_of(fault code) {
  return static_cast<error_code>(first_fault + static_cast<std::size_t>(code));
}

std::optional<fault> fault_of_code(error_code code) {
  const auto number = static_cast<std::size_t>(code);
  if (number < first_fault || number >= first_fault + fault_codes.size()) return std::nullopt;
  return fault_codes[number - first_fault];
}

std::string text_in(const caf::error& error) {
  const caf::message& context = error.context();
  return context.match_elements<std::string>() ? context.get_as<std::string>(0) : std::string();
}

// What CAF itself reports about a request that got no answer from its receiver.
absl::StatusCode code_of(caf::sec reason) {
  const std::pair<caf::sec, absl::StatusCode> known[] = {
      {caf::sec::request_timeout, absl::StatusCode::kDeadlineExceeded},
      {caf::sec::request_receiver_down, absl::StatusCode::kUnavailable},
      {caf::sec::invalid_argument, absl::StatusCode::kUnavailable},  // a request to a null handle
      {caf::sec::bad_function_call, absl::StatusCode::kInternal},
      {caf::sec::runtime_error, absl::StatusCode::kInternal},
      {caf::sec::unexpected_message, absl::StatusCode::kUnimplemented},
  };
  for (const auto& [sec, code] : known) {
    if (sec == reason) return code;
  }
  return absl::StatusCode::kUnknown;
}

absl::Status foreign(const caf::error& error) {
  const std::string text = caf::to_string(error);
  if (error.category() == caf::make_error(caf::sec::request_timeout).category()) {
    const auto reason = static_cast<caf::sec>(error.code());
    return absl::Status(code_of(reason), "between actors: " + caf::to_string(reason));
  }
  if (error.category() == caf::make_error(caf::exit_reason::kill).category()) {
    return absl::UnavailableError("between actors: the receiver has stopped: " + text);
  }
  return absl::UnknownError("between actors: " + text);
}

}  // namespace

std::string to_string(error_code code) {
  if (const auto named = fault_of_code(code); named.has_value()) return std::string(name_of(*named));
  if (code == error_code::none) return "none";
  std::string text = absl::StatusCodeToString(static_cast<absl::StatusCode>(code));
  for (char& letter : text) {
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  }
  return text;
}

caf::error to_caf(const absl::Status& status) {
  if (status.ok()) return caf::none;
  const auto named = fault_of(status);
  const error_code code = named.has_value() ? code_of(*named) : static_cast<error_code>(status.code());
  return caf::error(code, std::string(status.message()));
}

absl::Status to_status(const caf::error& error) {
  if (!error) return absl::OkStatus();
  if (error.category() != caf::detail::error_factory<error_code>::category) return foreign(error);
  const auto code = static_cast<error_code>(error.code());
  const std::string text = text_in(error);
  if (const auto named = fault_of_code(code); named.has_value()) return make_fault(*named, text);
  return absl::Status(static_cast<absl::StatusCode>(code), text);
}

caf::error make_fault_error(fault code, std::string_view message) {
  return caf::error(code_of(code), std::string(message));
}

}  // namespace busbar::core
