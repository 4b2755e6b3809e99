#include "actors/core/errors.hpp"

#include <absl/strings/cord.h>

#include <array>
#include <cstddef>

namespace busbar::core {
namespace {

constexpr std::string_view payload_url = "busbar/fault";
constexpr std::string_view expected_url = "busbar/expected";
constexpr std::string_view seen_url = "busbar/seen";

std::string payload_of(const absl::Status& status, std::string_view url) {
  const auto payload = status.GetPayload({url.data(), url.size()});
  return payload.has_value() ? std::string(*payload) : std::string();
}

constexpr auto fault_texts = std::to_array<fault_text>({
#define BUSBAR_FAULT(name, status, meaning, evidence, next_step, commands) \
  {fault::name, #name, absl::StatusCode::status, meaning, evidence, next_step, commands},
#include "actors/core/faults.def"
#undef BUSBAR_FAULT
});

}  // namespace

const fault_text& text_of(fault code) { return fault_texts[static_cast<std::size_t>(code)]; }

std::string_view name_of(fault code) { return text_of(code).name; }

std::optional<fault> fault_named(std::string_view name) {
  for (const fault_text& text : fault_texts) {
    if (text.name == name) return text.code;
  }
  return std::nullopt;
}

absl::Status make_fault(fault code, std::string_view message) {
  absl::Status status(text_of(code).status, {message.data(), message.size()});
  const std::string_view name = name_of(code);
  status.SetPayload({payload_url.data(), payload_url.size()}, absl::Cord({name.data(), name.size()}));
  return status;
}

absl::Status make_fault(fault code, std::string_view message, std::string_view expected, std::string_view seen) {
  absl::Status status = make_fault(code, message);
  status.SetPayload({expected_url.data(), expected_url.size()}, absl::Cord({expected.data(), expected.size()}));
  status.SetPayload({seen_url.data(), seen_url.size()}, absl::Cord({seen.data(), seen.size()}));
  return status;
}

std::string expected_of(const absl::Status& status) { return payload_of(status, expected_url); }

std::string seen_of(const absl::Status& status) { return payload_of(status, seen_url); }

std::optional<fault> fault_of(const absl::Status& status) {
  const auto payload = status.GetPayload({payload_url.data(), payload_url.size()});
  if (!payload.has_value()) return std::nullopt;
  return fault_named(std::string(*payload));
}

}  // namespace busbar::core
