// One WatchReadings. Everything but gRPC's callbacks runs on the pump's thread; those only post to it.
#pragma once

#include <absl/status/status.h>
#include <grpcpp/support/server_callback.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "daemon/busbard/rpc/reading_room.hpp"

namespace busbar::rpc {

class reading_stream final : public grpc::ServerWriteReactor<v1::WatchReadingsResponse>,
                             public std::enable_shared_from_this<reading_stream> {
 public:
  reading_stream(reading_room& room, grpc::CallbackServerContext* context, const v1::WatchReadingsRequest& request,
                 ticket place);

  // gRPC's threads.
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

  // Pump's thread.
  void begin();
  void feed(std::chrono::steady_clock::time_point now);
  void end(const absl::Status& status);

 private:
  struct told {  // of one point
    std::string public_name;
    std::uint64_t times = 0;
  };

  absl::Status read_request();
  void post(void (reading_stream::*step)());
  void written();
  void gone();
  bool fill();

  reading_room& room_;
  grpc::CallbackServerContext* const context_;
  const v1::WatchReadingsRequest request_;
  ticket place_;
  std::vector<std::string> prefixes_;
  std::chrono::milliseconds interval_ = usual_reading_interval;
  std::uint64_t version_ = 0;
  std::unordered_map<core::reading_board::place, told> told_;
  v1::WatchReadingsResponse answer_;
  std::chrono::steady_clock::time_point due_;
  bool first_ = true;
  bool writing_ = false;
  bool finished_ = false;
  std::shared_ptr<reading_stream> self_;  // until OnDone

  friend class reading_room;
};

}  // namespace busbar::rpc
