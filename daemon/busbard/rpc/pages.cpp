#include "daemon/busbard/rpc/pages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "actors/core/digest.hpp"

namespace busbar::rpc {
namespace {

constexpr std::int32_t usual_page = 200;
constexpr std::int32_t largest_page = 1000;

std::string digest_of(std::string_view query) { return core::to_hex(core::sha256(query)).substr(0, 12); }

}  // namespace

absl::StatusOr<std::size_t> page_size(std::int32_t wanted) {
  if (wanted < 0) return absl::InvalidArgumentError("page_size is negative");
  return static_cast<std::size_t>(wanted == 0 ? usual_page : std::min(wanted, largest_page));
}

absl::StatusOr<page_start> pages::open(std::string_view token, std::string_view query,
                                       const std::shared_ptr<const core::snapshot>& now) {
  if (token.empty()) return page_start{now, 0};
  unsigned long long revision = 0;
  unsigned long long offset = 0;
  char digest[16] = {};
  const std::string text(token);
  if (std::sscanf(text.c_str(), "%llu-%llu-%12[0-9a-f]", &revision, &offset, digest) != 3 || digest_of(query) != digest) {
    return absl::InvalidArgumentError("the page token is not of this list");
  }
  if (now->position.revision() == revision) return page_start{now, offset};
  const std::lock_guard lock(mutex_);
  for (const auto& state : kept_) {
    if (state->position.revision() == revision) return page_start{state, offset};
  }
  return absl::AbortedError("the state that this list began with is no longer held; list again");
}

std::string pages::keep(const std::shared_ptr<const core::snapshot>& state, std::size_t offset, std::string_view query) {
  const std::uint64_t revision = state->position.revision();
  const std::lock_guard lock(mutex_);
  const bool held = std::any_of(kept_.begin(), kept_.end(), [revision](const auto& each) {
    return each->position.revision() == revision;
  });
  if (!held) kept_.push_back(state);
  if (kept_.size() > limit_) kept_.pop_front();
  return fmt::format("{}-{}-{}", revision, offset, digest_of(query));
}

}  // namespace busbar::rpc
