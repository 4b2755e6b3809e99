#include "actors/core/errors.hpp"

#include <absl/strings/cord.h>
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace busbar::core {
namespace {

constexpr auto every_fault = std::to_array<fault>({
#define BUSBAR_FAULT(name, ...) fault::name,
#include "actors/core/faults.def"
#undef BUSBAR_FAULT
});

// The map to canonical codes, value by value: what kind of trouble each fault is. One that is not named here must be
// FAILED_PRECONDITION (mend the state first); a new fault of another kind gets a line here.
const std::map<fault, absl::StatusCode> other_kinds = {
    {fault::SPEC_INVALID, absl::StatusCode::kInvalidArgument},
    {fault::IDENTITY_NO_ROW, absl::StatusCode::kNotFound},
    {fault::UNKNOWN_TARGET, absl::StatusCode::kNotFound},
    {fault::REQUEST_ID_REUSED, absl::StatusCode::kAlreadyExists},
    {fault::CREDENTIAL_FACTORY_REFUSED, absl::StatusCode::kPermissionDenied},
    {fault::BMC_FORBIDDEN, absl::StatusCode::kPermissionDenied},
    {fault::CREDENTIAL_LOCKED_OUT, absl::StatusCode::kResourceExhausted},
    {fault::SESSION_LIMIT, absl::StatusCode::kResourceExhausted},
    {fault::WATCH_OVERFLOW, absl::StatusCode::kResourceExhausted},
    {fault::PREEMPTED, absl::StatusCode::kAborted},
    {fault::OPERATION_CONFLICT, absl::StatusCode::kAborted},
    {fault::LEASE_HELD, absl::StatusCode::kAborted},
    {fault::SETPOINT_LIMIT, absl::StatusCode::kInvalidArgument},
    {fault::PLANT_LOST, absl::StatusCode::kUnavailable},
    {fault::POSITION_OUT_OF_RANGE, absl::StatusCode::kOutOfRange},
    {fault::BMC_UNREACHABLE, absl::StatusCode::kUnavailable},
    {fault::PDU_UNREACHABLE, absl::StatusCode::kUnavailable},
    {fault::POWER_LOST, absl::StatusCode::kUnavailable},
    {fault::POWER_MEASUREMENT_STALE, absl::StatusCode::kUnavailable},
    {fault::VALVE_UNPROVEN, absl::StatusCode::kUnknown},
    {fault::OUTLET_UNPROVEN, absl::StatusCode::kUnknown},
    {fault::AGENT_LOST, absl::StatusCode::kUnavailable},
    {fault::FIRMWARE_TASK_LOST, absl::StatusCode::kUnavailable},
    {fault::STORE_READ_ONLY, absl::StatusCode::kUnavailable},
    {fault::BMC_SLOW, absl::StatusCode::kDeadlineExceeded},
    {fault::BOOT_TIMEOUT, absl::StatusCode::kDeadlineExceeded},
    {fault::AGENT_NOT_SEEN, absl::StatusCode::kDeadlineExceeded},
    {fault::POWER_OFF_NOT_CONFIRMED, absl::StatusCode::kDeadlineExceeded},
    {fault::POWER_ON_NOT_CONFIRMED, absl::StatusCode::kDeadlineExceeded},
    {fault::FIRMWARE_ACTIVATION, absl::StatusCode::kDeadlineExceeded},
    {fault::DEADLINE, absl::StatusCode::kDeadlineExceeded},
    {fault::BMC_BAD_DATA, absl::StatusCode::kDataLoss},
    {fault::STORE_DAMAGED, absl::StatusCode::kDataLoss},
    {fault::VAULT_DAMAGED, absl::StatusCode::kDataLoss},
};

absl::StatusCode expected_status(fault code) {
  const auto found = other_kinds.find(code);
  return found == other_kinds.end() ? absl::StatusCode::kFailedPrecondition : found->second;
}

TEST(errors, every_fault_says_what_it_means_and_what_to_do) {
  for (const fault code : every_fault) {
    const fault_text& text = text_of(code);
    EXPECT_EQ(text.code, code);
    EXPECT_FALSE(text.name.empty());
    for (const auto part : {text.meaning, text.evidence, text.next_step, text.commands}) {
      EXPECT_FALSE(part.empty()) << text.name;
    }
    EXPECT_EQ(text.meaning.back(), '.') << text.name;
    EXPECT_EQ(text.next_step.back(), '.') << text.name;
  }
}

TEST(errors, no_two_faults_share_a_name) {
  std::set<std::string_view> names;
  for (const fault code : every_fault) EXPECT_TRUE(names.insert(name_of(code)).second) << name_of(code);
  EXPECT_EQ(names.size(), every_fault.size());
}

TEST(errors, a_name_leads_back_to_its_fault) {
  for (const fault code : every_fault) EXPECT_EQ(fault_named(name_of(code)), code);
  EXPECT_EQ(fault_named("NO_SUCH_FAULT"), std::nullopt);
  EXPECT_EQ(fault_named(""), std::nullopt);
}

TEST(errors, a_status_carries_its_fault_and_message) {
  for (const fault code : every_fault) {
    const absl::Status status = make_fault(code, "tried X on r01/c07");
    EXPECT_FALSE(status.ok());
    EXPECT_EQ(fault_of(status), code);
    EXPECT_EQ(status.message(), "tried X on r01/c07");
  }
}

TEST(errors, each_fault_has_the_canonical_code_of_its_kind_of_trouble) {
  for (const fault code : every_fault) {
    EXPECT_EQ(make_fault(code, "").code(), expected_status(code)) << name_of(code);
  }
}

TEST(errors, a_foreign_status_carries_no_fault) {
  EXPECT_EQ(fault_of(absl::OkStatus()), std::nullopt);
  EXPECT_EQ(fault_of(absl::NotFoundError("DEADLINE")), std::nullopt);
  absl::Status forged = absl::InternalError("x");
  forged.SetPayload("busbar/fault", absl::Cord("NOT_A_FAULT"));
  EXPECT_EQ(fault_of(forged), std::nullopt);
}

}  // namespace
}  // namespace busbar::core
