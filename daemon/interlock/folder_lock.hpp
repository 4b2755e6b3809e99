// A folder that one interlock alone may use. The kernel's lock dies with the process, however it dies.
#pragma once

#include <absl/status/status.h>

#include <string>
#include <string_view>

namespace busbar::interlock {

class folder_lock {
 public:
  folder_lock() = default;
  ~folder_lock();
  folder_lock(const folder_lock&) = delete;
  folder_lock& operator=(const folder_lock&) = delete;

  // FAILED_PRECONDITION, naming the holder by what it wrote of itself, when another process holds it.
  absl::Status take(const std::string& path, std::string_view what, std::string_view who);

 private:
  int file_ = -1;
};

}  // namespace busbar::interlock
