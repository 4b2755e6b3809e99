// The first thing every handler asks: may this caller do this, now?
#pragma once

#include <absl/status/statusor.h>
#include <grpcpp/server_context.h>

#include <chrono>
#include <memory>

#include "daemon/busbard/rpc/admission.hpp"
#include "daemon/busbard/rpc/peers.hpp"

namespace busbar::rpc {

// Calls must say how long they are waited for, and not longer than this.
constexpr auto longest_deadline = std::chrono::hours(25);

struct entry {
  caller who;
  ticket place;
};

class guard {
 public:
  guard(const peer_table& peers, admission& places, certificate_roles roles)
      : peers_(peers), places_(places), roles_(std::move(roles)) {}

  // UNAVAILABLE: stopping. UNAUTHENTICATED: nobody we know. PERMISSION_DENIED: may not. INVALID_ARGUMENT: no deadline.
  // RESOURCE_EXHAUSTED: too many calls of this class inside.
  absl::StatusOr<entry> enter(const grpc::ServerContextBase& context, role needed, call_class of) const;

 private:
  std::optional<caller> caller_of(const grpc::ServerContextBase& context) const;

  const peer_table& peers_;
  admission& places_;
  const certificate_roles roles_;
};

}  // namespace busbar::rpc
