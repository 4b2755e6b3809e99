#include "daemon/busbard/rpc/watch.hpp"

#include <utility>
#include <vector>

#include "daemon/busbard/rpc/watch_stream.hpp"

namespace busbar::rpc {
namespace {

constexpr std::size_t no_limit = 1 << 20;  // posts are bounded by the streams: each has a few outstanding

}  // namespace

watch_room::watch_room(std::shared_ptr<core::snapshot_hub> hub, views& shown, watch_limits limits)
    : hub_(std::move(hub)), shown_(shown), limits_(limits),
      pump_(std::make_shared<worker>(no_limit, [this] { return tick(); }, limits.bookmark_interval / 4)) {}

watch_room::~watch_room() { pump_->stop(); }

grpc::ServerWriteReactor<v1::WatchResponse>* watch_room::open(grpc::CallbackServerContext* context,
                                                              const v1::WatchRequest& request, ticket place) {
  auto stream = std::make_shared<watch_stream>(*this, context, request, std::move(place));
  stream->self_ = stream;
  count_.fetch_add(1);
  watch_stream* reactor = stream.get();
  pump_->post_always([this, stream] {
    streams_.insert(stream);
    if (ending_.load()) {
      stream->end(absl::UnavailableError("the daemon is stopping; watch again"));
    } else {
      stream->begin();
    }
  });
  return reactor;
}

void watch_room::end_all() {
  ending_.store(true);
  pump_->post_always([this] {
    const std::vector<std::shared_ptr<watch_stream>> open(streams_.begin(), streams_.end());
    for (const auto& stream : open) stream->end(absl::UnavailableError("the daemon is stopping; watch again"));
  });
}

bool watch_room::tick() {
  const auto now = std::chrono::steady_clock::now();
  for (const auto& stream : streams_) {
    stream->show_age();
    stream->bookmark_at_rest(now);
  }
  return !streams_.empty();
}

}  // namespace busbar::rpc
