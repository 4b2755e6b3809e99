// A rack's end of the wire to its plant. Calls may come from any thread; answers come on gRPC's. One call at
// a time: while one is open the next is answered UNAVAILABLE at once, and the one after the deadline finds
// the plant again by itself.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "actors/plant/plant_port.hpp"

namespace busbar::rpc {

struct plant_wire {
  // For host:port, where TLS is mutual: the daemon's own files. Empty: only Unix sockets can be reached.
  std::string ca_file, cert_file, key_file;
  std::chrono::milliseconds deadline{1'500};
};

class plant_client final : public plant::plant_port {
 public:
  explicit plant_client(plant_wire wire);
  ~plant_client() override;
  // Ends the open call, waits until its answer is given, and takes no more. Never from within an answer.
  void stop();

  // unix:/path or host:port; another one than before is connected to anew. Any thread.
  void connect(const std::string& address) override;
  void renew(const plant::demand& wanted,
             std::function<void(absl::StatusOr<plant::plant_view>)> reply) override;

 private:
  struct line;
  const plant_wire wire_;
  const std::shared_ptr<line> line_;
};

}  // namespace busbar::rpc
