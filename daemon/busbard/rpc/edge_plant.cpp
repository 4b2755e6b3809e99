// What is asked of a plant: its CDUs' set-points.
#include <fmt/format.h>
#include <google/protobuf/util/time_util.h>

#include <cmath>
#include <utility>

#include "daemon/busbard/rpc/edge_service.hpp"

namespace busbar::rpc {

edge_service::unary* edge_service::SetCdu(context* of, const v1::SetCduRequest* in, v1::Operation* out) {
  std::map<std::string, std::string> arguments;
  const bool finite = (!in->has_supply_c() || std::isfinite(in->supply_c())) && (!in->has_dp_kpa() || std::isfinite(in->dp_kpa()));
  if (!finite) return finish_now(of, absl::InvalidArgumentError("a set-point is no number"), in->act().name());
  if (in->has_supply_c()) arguments["supply_c"] = fmt::format("{}", in->supply_c());
  if (in->has_dp_kpa()) arguments["dp_kpa"] = fmt::format("{}", in->dp_kpa());
  if (in->has_lease()) {
    const double seconds = static_cast<double>(google::protobuf::util::TimeUtil::DurationToMilliseconds(in->lease())) / 1000;
    arguments["lease_s"] = fmt::format("{}", seconds);
  }
  v1::SetCduRequest body = *in;
  body.mutable_act()->clear_request_id();
  return act(of, "cdu_set", in->act(), std::move(arguments), fmt::format("cdu_set\n{}", body.SerializeAsString()), out);
}

edge_service::unary* edge_service::ReleaseCdu(context* of, const v1::ActRequest* in, v1::Operation* out) {
  v1::ActRequest body = *in;
  body.clear_request_id();
  return act(of, "cdu_release", *in, {}, fmt::format("cdu_release\n{}", body.SerializeAsString()), out);
}

}  // namespace busbar::rpc
