// Pages of one list are of one revision: the snapshot of the first page is kept for the others, as long as there is room.
#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "actors/core/snapshot_hub.hpp"

namespace busbar::rpc {

struct page_start {
  std::shared_ptr<const core::snapshot> state;
  std::size_t offset = 0;
};

class pages {
 public:
  explicit pages(std::size_t kept = 32) : limit_(kept) {}

  // query: what a token belongs to (method, parent, filter); a token of another is INVALID_ARGUMENT. ABORTED: the state of
  // its first page is gone, list again.
  absl::StatusOr<page_start> open(std::string_view token, std::string_view query,
                                  const std::shared_ptr<const core::snapshot>& now);
  // The token of the next page.
  std::string keep(const std::shared_ptr<const core::snapshot>& state, std::size_t offset, std::string_view query);

 private:
  const std::size_t limit_;
  std::mutex mutex_;
  std::deque<std::shared_ptr<const core::snapshot>> kept_;
};

// 0 is the server's choice; too much is cut down; less than nothing is INVALID_ARGUMENT.
absl::StatusOr<std::size_t> page_size(std::int32_t wanted);

}  // namespace busbar::rpc
