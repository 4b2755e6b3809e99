#include "daemon/busbard/rpc/reply.hpp"

#include <optional>
#include <utility>

#include "actors/core/errors.hpp"

namespace busbar::rpc {

grpc::Status to_grpc(const absl::Status& status, std::string_view target, grpc::ServerContextBase& context) {
  if (status.ok()) return grpc::Status::OK;
  const std::string text(status.message());
  v1::ErrorInfo info;
  info.set_target(std::string(target));
  info.set_message(text);
  if (const std::optional<core::fault> code = core::fault_of(status); code.has_value()) {
    info.set_fault(std::string(core::name_of(*code)));
    info.set_next_step(std::string(core::text_of(*code).next_step));
  }
  context.AddTrailingMetadata(error_key, info.SerializeAsString());
  // absl's canonical codes and gRPC's have the same numbers.
  return grpc::Status(static_cast<grpc::StatusCode>(status.raw_code()), text);
}

pending_call::pending_call(grpc::CallbackServerContext* context, grpc::ServerUnaryReactor* reactor, ticket place)
    : context_(context), reactor_(reactor), place_(std::move(place)) {}

pending_call::~pending_call() { fail(absl::UnavailableError("the request was dropped before it was answered; try again")); }

void pending_call::end(const absl::Status& status, std::string_view target) {
  const grpc::Status out = to_grpc(status, target, *context_);
  place_ = ticket();
  reactor_->Finish(out);
}

void pending_call::fail(const absl::Status& status, std::string_view target) {
  if (claim()) end(status, target);
}

void open_calls::add(const std::shared_ptr<pending_call>& call) {
  const std::lock_guard lock(mutex_);
  std::erase_if(calls_, [](const std::weak_ptr<pending_call>& each) { return each.expired(); });
  calls_.push_back(call);
}

void open_calls::fail_all(const absl::Status& status) {
  std::vector<std::weak_ptr<pending_call>> all;
  {
    const std::lock_guard lock(mutex_);
    all.swap(calls_);
  }
  for (const auto& each : all) {
    if (const auto call = each.lock(); call != nullptr) call->fail(status);
  }
}

grpc::ServerUnaryReactor* finish_now(grpc::CallbackServerContext* context, const absl::Status& status,
                                     std::string_view target) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(to_grpc(status, target, *context));
  return reactor;
}

}  // namespace busbar::rpc
