// Watch: one stream a client, from the present state or a position. One thread feeds all streams from the snapshot hub; a
// stream has one write in flight, and one that lags too far is ended with RESOURCE_EXHAUSTED (watch again from the last
// position seen).
#pragma once

#include <grpcpp/support/server_callback.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "actors/core/snapshot_hub.hpp"
#include "busbar/v1/busbar.pb.h"
#include "daemon/busbard/rpc/admission.hpp"
#include "daemon/busbard/rpc/views.hpp"
#include "daemon/busbard/rpc/worker.hpp"

namespace busbar::rpc {

struct watch_limits {
  std::size_t queue = 1024;                          // items of the hub that a client may lag behind
  std::size_t batch = 64;                            // taken from the hub at once
  std::chrono::milliseconds bookmark_interval{5000}; // at rest, for clients that asked
};

class watch_stream;

class watch_room {
 public:
  watch_room(std::shared_ptr<core::snapshot_hub> hub, views& shown, watch_limits limits);
  ~watch_room();

  // On gRPC's thread; the stream ends itself. context is valid until it does.
  grpc::ServerWriteReactor<v1::WatchResponse>* open(grpc::CallbackServerContext* context, const v1::WatchRequest& request,
                                                    ticket place);
  // Ends every stream with UNAVAILABLE; later ones end at once. The room must live until the server is gone.
  void end_all();
  std::size_t open_streams() const { return count_.load(); }

 private:
  friend class watch_stream;
  bool tick();

  const std::shared_ptr<core::snapshot_hub> hub_;
  views& shown_;
  const watch_limits limits_;
  std::atomic<bool> ending_{false};
  std::atomic<std::size_t> count_{0};
  std::set<std::shared_ptr<watch_stream>> streams_;  // pump's thread
  // Shared with the hub, which may be in the middle of waking it when this ends. Last: its thread uses what is above.
  const std::shared_ptr<worker> pump_;
};

}  // namespace busbar::rpc
