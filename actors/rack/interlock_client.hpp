// busbard's end of the interlock's socket. Its own thread and one poll loop; reconnects by itself with a
// back-off of 50 ms to 1 s; no call blocks the caller. Callbacks run on that thread (or inline, when the
// request is refused at the door): they may send messages, they must not destroy the client. Destroying it
// answers what is open with CANCELLED.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "actors/rack/interlock_port.hpp"

namespace busbar::rack {

class interlock_client final : public interlock_port {
 public:
  explicit interlock_client(std::string socket_path, observer watcher = {});
  ~interlock_client() override;
  interlock_client(const interlock_client&) = delete;
  interlock_client& operator=(const interlock_client&) = delete;

  // Each answers within 5 s: DEADLINE_EXCEEDED or UNAVAILABLE when the interlock does not. All three may be
  // repeated.
  void arm(const interlock::ArmingRecord& record, done reply) override;
  void announce_blind_window(std::string device, std::chrono::milliseconds length, done reply) override;
  void read_latches(std::uint64_t after,
                    std::function<void(absl::Status, std::vector<interlock::Latch>)> reply) override;

  std::shared_ptr<const interlock_view> last() const override;
  void observe(observer watcher) override;

 private:
  class loop;
  std::unique_ptr<loop> loop_;
};

}  // namespace busbar::rack
