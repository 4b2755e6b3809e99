#include "actors/devices/redfish/telemetry_reader.hpp"

#include <algorithm>
#include <functional>
#include <utility>

namespace busbar::devices::redfish {
namespace {

constexpr std::size_t most_reports = 64;
constexpr std::string_view reports_only = "?$filter=EventFormatType%20eq%20MetricReport";
const std::string sensors_group = "sensors";

std::int64_t ns(milliseconds time) {
  return std::chrono::nanoseconds(time).count();
}

request telemetry_get(const std::string& uri) {
  request wanted;
  wanted.uri = uri;
  wanted.urgency = priority::telemetry;
  return wanted;
}

}  // namespace

telemetry_reader::telemetry_reader(driver_ptr d, std::shared_ptr<scheduler> loop, telemetry_plan plan,
                                   telemetry_pace pace)
    : driver_(std::move(d)),
      loop_(std::move(loop)),
      plan_(std::move(plan)),
      pace_(pace),
      points_(plan_.member, plan_.board),
      fast_(plan_.fast.begin(), plan_.fast.end()) {
  points_.group(sensors_group).interval_ns = ns(pace_.sensors);
}

void telemetry_reader::start() {
  stopped_ = false;
  // Devices of a rack start together; spread, they do not all ask in the same moment of each second.
  const auto spread = static_cast<std::int64_t>(std::hash<std::string>{}(plan_.member) % 1'000);
  wait(milliseconds(spread * pace_.tick.count() / 1'000), &telemetry_reader::tick);
}

void telemetry_reader::stop() {
  if (stopped_) return;
  stopped_ = true;
  if (stream_open_) driver_->device->close_stream();
  stream_open_ = false;
  points_.mark_all_stale();
}

void telemetry_reader::wait(milliseconds delay, void (telemetry_reader::*then)()) {
  loop_->after(delay, [weak = weak_from_this(), then] {
    if (const auto self = weak.lock(); self && !self->stopped_) (self.get()->*then)();
  });
}

// Before the first login there is nobody to ask as; later a request that is refused leads to a new login.
bool telemetry_reader::may_ask() const {
  return !driver_->device->session_user().empty();
}

void telemetry_reader::tick() {
  if (driver_->device->closed()) return stop();
  wait(pace_.tick, &telemetry_reader::tick);
  const core::instant now = plan_.clock();
  points_.mark_silent(now);
  if (!may_ask()) return;
  look_after_stream(now);
  work(now);
}

// ---- the event stream

void telemetry_reader::look_after_stream(const core::instant& now) {
  if (!places_ || places_->stream.empty()) return;
  if (!stream_open_) {
    if (now.monotonic_ns >= next_stream_ns_ && driver_->device->has_session()) open_stream(now);
    return;
  }
  // Long without a byte, or alive and without the reports that it used to bring: subscriptions get lost in
  // silence.
  const std::int64_t silence =
      std::clamp<std::int64_t>(4 * stream_gap_ns_, ns(pace_.tick) * 5, ns(pace_.tick) * 120);
  bool silent = now.monotonic_ns - stream_heard_ns_ > silence;
  for (const auto& [id, group] : points_.groups()) {
    silent = silent ||
             (group.streamed_ns != 0 && now.monotonic_ns - group.streamed_ns > group.stream_patience_ns());
  }
  if (!silent) return;
  driver_->device->close_stream();
  stream_lost(now);
}

void telemetry_reader::open_stream(const core::instant& now) {
  stream_open_ = true;
  stream_opened_ns_ = stream_heard_ns_ = now.monotonic_ns;
  stream_gap_ns_ = ns(pace_.tick) * 8;
  events_ = event_stream_decoder();
  ++points_.figures().streams_opened;
  stream_sink sink;
  const std::weak_ptr<telemetry_reader> weak = weak_from_this();
  sink.bytes = [weak](std::string_view bytes) {
    if (const auto self = weak.lock(); self && !self->stopped_) self->take_bytes(bytes);
  };
  sink.ended = [weak](const response& answer) {
    if (const auto self = weak.lock(); self && !self->stopped_) self->stream_ended(answer.http);
  };
  driver_->device->open_stream(places_->stream + std::string(reports_only), std::move(sink));
}

void telemetry_reader::take_bytes(std::string_view bytes) {
  const std::int64_t now_ns = plan_.clock().monotonic_ns;
  stream_gap_ns_ = std::max(now_ns - stream_heard_ns_, stream_gap_ns_ * 7 / 8);
  stream_heard_ns_ = now_ns;
  const std::uint64_t gaps = events_.figures().gaps;
  events_.feed(bytes, [this](std::string_view data) { take_event(data); });
  points_.figures().gaps += events_.figures().gaps - gaps;
}

void telemetry_reader::take_event(std::string_view data) {
  if (!report_.read(data)) {
    ++points_.figures().bad_reports;
    return;
  }
  const std::string id = report_.id().empty() ? last_part(report_.uri()) : report_.id();
  if (id.empty() || (points_.groups().size() > most_reports && !points_.groups().contains(id))) {
    ++points_.figures().bad_reports;
    return;
  }
  point_group& group = points_.group(id);
  points_.take(group, report_, report_.uri().empty() ? places_->stream : report_.uri(), plan_.clock());
  if (group.streamed_ns != 0) group.streamed_interval_ns = group.last_ns - group.streamed_ns;
  group.streamed_ns = group.last_ns;
  ++points_.figures().streamed_reports;
  stream_retry_ = milliseconds(0);
}

void telemetry_reader::stream_ended(int http) {
  const core::instant now = plan_.clock();
  stream_lost(now);
  const bool refused = http != 0 && http != 200 && http != 401 && http < 500;
  if (refused || http == 501) next_stream_ns_ = now.monotonic_ns + ns(pace_.stream_refused);
  work(now);
}

// Each of its reports is due at once now.
void telemetry_reader::stream_lost(const core::instant& now) {
  stream_open_ = false;
  ++points_.figures().streams_lost;
  for (auto& [id, group] : points_.groups()) {
    group.owed = group.owed || group.streamed_ns != 0;
    group.streamed_ns = 0;
  }
  stream_retry_ = std::min(std::max(stream_retry_ * 2, pace_.stream_retry_first), pace_.stream_retry_last);
  next_stream_ns_ = now.monotonic_ns + ns(stream_retry_);
}

// ---- reading by ourselves

void telemetry_reader::work(const core::instant& now) {
  if (stopped_ || busy_ || now.monotonic_ns < resume_ns_ || !may_ask()) return;
  if (!places_ || look_again_) return start_work(find_telemetry(shared_from_this()));
  if (const std::string uri = next_report(now); !uri.empty()) return poll(uri);
  if (now.monotonic_ns >= sensors_due_ns_) start_sensors(now);
}

std::int64_t telemetry_reader::due_ns(const std::string& uri) {
  const std::string id = last_part(uri);
  const point_group& group = points_.group(id);
  if (group.owed) return 0;
  if (stream_open_ && group.streamed_ns != 0) return group.last_ns + group.stream_patience_ns();
  const std::int64_t chance = stream_open_ ? stream_opened_ns_ + ns(pace_.stream_chance) : 0;
  const std::int64_t interval = ns(fast_.contains(id) ? pace_.fast : pace_.slow);
  // A little early: the tick that comes right before would else make each second two.
  const std::int64_t own = group.last_ns == 0 ? 0 : group.last_ns + interval - ns(pace_.tick) / 2;
  return std::max(own, chance);
}

// The one that is due longest, fast ones before the others; empty: none.
std::string telemetry_reader::next_report(const core::instant& now) {
  std::string chosen;
  std::int64_t earliest = now.monotonic_ns;
  bool chosen_fast = false;
  for (const std::string& uri : places_->reports) {
    const std::int64_t due = due_ns(uri);
    const bool fast = fast_.contains(last_part(uri));
    if (due > now.monotonic_ns || (chosen_fast && !fast)) continue;
    if (chosen.empty() || (fast && !chosen_fast) || due < earliest) {
      chosen = uri;
      earliest = due;
      chosen_fast = fast;
    }
  }
  return chosen;
}

void telemetry_reader::poll(const std::string& uri) {
  busy_ = true;
  const auto self = shared_from_this();
  driver_->device->submit(telemetry_get(uri),
                          [self, uri](const response& answer) { self->polled(uri, answer); });
}

void telemetry_reader::polled(const std::string& uri, const response& answer) {
  if (answer.status.ok() && answer.http == 404 && places_) {  // gone; what there is is looked up again later
    std::erase(places_->reports, uri);
    points_.figures().bad_reports += 1;
    return finish_work(true);
  }
  if (!answer.good()) return finish_work(false);
  point_group& group = points_.group(last_part(uri));
  if (report_.read(answer.body)) {
    if (!stopped_) points_.take(group, report_, uri, plan_.clock());
    ++points_.figures().polled_reports;
  } else {
    // What is no report is not asked for each second; its points turn stale.
    ++points_.figures().bad_reports;
    return finish_work(false);
  }
  finish_work(true);
}

void telemetry_reader::failed(const core::instant& now) {
  ++points_.figures().failed_polls;
  back_off_ = std::min(std::max(back_off_ * 2, pace_.back_off_first), pace_.back_off_last);
  resume_ns_ = now.monotonic_ns + ns(back_off_);
}

void telemetry_reader::finish_work(bool good) {
  busy_ = false;
  if (stopped_) return;
  const core::instant now = plan_.clock();
  if (!good) return failed(now);
  back_off_ = milliseconds(0);
  // Not from inside the answer: a device that answers inline would nest one in the other.
  loop_->post([weak = weak_from_this()] {
    if (const auto self = weak.lock(); self && !self->stopped_) self->work(self->plan_.clock());
  });
}

void telemetry_reader::start_sensors(const core::instant& now) {
  const bool alone = places_->reports.empty();
  const bool first = sensors_due_ns_ == 0;
  sensors_due_ns_ = now.monotonic_ns + ns(alone ? pace_.sensors_alone : pace_.sensors);
  if (first && !alone) {  // not while the rack comes up, and not all devices at once
    sensors_due_ns_ = now.monotonic_ns + ns(pace_.sensors) / 10 +
                      static_cast<std::int64_t>(std::hash<std::string>{}(plan_.member) %
                                                static_cast<std::size_t>(ns(pace_.sensors)));
    return;
  }
  start_work(read_all_sensors(shared_from_this()));
}

void telemetry_reader::start_work(task<bool> procedure) {
  busy_ = true;
  const auto self = shared_from_this();
  redfish::start<bool>(std::move(procedure), [self](bool good) { self->finish_work(good); });
}

// Where things stand, by the links of the root. What a device does not have is no failure.
task<bool> find_telemetry(std::shared_ptr<telemetry_reader> self) {
  const driver_ptr d = self->driver_;
  if (!(co_await read_root(d)).ok()) co_return false;
  telemetry_reader::places found;
  if (const auto events = co_await root_link(d, "EventService"); events.ok()) {
    const fetched body = co_await fetch(d->device, *events, priority::telemetry);
    if (body.device_failed()) co_return false;
    found.stream = body.body()["ServerSentEventUri"].text().value_or("");
    if (!found.stream.starts_with('/') || found.stream.starts_with("//")) found.stream.clear();
  }
  if (const auto service = co_await root_link(d, "TelemetryService"); service.ok()) {
    const fetched body = co_await fetch(d->device, *service, priority::telemetry);
    if (body.device_failed()) co_return false;
    if (const auto uri = body.body()["MetricReports"].link()) {
      const listing list = co_await fetch_list(d->device, *uri, priority::telemetry);
      if (list.device_failed()) co_return false;
      found.reports = list.members;
      if (found.reports.size() > most_reports) found.reports.resize(most_reports);
    }
  }
  if (found.reports.empty()) found.stream.clear();  // events alone are nothing to us
  self->places_ = std::move(found);
  self->look_again_ = false;
  self->look_after_stream(self->plan_.clock());
  co_return true;
}

// One after the other: the device has others to serve.
task<bool> read_all_sensors(std::shared_ptr<telemetry_reader> self) {
  const driver_ptr d = self->driver_;
  const auto chassis_uri = co_await root_link(d, "Chassis");
  if (!chassis_uri.ok()) co_return true;
  const listing all = co_await fetch_list(d->device, *chassis_uri, priority::telemetry);
  if (all.device_failed()) co_return false;
  point_batch whole;
  for (const std::string& uri : all.members) {
    const fetched chassis = co_await fetch(d->device, uri, priority::telemetry);
    if (chassis.device_failed()) co_return false;
    const auto sensors_uri = chassis.ok() ? chassis.body()["Sensors"].link() : std::nullopt;
    if (!sensors_uri) continue;
    const listing sensors = co_await fetch_list(d->device, *sensors_uri, priority::telemetry);
    if (sensors.device_failed()) co_return false;
    for (const std::string& sensor : sensors.members) {
      if (self->stopped_) co_return true;
      const fetched body = co_await fetch(d->device, sensor, priority::telemetry);
      if (body.device_failed()) co_return false;
      if (!body.ok()) continue;
      const auto points = decode_sensor_points(body.body().raw(), sensor, self->plan_.clock().monotonic_ns);
      if (!points.ok()) continue;
      whole.bad += points->bad;
      whole.points.insert(whole.points.end(), points->points.begin(), points->points.end());
    }
  }
  self->look_again_ = true;  // a host that came up may have brought reports
  if (!self->stopped_) self->points_.take(self->points_.group(sensors_group), whole, self->plan_.clock());
  co_return true;
}

}  // namespace busbar::devices::redfish
