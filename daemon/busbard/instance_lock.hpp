// One daemon an instance, and one a state folder: locks that go with the process, whatever way it ends.
#pragma once

#include <absl/status/status.h>

#include <filesystem>
#include <string>
#include <string_view>

namespace busbar::daemon {

class instance_lock {
 public:
  instance_lock() = default;
  ~instance_lock();
  instance_lock(const instance_lock&) = delete;
  instance_lock& operator=(const instance_lock&) = delete;

  // Takes busbard.lock in a folder that is there. ALREADY_EXISTS in words: which process of which instance
  // holds it. what: the folder's part in the sentence, "state folder"; who: what the next one is told of this
  // process.
  absl::Status take(const std::filesystem::path& folder, std::string_view what, const std::string& who);

 private:
  int file_ = -1;
};

// The folder of the sockets: others may look into it, whatever the umask; the sockets keep their own modes.
absl::Status make_run_folder(const std::filesystem::path& folder);

// A folder whose content is this user's alone: made with mode 0700. One that was open to others (made by an
// older release) is closed, its files and folders with it.
absl::Status make_private_folder(const std::filesystem::path& folder);

}  // namespace busbar::daemon
