// The one bridge, value by value.
#include <gtest/gtest.h>

#include <caf/exit_reason.hpp>
#include <caf/sec.hpp>

#include <set>
#include <string>

#include "actors/core/error_bridge.hpp"

namespace busbar::core {
namespace {

constexpr fault all_faults[] = {
#define BUSBAR_FAULT(name, ...) fault::name,
#include "actors/core/faults.def"
#undef BUSBAR_FAULT
};

TEST(error_bridge, every_fault_keeps_name_code_and_text) {
  for (const fault code : all_faults) {
    const absl::Status before = make_fault(code, "tried, on r01/c07, and so on");
    const absl::Status after = to_status(to_caf(before));
    EXPECT_EQ(fault_of(after), code);
    EXPECT_EQ(after.code(), before.code()) << name_of(code);
    EXPECT_EQ(after.message(), before.message());
    EXPECT_EQ(to_status(make_fault_error(code, "tried, on r01/c07, and so on")), before);
  }
}

TEST(error_bridge, every_canonical_code_without_a_fault_survives) {
  for (int code = 1; code <= 16; ++code) {
    const absl::Status before(static_cast<absl::StatusCode>(code), "why");
    const absl::Status after = to_status(to_caf(before));
    EXPECT_EQ(after, before);
    EXPECT_FALSE(fault_of(after).has_value());
  }
}

TEST(error_bridge, ok_is_no_error_and_back) {
  EXPECT_FALSE(to_caf(absl::OkStatus()));
  EXPECT_TRUE(to_status(caf::none).ok());
}

TEST(error_bridge, every_code_has_a_name_of_its_own) {
  std::set<std::string> names;
  std::size_t codes = 0;
  for (int code = 0; code <= 16; ++code, ++codes) names.insert(to_string(static_cast<error_code>(code)));
  for (const fault code : all_faults) {
    names.insert(to_string(static_cast<error_code>(to_caf(make_fault(code, "")).code())));
    ++codes;
  }
  EXPECT_EQ(names.size(), codes);
  EXPECT_EQ(to_string(error_code::deadline_exceeded), "deadline_exceeded");
}

TEST(error_bridge, what_caf_reports_gets_a_code_a_client_can_act_on) {
  EXPECT_EQ(to_status(caf::make_error(caf::sec::request_timeout)).code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(to_status(caf::make_error(caf::sec::request_receiver_down)).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(to_status(caf::make_error(caf::sec::invalid_argument)).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(to_status(caf::make_error(caf::sec::runtime_error)).code(), absl::StatusCode::kInternal);
  EXPECT_EQ(to_status(caf::make_error(caf::sec::unexpected_message)).code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(to_status(caf::make_error(caf::exit_reason::kill)).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(to_status(caf::make_error(caf::sec::end_of_stream)).code(), absl::StatusCode::kUnknown);
}

}  // namespace
}  // namespace busbar::core
