// The rack's word that one act which brings energy may go out now. It is asked once more where the request
// leaves for the device: between the word and the wire lie a commit, a mailbox and the device's queue, and
// the gate may close meanwhile. Shared by the rack, which gives it and takes it back, the node that was
// given it, and the driver's thread.
#pragma once

#include <atomic>

namespace busbar::node {

class permit_lease {
 public:
  bool holds() const noexcept { return !withdrawn_.load(std::memory_order_acquire); }
  // For good: what reopens the gate gives a new one.
  void withdraw() noexcept { withdrawn_.store(true, std::memory_order_release); }

 private:
  std::atomic<bool> withdrawn_{false};
};

}  // namespace busbar::node
