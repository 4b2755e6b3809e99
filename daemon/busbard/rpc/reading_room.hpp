// WatchReadings: one stream a client, from the board of readings. Latest wins: an answer holds what changed since the last
// one, as it is now; a client that reads slowly misses values, never the newest, and is told how many. One thread serves all.
#pragma once

#include <grpcpp/support/server_callback.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <set>
#include <string>

#include "actors/core/reading_board.hpp"
#include "busbar/v1/busbar.pb.h"
#include "daemon/busbard/rpc/admission.hpp"
#include "daemon/busbard/rpc/worker.hpp"

namespace busbar::rpc {

constexpr auto least_reading_interval = std::chrono::milliseconds(100);
constexpr auto usual_reading_interval = std::chrono::milliseconds(1000);
constexpr auto most_reading_interval = std::chrono::hours(1);
constexpr int most_reading_prefixes = 256;

class reading_stream;

class reading_room {
 public:
  // A null board has no readings.
  explicit reading_room(std::shared_ptr<const core::reading_board> board);
  ~reading_room();

  // On gRPC's thread; the stream ends itself. context is valid until it does.
  grpc::ServerWriteReactor<v1::WatchReadingsResponse>* open(grpc::CallbackServerContext* context,
                                                            const v1::WatchReadingsRequest& request, ticket place);
  void end_all();
  std::size_t open_streams() const { return count_.load(); }

 private:
  friend class reading_stream;
  bool tick();

  const std::shared_ptr<const core::reading_board> board_;
  std::atomic<bool> ending_{false};
  std::atomic<std::size_t> count_{0};
  std::set<std::shared_ptr<reading_stream>> streams_;  // pump's thread
  worker pump_;  // last: its thread uses what is above
};

}  // namespace busbar::rpc
