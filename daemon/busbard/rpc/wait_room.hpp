// WaitOperation: calls that wait for an operation to end, all on one thread that wakes when an operation changes.
#pragma once

#include <chrono>
#include <list>
#include <memory>
#include <string>

#include "actors/core/snapshot_hub.hpp"
#include "busbar/v1/busbar.pb.h"
#include "daemon/busbard/rpc/reply.hpp"
#include "daemon/busbard/rpc/views.hpp"
#include "daemon/busbard/rpc/worker.hpp"

namespace busbar::rpc {

class wait_room {
 public:
  wait_room(std::shared_ptr<core::snapshot_hub> hub, views& shown);
  ~wait_room();

  // id: short form. Answered as it stands when `until` is over.
  void wait(std::string id, std::chrono::steady_clock::time_point until, std::shared_ptr<pending_call> call,
            v1::Operation* response);
  // Every waiting call is answered UNAVAILABLE, later ones too.
  void end_all();

 private:
  struct waiter {
    std::string id;
    std::chrono::steady_clock::time_point until;
    std::shared_ptr<pending_call> call;
    v1::Operation* response;
  };
  void listen();
  void woken();
  bool check();
  bool answered(const waiter& one, const core::snapshot& state, std::chrono::steady_clock::time_point now);

  const std::shared_ptr<core::snapshot_hub> hub_;
  views& shown_;
  std::unique_ptr<core::subscription> changes_;  // this and what follows: the thread of worker_
  std::list<waiter> waiting_;
  bool ending_ = false;
  const std::shared_ptr<worker> worker_;  // shared with the hub, which may be waking it when this ends
};

}  // namespace busbar::rpc
