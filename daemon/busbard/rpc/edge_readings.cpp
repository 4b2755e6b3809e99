#include <fmt/format.h>
#include <google/protobuf/util/time_util.h>

#include <chrono>
#include <utility>

#include "daemon/busbard/rpc/edge_service.hpp"
#include "daemon/busbard/rpc/point_names.hpp"

namespace busbar::rpc {
namespace {

using google::protobuf::util::TimeUtil;

constexpr std::size_t most_history_samples = 10'000;
constexpr std::int64_t longest_history_s = 400 * 86'400;

struct history_wish {
  std::int64_t from_s = 0;
  std::int64_t to_s = 0;
  std::int64_t step_s = 0;
};

absl::StatusOr<history_wish> wish_of(const v1::ReadHistoryRequest& request, std::int64_t now_s) {
  if (request.name().empty()) return absl::InvalidArgumentError("name: one point is wanted, as racks/r01/flow");
  history_wish wish;
  wish.to_s = request.has_to() ? request.to().seconds() + (request.to().nanos() > 0 ? 1 : 0) : now_s + 1;
  wish.from_s = request.has_from() ? request.from().seconds() : wish.to_s - 600;
  if (wish.from_s >= wish.to_s) return absl::InvalidArgumentError("from: is not before to");
  if (wish.to_s - wish.from_s > longest_history_s) {
    return absl::InvalidArgumentError(fmt::format("from: more than {} days before to", longest_history_s / 86'400));
  }
  if (request.has_step()) {
    const std::int64_t step_ns = TimeUtil::DurationToNanoseconds(request.step());
    if (step_ns < 1'000'000'000 || step_ns % 1'000'000'000 != 0) {
      return absl::InvalidArgumentError("step: whole seconds are wanted, one or more");
    }
    wish.step_s = step_ns / 1'000'000'000;
  }
  return wish;
}

}  // namespace

grpc::ServerWriteReactor<v1::WatchReadingsResponse>* edge_service::WatchReadings(context* of,
                                                                                 const v1::WatchReadingsRequest* request) {
  class refused_stream final : public grpc::ServerWriteReactor<v1::WatchReadingsResponse> {
   public:
    explicit refused_stream(const grpc::Status& status) { Finish(status); }
    void OnDone() override { delete this; }
  };
  absl::StatusOr<entry> in = gate_.enter(*of, role::viewer, call_class::stream);
  if (!in.ok()) return new refused_stream(to_grpc(in.status(), "readings", *of));
  return readings_.open(of, *request, std::move(in->place));
}

// Reads the disk: on the worker that reads events.
edge_service::unary* edge_service::ReadHistory(context* of, const v1::ReadHistoryRequest* request,
                                               v1::ReadHistoryResponse* response) {
  absl::StatusOr<entry> in = gate_.enter(*of, role::viewer, call_class::read);
  if (!in.ok()) return finish_now(of, in.status());
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto wish = wish_of(*request, std::chrono::duration_cast<std::chrono::seconds>(now).count());
  if (!wish.ok()) return finish_now(of, wish.status(), request->name());
  if (!deps_.history) {
    return finish_now(of, absl::FailedPreconditionError("this daemon keeps no history of readings"), request->name());
  }
  unary* reactor = of->DefaultReactor();
  auto call = std::make_shared<pending_call>(of, reactor, std::move(in->place));
  const bool taken = reader_.post([this, call, name = short_point(request->name()), wish = *wish, response] {
    const storage::history_answer found =
        deps_.history(name, wish.from_s, wish.to_s, wish.step_s, most_history_samples);
    const auto known = deps_.board != nullptr ? deps_.board->find(name) : std::nullopt;
    if (!call->claim()) return;
    bool any = known.has_value();
    for (const storage::history_sample& one : found.samples) {
      v1::HistorySample& sample = *response->add_samples();
      *sample.mutable_time() = TimeUtil::SecondsToTimestamp(one.wall_s);
      if (one.value) sample.set_value(*one.value);
      if (one.least) sample.set_least(*one.least);
      if (one.most) sample.set_most(*one.most);
      any = any || one.value.has_value();
    }
    if (known) response->set_unit(known->unit);
    response->set_more(found.more);
    if (!any) {
      response->Clear();
      return call->end(absl::NotFoundError(fmt::format("{}: no reading of this name is known", public_point(name))), name);
    }
    call->end(absl::OkStatus(), name);
  });
  if (!taken) call->fail(absl::ResourceExhaustedError("too many requests read the disk; try again in a moment"));
  return reactor;
}

}  // namespace busbar::rpc
