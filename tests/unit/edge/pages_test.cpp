#include "daemon/busbard/rpc/pages.hpp"

#include <gtest/gtest.h>

namespace busbar::rpc {
namespace {

std::shared_ptr<const core::snapshot> state_at(std::uint64_t revision) {
  auto state = std::make_shared<core::snapshot>();
  state->position.set_revision(revision);
  return state;
}

TEST(pages, the_second_page_is_of_the_first_one_s_revision) {
  pages held;
  const auto first = state_at(5);
  const std::string token = held.keep(first, 2, "nodes");
  const auto next = held.open(token, "nodes", state_at(9));
  ASSERT_TRUE(next.ok());
  EXPECT_EQ(next->state, first);
  EXPECT_EQ(next->offset, 2u);
}

TEST(pages, a_token_belongs_to_its_list) {
  pages held;
  const auto state = state_at(5);
  const std::string token = held.keep(state, 2, "nodes");
  EXPECT_EQ(held.open(token, "shelves", state).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(held.open("nonsense", "nodes", state).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(pages, a_list_that_waited_too_long_begins_again) {
  pages held(1);
  const std::string token = held.keep(state_at(5), 2, "nodes");
  held.keep(state_at(6), 2, "nodes");
  EXPECT_EQ(held.open(token, "nodes", state_at(7)).status().code(), absl::StatusCode::kAborted);
}

TEST(pages, sizes_have_limits) {
  EXPECT_FALSE(page_size(-1).ok());
  EXPECT_GT(*page_size(0), 0u);
  EXPECT_EQ(*page_size(7), 7u);
  EXPECT_EQ(*page_size(1'000'000), 1000u);
}

}  // namespace
}  // namespace busbar::rpc
