// One Watch. Everything but gRPC's callbacks runs on the pump's thread; those only post to it.
#pragma once

#include <absl/status/status.h>
#include <grpcpp/support/server_callback.h>

#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "daemon/busbard/rpc/watch.hpp"

namespace busbar::rpc {

class watch_stream final : public grpc::ServerWriteReactor<v1::WatchResponse>, public std::enable_shared_from_this<watch_stream> {
 public:
  watch_stream(watch_room& room, grpc::CallbackServerContext* context, const v1::WatchRequest& request, ticket place);

  // gRPC's threads.
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

  // Pump's thread.
  void begin();
  void feed();
  void end(const absl::Status& status);
  void show_age();
  void bookmark_at_rest(std::chrono::steady_clock::time_point now);

 private:
  struct wanted_kinds {
    bool racks = true;
    bool nodes = true;
    bool shelves = true;
    bool controllers = true;
    bool cdus = true;
    bool valves = true;
    bool pdus = true;
    bool endpoints = true;
    bool operations = true;
    bool events = true;
    static wanted_kinds none();
  };

  absl::Status read_request();
  absl::Status subscribe(const journal::Position& from);
  void post(void (watch_stream::*step)());
  void written();
  void write_failed();
  void gone();
  void push(v1::WatchResponse&& response, const journal::Position& at);
  void push_objects(const core::snapshot& state, bool initial);  // racks, nodes, shelves
  void push_present(const core::snapshot& state);
  void push_item(const core::watch_item& item);
  bool push_changed(const core::watch_item& item, v1::WatchResponse& response);
  bool push_erased(const core::watch_item& item, v1::WatchResponse& response);
  void push_bookmark(const journal::Position& at, bool initial_complete);
  bool in_scope(const std::string& name) const { return is_within(name, scope_); }

  watch_room& room_;
  grpc::CallbackServerContext* const context_;
  const v1::WatchRequest request_;
  ticket place_;
  wanted_kinds kinds_;
  std::string scope_;
  std::unique_ptr<core::subscription> subscription_;
  std::deque<v1::WatchResponse> queue_;
  v1::WatchResponse in_flight_;
  bool writing_ = false;
  bool was_old_ = false;  // as last shown
  bool finished_ = false;
  std::chrono::steady_clock::time_point last_write_;
  std::shared_ptr<watch_stream> self_;  // until OnDone

  friend class watch_room;
};

}  // namespace busbar::rpc
