#include <fmt/format.h>
#include <google/protobuf/util/field_mask_util.h>
#include <google/protobuf/util/time_util.h>
#include <grpcpp/impl/codegen/proto_utils.h>

#include <utility>
#include <vector>

#include "actors/core/errors.hpp"
#include "daemon/busbard/rpc/edge_service.hpp"
#include "daemon/busbard/rpc/event_pages.hpp"
#include "daemon/busbard/rpc/filter.hpp"

namespace busbar::rpc {
namespace {

using google::protobuf::FieldMask;
using google::protobuf::util::FieldMaskUtil;

template <class Message>
bool parse(const grpc::ByteBuffer& from, Message* to) {
  grpc::ByteBuffer copy(from);  // shares the bytes
  return grpc::SerializationTraits<Message>::Deserialize(&copy, to).ok();
}

template <class Message>
grpc::Slice slice_of(const Message& message) {
  return grpc::Slice(message.SerializeAsString());
}

absl::Status unknown(std::string_view name) {
  return core::make_fault(core::fault::UNKNOWN_TARGET, fmt::format("{}: this daemon holds no such thing", name));
}

template <class Message>
absl::Status check_mask(const FieldMask& mask) {
  for (const std::string& path : mask.paths()) {
    if (!FieldMaskUtil::IsValidPath<Message>(path)) {
      return absl::InvalidArgumentError(fmt::format("read_mask: {} has no {}", Message::descriptor()->name(), path));
    }
  }
  return absl::OkStatus();
}

template <class Message>
view_ptr<Message> masked(const view_ptr<Message>& from, const FieldMask& mask) {
  if (mask.paths().empty()) return from;
  Message cut = *from->message;
  FieldMaskUtil::TrimMessage(mask, &cut);
  return make_view<Message>(std::move(cut));
}

template <class Message>
constexpr const Message* kind = nullptr;

}  // namespace

template <class Message, class Kind>
edge_service::unary* edge_service::get(context* of, const bytes* request, bytes* response) {
  const absl::StatusOr<entry> in = gate_.enter(*of, role::viewer, call_class::read);
  if (!in.ok()) return finish_now(of, in.status());
  v1::GetRequest wanted;
  if (!parse(*request, &wanted)) return finish_now(of, absl::InvalidArgumentError("not a GetRequest"));
  if (const absl::Status status = check_mask<Message>(wanted.read_mask()); !status.ok()) return finish_now(of, status);
  const view_ptr<Message> found = shown_.find(*deps_.hub->read(), short_name(wanted.name()), kind<Kind>);
  if (found == nullptr) return finish_now(of, unknown(wanted.name()), wanted.name());
  const grpc::Slice body = masked(found, wanted.read_mask())->body;
  *response = grpc::ByteBuffer(&body, 1);
  return finish_now(of, absl::OkStatus());
}

template <class Message, class List, class Kind>
edge_service::unary* edge_service::list(context* of, const bytes* request, bytes* response, std::string_view method) {
  const absl::StatusOr<entry> in = gate_.enter(*of, role::viewer, call_class::read);
  if (!in.ok()) return finish_now(of, in.status());
  v1::ListRequest wanted;
  if (!parse(*request, &wanted)) return finish_now(of, absl::InvalidArgumentError("not a ListRequest"));
  if (const absl::Status status = check_mask<Message>(wanted.read_mask()); !status.ok()) return finish_now(of, status);
  const absl::StatusOr<std::size_t> size = page_size(wanted.page_size());
  if (!size.ok()) return finish_now(of, size.status());
  const absl::StatusOr<filter> chosen = filter::parse(wanted.filter(), Message::descriptor());
  if (!chosen.ok()) return finish_now(of, chosen.status());
  const std::string query = fmt::format("{}\n{}\n{}", method, wanted.parent(), wanted.filter());
  const absl::StatusOr<page_start> start = pages_.open(wanted.page_token(), query, deps_.hub->read());
  if (!start.ok()) return finish_now(of, start.status());
  const std::string scope = short_parent(wanted.parent());
  if (!scope.empty() && scope != deps_.instance && start->state->rack(scope) == nullptr) {
    return finish_now(of, unknown(wanted.parent()), wanted.parent());
  }

  std::vector<grpc::Slice> slices;
  std::size_t place = 0;
  List rest;  // everything but the objects; concatenated, the two are one message
  for (const view_ptr<Message>& each : shown_.all(*start->state, scope, kind<Kind>)) {
    if (!chosen->empty() && !chosen->matches(*each->message)) continue;
    if (place++ < start->offset) continue;
    if (slices.size() == *size) {
      rest.set_next_page_token(pages_.keep(start->state, start->offset + *size, query));
      break;
    }
    slices.push_back(masked(each, wanted.read_mask())->element);
  }
  *rest.mutable_position() = position_to_v1(start->state->position);
  slices.push_back(slice_of(rest));
  *response = grpc::ByteBuffer(slices.data(), slices.size());
  return finish_now(of, absl::OkStatus());
}

edge_service::unary* edge_service::GetRack(context* of, const bytes* in, bytes* out) { return get<v1::Rack>(of, in, out); }
edge_service::unary* edge_service::GetNode(context* of, const bytes* in, bytes* out) { return get<v1::Node>(of, in, out); }
edge_service::unary* edge_service::GetShelf(context* of, const bytes* in, bytes* out) { return get<v1::Shelf>(of, in, out); }
edge_service::unary* edge_service::GetController(context* of, const bytes* in, bytes* out) {
  return get<v1::Shelf, controller>(of, in, out);
}
edge_service::unary* edge_service::ListControllers(context* of, const bytes* in, bytes* out) {
  return list<v1::Shelf, v1::ListShelvesResponse, controller>(of, in, out, "ListControllers");
}
edge_service::unary* edge_service::ListDetectors(context* of, const bytes* in, bytes* out) {
  return list<v1::LeakDetector, v1::ListDetectorsResponse>(of, in, out, "ListDetectors");
}
edge_service::unary* edge_service::GetValve(context* of, const bytes* in, bytes* out) { return get<v1::Valve>(of, in, out); }
edge_service::unary* edge_service::ListValves(context* of, const bytes* in, bytes* out) {
  return list<v1::Valve, v1::ListValvesResponse>(of, in, out, "ListValves");
}
edge_service::unary* edge_service::GetCdu(context* of, const bytes* in, bytes* out) { return get<v1::Cdu>(of, in, out); }
edge_service::unary* edge_service::ListCdus(context* of, const bytes* in, bytes* out) {
  return list<v1::Cdu, v1::ListCdusResponse>(of, in, out, "ListCdus");
}
edge_service::unary* edge_service::GetPdu(context* of, const bytes* in, bytes* out) { return get<v1::Pdu>(of, in, out); }
edge_service::unary* edge_service::ListPdus(context* of, const bytes* in, bytes* out) {
  return list<v1::Pdu, v1::ListPdusResponse>(of, in, out, "ListPdus");
}
edge_service::unary* edge_service::GetEndpoint(context* of, const bytes* in, bytes* out) {
  return get<v1::Endpoint>(of, in, out);
}
edge_service::unary* edge_service::GetOperation(context* of, const bytes* in, bytes* out) {
  return get<v1::Operation>(of, in, out);
}
edge_service::unary* edge_service::ListRacks(context* of, const bytes* in, bytes* out) {
  return list<v1::Rack, v1::ListRacksResponse>(of, in, out, "ListRacks");
}
edge_service::unary* edge_service::ListNodes(context* of, const bytes* in, bytes* out) {
  return list<v1::Node, v1::ListNodesResponse>(of, in, out, "ListNodes");
}
edge_service::unary* edge_service::ListShelves(context* of, const bytes* in, bytes* out) {
  return list<v1::Shelf, v1::ListShelvesResponse>(of, in, out, "ListShelves");
}
edge_service::unary* edge_service::ListEndpoints(context* of, const bytes* in, bytes* out) {
  return list<v1::Endpoint, v1::ListEndpointsResponse>(of, in, out, "ListEndpoints");
}
edge_service::unary* edge_service::ListOperations(context* of, const bytes* in, bytes* out) {
  return list<v1::Operation, v1::ListOperationsResponse>(of, in, out, "ListOperations");
}

edge_service::unary* edge_service::GetStatus(context* of, const v1::GetStatusRequest*, v1::DaemonStatus* response) {
  const absl::StatusOr<entry> in = gate_.enter(*of, role::viewer, call_class::read);
  if (!in.ok()) return finish_now(of, in.status());
  response->set_instance(deps_.instance);
  response->set_role(deps_.role);
  response->set_version(deps_.version);
  *response->mutable_position() = position_to_v1(deps_.hub->read()->position);
  for (std::string& reason : deps_.degraded()) response->add_degraded(std::move(reason));
  *response->mutable_start_time() = google::protobuf::util::TimeUtil::TimeTToTimestamp(
      std::chrono::system_clock::to_time_t(started_));
  response->set_journal_parent(deps_.journal_parent);
  return finish_now(of, absl::OkStatus());
}

edge_service::unary* edge_service::ListEvents(context* of, const v1::ListEventsRequest* request,
                                              v1::ListEventsResponse* response) {
  absl::StatusOr<entry> in = gate_.enter(*of, role::viewer, call_class::read);
  if (!in.ok()) return finish_now(of, in.status());
  unary* reactor = of->DefaultReactor();
  auto call = std::make_shared<pending_call>(of, reactor, std::move(in->place));
  const bool taken = reader_.post([this, call, wanted = *request, response] {
    const auto state = deps_.hub->read();
    const absl::StatusOr<v1::ListEventsResponse> page = event_page(wanted, deps_.instance, state->position, deps_.events);
    if (!call->claim()) return;
    if (page.ok()) *response = *page;
    call->end(page.status(), wanted.object());
  });
  if (!taken) call->fail(absl::ResourceExhaustedError("too many requests read events; try again in a moment"));
  return reactor;
}

grpc::ServerWriteReactor<v1::WatchResponse>* edge_service::Watch(context* of, const v1::WatchRequest* request) {
  class refused_stream final : public grpc::ServerWriteReactor<v1::WatchResponse> {
   public:
    explicit refused_stream(const grpc::Status& status) { Finish(status); }
    void OnDone() override { delete this; }
  };
  absl::StatusOr<entry> in = gate_.enter(*of, role::viewer, call_class::stream);
  if (!in.ok()) return new refused_stream(to_grpc(in.status(), request->parent(), *of));
  return watches_.open(of, *request, std::move(in->place));
}

edge_service::unary* edge_service::WaitOperation(context* of, const v1::WaitOperationRequest* request,
                                                 v1::Operation* response) {
  absl::StatusOr<entry> in = gate_.enter(*of, role::viewer, call_class::wait);
  if (!in.ok()) return finish_now(of, in.status());
  const std::string id = short_name(request->name());
  if (shown_.find(*deps_.hub->read(), id, kind<v1::Operation>) == nullptr) {
    return finish_now(of, unknown(request->name()), request->name());
  }
  // A little before the caller's own deadline, so that the answer still reaches it.
  constexpr auto margin = std::chrono::milliseconds(200);
  auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(of->deadline() - std::chrono::system_clock::now()) - margin;
  if (request->has_timeout()) {
    using google::protobuf::util::TimeUtil;
    left = std::min(left, std::chrono::nanoseconds(TimeUtil::DurationToNanoseconds(request->timeout())));
  }
  unary* reactor = of->DefaultReactor();
  auto call = std::make_shared<pending_call>(of, reactor, std::move(in->place));
  waits_.wait(id, std::chrono::steady_clock::now() + left, std::move(call), response);
  return reactor;
}

}  // namespace busbar::rpc
