// busbar.v1.Busbar: every method authorises, validates, forwards and returns. Reads are answered from the snapshot hub, acts go
// to OPERATIONS and are answered once, what takes a disk or a parser runs on a worker.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "actors/core/command.hpp"
#include "actors/core/command_answer.hpp"
#include "actors/core/snapshot_hub.hpp"
#include "busbar/v1/busbar.grpc.pb.h"
#include "daemon/busbard/rpc/guard.hpp"
#include "daemon/busbard/rpc/pages.hpp"
#include "daemon/busbard/rpc/plant_gate.hpp"
#include "daemon/busbard/rpc/reading_room.hpp"
#include "daemon/busbard/rpc/reply.hpp"
#include "daemon/busbard/rpc/views.hpp"
#include "daemon/busbard/rpc/wait_room.hpp"
#include "daemon/busbard/rpc/watch.hpp"
#include "daemon/busbard/rpc/worker.hpp"
#include "storage/history.hpp"

namespace busbar::rpc {

struct edge_dependencies {
  std::string instance;
  std::string role = "rack";
  std::string version;
  std::string journal_parent;
  std::shared_ptr<core::snapshot_hub> hub;
  core::event_source events;
  // Any thread, does not block.
  std::function<void(std::shared_ptr<const core::command>, core::answer_ptr)> submit;
  std::function<std::vector<std::string>()> degraded;
  std::shared_ptr<const core::reading_board> board;  // null: no readings
  // Samples of one point (storage::history::read); blocks for the disk, any thread. Null: none are kept.
  std::function<storage::history_answer(const std::string& name, std::int64_t from_s, std::int64_t to_s, std::int64_t step_s,
                                        std::size_t limit)>
      history;
  std::function<std::string()> may_be_old;  // why what the hub holds may be old; empty: it is not. May be null
  demand_sink hear_demand;                  // role plant: where racks' demands go; null: none are heard
};

// Reads are raw: the bytes of each object are made once a change and only referred to here.
using raw_reads = v1::Busbar::WithRawCallbackMethod_GetRack<v1::Busbar::WithRawCallbackMethod_ListRacks<
    v1::Busbar::WithRawCallbackMethod_GetNode<v1::Busbar::WithRawCallbackMethod_ListNodes<
        v1::Busbar::WithRawCallbackMethod_GetShelf<v1::Busbar::WithRawCallbackMethod_ListShelves<
            v1::Busbar::WithRawCallbackMethod_GetEndpoint<v1::Busbar::WithRawCallbackMethod_ListEndpoints<
                v1::Busbar::WithRawCallbackMethod_GetOperation<v1::Busbar::WithRawCallbackMethod_ListOperations<
                    v1::Busbar::Service>>>>>>>>>>;
using raw_cooling_reads = v1::Busbar::WithRawCallbackMethod_GetController<
    v1::Busbar::WithRawCallbackMethod_ListControllers<v1::Busbar::WithRawCallbackMethod_ListDetectors<raw_reads>>>;
using raw_equipment_reads = v1::Busbar::WithRawCallbackMethod_GetValve<v1::Busbar::WithRawCallbackMethod_ListValves<
    v1::Busbar::WithRawCallbackMethod_GetPdu<v1::Busbar::WithRawCallbackMethod_ListPdus<raw_cooling_reads>>>>;
using raw_plant_reads = v1::Busbar::WithRawCallbackMethod_GetCdu<v1::Busbar::WithRawCallbackMethod_ListCdus<raw_equipment_reads>>;
using typed_reads = v1::Busbar::WithCallbackMethod_GetStatus<v1::Busbar::WithCallbackMethod_ListEvents<
    v1::Busbar::WithCallbackMethod_Watch<v1::Busbar::WithCallbackMethod_WaitOperation<raw_plant_reads>>>>;
using edge_methods = v1::Busbar::WithCallbackMethod_CancelOperation<v1::Busbar::WithCallbackMethod_ApplyManifest<
    v1::Busbar::WithCallbackMethod_DiffManifest<v1::Busbar::WithCallbackMethod_BringupRack<
        v1::Busbar::WithCallbackMethod_ShutdownRack<v1::Busbar::WithCallbackMethod_RetryNode<
            v1::Busbar::WithCallbackMethod_TrustNode<v1::Busbar::WithCallbackMethod_ReleaseBmc<
                v1::Busbar::WithCallbackMethod_UnlockBmc<typed_reads>>>>>>>>>;

using equipment_methods = v1::Busbar::WithCallbackMethod_SetPowerCap<v1::Busbar::WithCallbackMethod_SetValve<v1::Busbar::WithCallbackMethod_ReleaseValve<
    v1::Busbar::WithCallbackMethod_SwitchOutlet<edge_methods>>>>;
using plant_methods = v1::Busbar::WithCallbackMethod_SetCdu<v1::Busbar::WithCallbackMethod_ReleaseCdu<equipment_methods>>;
using reading_methods =
    v1::Busbar::WithCallbackMethod_WatchReadings<v1::Busbar::WithCallbackMethod_ReadHistory<plant_methods>>;

class edge_service final : public reading_methods {
 public:
  using context = grpc::CallbackServerContext;
  using unary = grpc::ServerUnaryReactor;
  using bytes = grpc::ByteBuffer;

  // gate outlives the service.
  edge_service(edge_dependencies deps, const guard& gate, watch_limits limits);

  unary* GetStatus(context*, const v1::GetStatusRequest*, v1::DaemonStatus*) override;
  unary* GetRack(context*, const bytes*, bytes*) override;
  unary* ListRacks(context*, const bytes*, bytes*) override;
  unary* GetNode(context*, const bytes*, bytes*) override;
  unary* ListNodes(context*, const bytes*, bytes*) override;
  unary* GetShelf(context*, const bytes*, bytes*) override;
  unary* ListShelves(context*, const bytes*, bytes*) override;
  unary* GetController(context*, const bytes*, bytes*) override;
  unary* ListControllers(context*, const bytes*, bytes*) override;
  unary* ListDetectors(context*, const bytes*, bytes*) override;
  unary* GetValve(context*, const bytes*, bytes*) override;
  unary* ListValves(context*, const bytes*, bytes*) override;
  unary* GetCdu(context*, const bytes*, bytes*) override;
  unary* ListCdus(context*, const bytes*, bytes*) override;
  unary* GetPdu(context*, const bytes*, bytes*) override;
  unary* ListPdus(context*, const bytes*, bytes*) override;
  unary* GetEndpoint(context*, const bytes*, bytes*) override;
  unary* ListEndpoints(context*, const bytes*, bytes*) override;
  unary* GetOperation(context*, const bytes*, bytes*) override;
  unary* ListOperations(context*, const bytes*, bytes*) override;
  unary* ListEvents(context*, const v1::ListEventsRequest*, v1::ListEventsResponse*) override;
  grpc::ServerWriteReactor<v1::WatchResponse>* Watch(context*, const v1::WatchRequest*) override;
  unary* WaitOperation(context*, const v1::WaitOperationRequest*, v1::Operation*) override;

  unary* CancelOperation(context*, const v1::ActRequest*, v1::Operation*) override;
  unary* ApplyManifest(context*, const v1::ApplyManifestRequest*, v1::ApplyManifestResponse*) override;
  unary* DiffManifest(context*, const v1::DiffManifestRequest*, v1::DiffManifestResponse*) override;
  unary* BringupRack(context*, const v1::BringupRackRequest*, v1::Operation*) override;
  unary* ShutdownRack(context*, const v1::ActRequest*, v1::Operation*) override;
  unary* RetryNode(context*, const v1::RetryNodeRequest*, v1::Operation*) override;
  unary* TrustNode(context*, const v1::TrustNodeRequest*, v1::Operation*) override;
  unary* ReleaseBmc(context*, const v1::ActRequest*, v1::Operation*) override;
  unary* UnlockBmc(context*, const v1::ActRequest*, v1::Operation*) override;
  unary* SetCdu(context*, const v1::SetCduRequest*, v1::Operation*) override;
  unary* ReleaseCdu(context*, const v1::ActRequest*, v1::Operation*) override;
  unary* SetValve(context*, const v1::SetValveRequest*, v1::Operation*) override;
  unary* SetPowerCap(context*, const v1::SetPowerCapRequest*, v1::Operation*) override;
  unary* ReleaseValve(context*, const v1::ActRequest*, v1::Operation*) override;
  unary* SwitchOutlet(context*, const v1::SwitchOutletRequest*, v1::Operation*) override;

  grpc::ServerWriteReactor<v1::WatchReadingsResponse>* WatchReadings(context*, const v1::WatchReadingsRequest*) override;
  unary* ReadHistory(context*, const v1::ReadHistoryRequest*, v1::ReadHistoryResponse*) override;

  // Part of the ordered stop: watches and waits end with UNAVAILABLE, also later ones.
  void end_streams();
  // Acts that nobody has answered yet end with UNAVAILABLE; what they began goes on.
  void end_acts();

 private:
  template <class Message, class Kind = Message>
  unary* get(context* of, const bytes* request, bytes* response);
  template <class Message, class List, class Kind = Message>
  unary* list(context* of, const bytes* request, bytes* response, std::string_view method);
  unary* act(context* of, std::string_view verb, const v1::ActRequest& request, std::map<std::string, std::string> arguments,
             const std::string& body, v1::Operation* response);
  void apply(entry&& who, const v1::ApplyManifestRequest& request, const std::shared_ptr<pending_call>& call,
             v1::ApplyManifestResponse* response);

  const edge_dependencies deps_;
  const guard& gate_;
  const std::chrono::system_clock::time_point started_ = std::chrono::system_clock::now();
  open_calls acts_;
  views shown_;
  pages pages_;
  watch_room watches_;
  reading_room readings_;
  wait_room waits_;
  worker reader_;  // events from disk, YAML
};

}  // namespace busbar::rpc
