// The one way to read a small file of a site: a regular file, of bounded size. A folder, a device or a pipe
// is an error, not a hang or an endless read. Blocks: a worker's, or at start.
#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <string>

namespace busbar::core {

constexpr std::size_t small_file_bytes = 1U << 20U;              // passwords, leases, settings
constexpr std::size_t image_file_bytes = std::size_t{2} << 30U;  // firmware

// NOT_FOUND, or FAILED_PRECONDITION with the path and what it is instead.
absl::StatusOr<std::string> read_regular_file(const std::string& path, std::size_t most_bytes);

}  // namespace busbar::core
