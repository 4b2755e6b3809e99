#include "daemon/busbard/rpc/guard.hpp"

#include <fmt/format.h>
#include <grpcpp/security/auth_context.h>

#include <utility>

namespace busbar::rpc {

std::optional<caller> guard::caller_of(const grpc::ServerContextBase& context) const {
  if (auto known = peers_.find(context.peer()); known.has_value()) return known;
  const auto auth = context.auth_context();
  if (auth == nullptr || !auth->IsPeerAuthenticated()) return std::nullopt;
  const auto names = auth->FindPropertyValues("x509_common_name");
  if (names.size() != 1) return std::nullopt;
  return caller_of_certificate(std::string(names[0].data(), names[0].size()), roles_);
}

absl::StatusOr<entry> guard::enter(const grpc::ServerContextBase& context, role needed, call_class of) const {
  if (places_.stopped()) return absl::UnavailableError("the daemon is stopping; try again");
  std::optional<caller> who = caller_of(context);
  if (!who.has_value()) return absl::UnauthenticatedError("this connection belongs to nobody that busbard knows");
  if (needed == role::op && who->rights != role::op) {
    return absl::PermissionDeniedError(
        fmt::format("{} may read; acting needs an operator (group busbar-operator)", who->name));
  }
  const auto deadline = context.deadline();
  if (deadline == std::chrono::system_clock::time_point::max() ||
      deadline > std::chrono::system_clock::now() + longest_deadline) {
    return absl::InvalidArgumentError(
        fmt::format("a call needs a deadline of at most {} h", std::chrono::hours(longest_deadline).count()));
  }
  ticket place = places_.enter(of);
  if (!place) return absl::ResourceExhaustedError("too many calls at once; try again in a moment");
  return entry{*std::move(who), std::move(place)};
}

}  // namespace busbar::rpc
