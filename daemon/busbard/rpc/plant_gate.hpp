// busbar.plant.Plant: the racks' door to the plant. Served beside the operators' service, to the same
// callers: a rack's daemon is known by its uid on the Unix socket, over TCP by its certificate, and needs the
// rights of an operator.
#pragma once

#include <functional>

#include "actors/plant/plant_port.hpp"
#include "busbar/plant/plant.grpc.pb.h"
#include "daemon/busbard/rpc/guard.hpp"

namespace busbar::rpc {

// Hands a demand to the plant and returns at once. Any thread.
using demand_sink = std::function<void(plant::demand_ptr, plant::demand_answer_ptr)>;

class plant_gate final : public plant::Plant::WithCallbackMethod_RenewDemand<plant::Plant::Service> {
 public:
  // gate outlives the service.
  plant_gate(const guard& gate, demand_sink hear) : gate_(gate), hear_(std::move(hear)) {}

  grpc::ServerUnaryReactor* RenewDemand(grpc::CallbackServerContext* context,
                                        const plant::DemandRequest* request,
                                        plant::DemandAnswer* response) override;

 private:
  const guard& gate_;
  const demand_sink hear_;
};

plant::demand demand_of(const plant::DemandRequest& request);
plant::DemandAnswer answer_of(const plant::plant_view& view);

}  // namespace busbar::rpc
