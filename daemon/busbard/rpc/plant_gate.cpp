#include "daemon/busbard/rpc/plant_gate.hpp"

#include <google/protobuf/util/time_util.h>

#include <memory>
#include <utility>

#include "daemon/busbard/rpc/reply.hpp"

namespace busbar::rpc {
namespace {

using google::protobuf::util::TimeUtil;

class wire_answer final : public plant::demand_answer {
 public:
  wire_answer(std::shared_ptr<pending_call> call, plant::DemandAnswer* response)
      : call_(std::move(call)), response_(response) {}
  void finish(absl::StatusOr<plant::plant_view> view) const override {
    if (!call_->claim()) return;
    if (view.ok()) *response_ = answer_of(*view);
    call_->end(view.status());
  }

 private:
  const std::shared_ptr<pending_call> call_;
  plant::DemandAnswer* const response_;
};

}  // namespace

plant::demand demand_of(const plant::DemandRequest& request) {
  plant::demand wanted;
  wanted.rack = request.rack();
  if (request.has_flow_lpm()) wanted.flow_lpm = request.flow_lpm();
  if (request.has_heat_kw()) wanted.heat_kw = request.heat_kw();
  if (request.has_valve_percent()) wanted.valve_percent = request.valve_percent();
  wanted.short_of_flow = request.short_of_flow();
  if (request.has_lease()) wanted.lease_ns = TimeUtil::DurationToNanoseconds(request.lease());
  return wanted;
}

plant::DemandAnswer answer_of(const plant::plant_view& view) {
  plant::DemandAnswer answer;
  answer.set_plant(view.plant);
  answer.set_cdu(view.cdu);
  answer.set_mode(view.mode);
  answer.set_waits_for(view.waits_for);
  answer.set_health(static_cast<plant::PlantHealth>(view.health));
  if (view.reading_age_ns)
    *answer.mutable_reading_age() = TimeUtil::NanosecondsToDuration(*view.reading_age_ns);
  if (view.supply_c) answer.set_supply_c(*view.supply_c);
  if (view.dp_kpa) answer.set_dp_kpa(*view.dp_kpa);
  if (view.flow_lpm) answer.set_flow_lpm(*view.flow_lpm);
  if (view.supply_set_point_c) answer.set_supply_set_point_c(*view.supply_set_point_c);
  if (view.dp_set_point_kpa) answer.set_dp_set_point_kpa(*view.dp_set_point_kpa);
  answer.set_cooling_short(view.cooling_short);
  answer.set_short_why(view.short_why);
  return answer;
}

grpc::ServerUnaryReactor* plant_gate::RenewDemand(grpc::CallbackServerContext* context,
                                                  const plant::DemandRequest* request,
                                                  plant::DemandAnswer* response) {
  absl::StatusOr<entry> in = gate_.enter(*context, role::op, call_class::read);
  if (!in.ok()) return finish_now(context, in.status());
  if (request->rack().empty())
    return finish_now(context, absl::InvalidArgumentError("the demand names no rack"));
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  auto call = std::make_shared<pending_call>(context, reactor, std::move(in->place));
  hear_(std::make_shared<const plant::demand>(demand_of(*request)),
        std::make_shared<const wire_answer>(std::move(call), response));
  return reactor;
}

}  // namespace busbar::rpc
