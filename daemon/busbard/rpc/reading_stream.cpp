#include "daemon/busbard/rpc/reading_stream.hpp"

#include <fmt/format.h>
#include <google/protobuf/util/time_util.h>

#include <algorithm>
#include <utility>

#include "daemon/busbard/rpc/point_names.hpp"
#include "daemon/busbard/rpc/reply.hpp"

namespace busbar::rpc {
namespace {

constexpr std::size_t no_limit = 1 << 20;  // posts are bounded by the streams: each has a few outstanding
constexpr auto look_interval = std::chrono::milliseconds(25);

v1::Quality to_v1(core::reading_quality quality) { return static_cast<v1::Quality>(quality); }

void set_reading(v1::Reading& to, const core::reading& from) {
  using google::protobuf::util::TimeUtil;
  if (from.value.has_value()) to.set_value(*from.value);
  to.set_unit(from.unit);
  to.set_quality(to_v1(from.quality));
  to.set_source(from.source);
  if (from.source_wall_ns != 0) *to.mutable_source_time() = TimeUtil::NanosecondsToTimestamp(from.source_wall_ns);
  if (from.received_wall_ns != 0) *to.mutable_received_time() = TimeUtil::NanosecondsToTimestamp(from.received_wall_ns);
}

}  // namespace

reading_stream::reading_stream(reading_room& room, grpc::CallbackServerContext* context,
                               const v1::WatchReadingsRequest& request, ticket place)
    : room_(room), context_(context), request_(request), place_(std::move(place)) {}

void reading_stream::post(void (reading_stream::*step)()) {
  auto keep = shared_from_this();
  room_.pump_.post_always([keep, step] { (keep.get()->*step)(); });
}

void reading_stream::OnWriteDone(bool ok) {
  if (ok) return post(&reading_stream::written);
  OnCancel();
}

void reading_stream::OnCancel() {
  auto keep = shared_from_this();
  room_.pump_.post_always([keep] {
    keep->writing_ = false;
    keep->end(absl::CancelledError("the client went away"));
  });
}

void reading_stream::OnDone() {
  post(&reading_stream::gone);
  const std::shared_ptr<reading_stream> last = std::move(self_);
}

void reading_stream::gone() {
  room_.streams_.erase(shared_from_this());
  room_.count_.fetch_sub(1);
}

void reading_stream::end(const absl::Status& status) {
  if (finished_) return;
  finished_ = true;
  place_ = ticket();
  Finish(to_grpc(status, "readings", *context_));
}

void reading_stream::written() { writing_ = false; }

absl::Status reading_stream::read_request() {
  if (request_.prefixes_size() > most_reading_prefixes) {
    return absl::InvalidArgumentError(
        fmt::format("{} prefixes; at most {} are taken", request_.prefixes_size(), most_reading_prefixes));
  }
  for (const std::string& prefix : request_.prefixes()) prefixes_.push_back(short_point(prefix));
  if (!request_.has_interval()) return absl::OkStatus();
  const auto ms = google::protobuf::util::TimeUtil::DurationToMilliseconds(request_.interval());
  interval_ = std::chrono::milliseconds(ms);
  if (interval_ < least_reading_interval || interval_ > most_reading_interval) {
    return absl::InvalidArgumentError(fmt::format("interval {} ms: from {} ms to {} h is taken", ms,
                                                  least_reading_interval.count(), most_reading_interval.count()));
  }
  return absl::OkStatus();
}

void reading_stream::begin() {
  if (finished_) return;
  if (const absl::Status status = read_request(); !status.ok()) return end(status);
  due_ = std::chrono::steady_clock::now();
  feed(due_);
}

// Into answer_; false: there is nothing to say. Each point keeps its public name and how often it had changed when last told.
bool reading_stream::fill() {
  answer_.Clear();
  if (room_.board_ != nullptr) {
    std::uint64_t dropped = 0;
    version_ = room_.board_->look(version_, prefixes_, [this, &dropped](const core::reading_board::sight& seen) {
      told& last = told_[seen.at];
      if (last.public_name.empty()) last.public_name = public_point(seen.name);
      if (last.times != 0 && seen.times > last.times) dropped += seen.times - last.times - 1;
      last.times = seen.times;
      v1::Point& point = *answer_.add_points();
      point.set_name(last.public_name);
      set_reading(*point.mutable_reading(), seen.what);
    });
    answer_.set_dropped(dropped);
  }
  return std::exchange(first_, false) || answer_.points_size() > 0;
}

void reading_stream::feed(std::chrono::steady_clock::time_point now) {
  if (finished_ || writing_ || now < due_) return;
  if (!fill()) return;  // due still: what changes next is told at once
  due_ = std::max(due_ + interval_, now + interval_ / 2);
  writing_ = true;
  StartWrite(&answer_);
}

reading_room::reading_room(std::shared_ptr<const core::reading_board> board)
    : board_(std::move(board)), pump_(no_limit, [this] { return tick(); }, look_interval) {}

reading_room::~reading_room() { pump_.stop(); }

grpc::ServerWriteReactor<v1::WatchReadingsResponse>* reading_room::open(grpc::CallbackServerContext* context,
                                                                        const v1::WatchReadingsRequest& request,
                                                                        ticket place) {
  auto stream = std::make_shared<reading_stream>(*this, context, request, std::move(place));
  stream->self_ = stream;
  count_.fetch_add(1);
  reading_stream* reactor = stream.get();
  pump_.post_always([this, stream] {
    streams_.insert(stream);
    if (ending_.load()) {
      stream->end(absl::UnavailableError("the daemon is stopping; watch again"));
    } else {
      stream->begin();
    }
  });
  return reactor;
}

void reading_room::end_all() {
  ending_.store(true);
  pump_.post_always([this] {
    const std::vector<std::shared_ptr<reading_stream>> open(streams_.begin(), streams_.end());
    for (const auto& stream : open) stream->end(absl::UnavailableError("the daemon is stopping; watch again"));
  });
}

bool reading_room::tick() {
  const auto now = std::chrono::steady_clock::now();
  for (const auto& stream : streams_) stream->feed(now);
  return !streams_.empty();
}

}  // namespace busbar::rpc
