// How a call ends. Canonical code and text in the status; the typed details as serialised messages in trailing metadata:
// busbar-error-bin (v1.ErrorInfo) and busbar-spec-errors-bin (v1.SpecErrors).
#pragma once

#include <absl/status/status.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "busbar/v1/busbar.pb.h"
#include "daemon/busbard/rpc/admission.hpp"

namespace busbar::rpc {

inline constexpr const char* error_key = "busbar-error-bin";
inline constexpr const char* spec_errors_key = "busbar-spec-errors-bin";

// The details go into context, so before Finish only. target: the public name, may be empty.
grpc::Status to_grpc(const absl::Status& status, std::string_view target, grpc::ServerContextBase& context);

// One unary call that somebody will finish, on whatever thread. The first finish() wins; destroyed unfinished, it finishes with
// UNAVAILABLE, so that a dropped call still answers its client and the server can always shut down. Response memory and
// context are valid until then.
class pending_call {
 public:
  pending_call(grpc::CallbackServerContext* context, grpc::ServerUnaryReactor* reactor, ticket place);
  ~pending_call();
  pending_call(const pending_call&) = delete;
  pending_call& operator=(const pending_call&) = delete;

  // True for the one who may now fill the response, and then must call end().
  bool claim() { return !claimed_.exchange(true); }
  void end(const absl::Status& status, std::string_view target = {});
  // claim() and end() in one, for answers without content.
  void fail(const absl::Status& status, std::string_view target = {});

  grpc::CallbackServerContext& context() { return *context_; }

 private:
  grpc::CallbackServerContext* context_;
  grpc::ServerUnaryReactor* reactor_;
  std::atomic<bool> claimed_{false};
  ticket place_;
};

// The calls that wait for somebody else, so that the ordered stop can end those that nobody answered in time. Thread-safe.
class open_calls {
 public:
  void add(const std::shared_ptr<pending_call>& call);
  // Fails all of them; those that were answered meanwhile are left alone.
  void fail_all(const absl::Status& status);

 private:
  std::mutex mutex_;
  std::vector<std::weak_ptr<pending_call>> calls_;
};

// Ends a call inside its handler.
grpc::ServerUnaryReactor* finish_now(grpc::CallbackServerContext* context, const absl::Status& status,
                                     std::string_view target = {});

}  // namespace busbar::rpc
