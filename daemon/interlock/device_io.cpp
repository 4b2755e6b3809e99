#include "daemon/interlock/device_io.hpp"

#include <poll.h>

#include <algorithm>
#include <deque>
#include <utility>

namespace busbar::interlock {
namespace {

constexpr std::int64_t retry_first_ms = 250;
constexpr std::int64_t retry_last_ms = 5'000;
constexpr std::int64_t login_retry_first_ms =
    60'000;  // a refused login is not repeated fast: devices lock accounts out
constexpr std::int64_t login_retry_last_ms = 900'000;
constexpr std::int64_t warm_every_ms = 10'000;    // so that a command finds its connection open
constexpr std::int64_t stream_silent_ms = 5'000;  // no byte for so long: the stream is taken for lost
constexpr std::int64_t stream_retry_ms = 2'000;
constexpr std::size_t jobs_max = 16;
// An event that does not speak of a leak is followed by a read no sooner than this after the last one: a
// storm of events costs no more than a device without a stream.
constexpr std::int64_t event_pace_ms = 250;
constexpr std::int64_t coolant_every_ms = 500;  // a CDU's connector; its reservoir at every fourth
constexpr std::uint64_t reservoir_every = 4;

bool same_access(const ArmedDevice& left, const ArmedDevice& right) {
  return left.SerializeAsString() == right.SerializeAsString();
}

// What waits for, or is on, the command lane.
struct job {
  enum class kind { command, read_back, connector, reservoir, warm };
  kind what = kind::warm;
  std::string key;    // of a command
  std::string valve;  // empty: power
};

device_walk::aside aside_of(job::kind what) {
  return what == job::kind::connector ? device_walk::aside::connector : device_walk::aside::reservoir;
}

}  // namespace

class device_io::connection {
 public:
  connection(const ArmedDevice& device, std::string stale_session, std::int64_t timeout)
      : spec(device),
        walk(device, std::move(stale_session)),
        timeout_ms(timeout),
        poll(device, timeout, this),
        order(device, timeout, this),
        stream(device, timeout, this) {}
  connection(const connection&) = delete;
  connection& operator=(const connection&) = delete;

  const std::string& name() const { return spec.name(); }
  // Of a device that takes commands, one lane is always free for one: what is no command takes the other. It
  // costs nothing, for a BMC serves one request at a time.
  bool commanded() const { return spec.kind() != "cdu"; }
  bool poll_waits() const {
    return commanded() && order.busy() && !jobs.empty() && jobs.front().what != job::kind::command;
  }
  bool job_waits() const {
    return commanded() && poll.busy() && !lent && jobs.front().what != job::kind::command;
  }
  ArmedDevice spec;
  device_walk walk;
  std::int64_t timeout_ms;
  lane poll;
  lane order;
  lane stream;

  std::int64_t due_ms = 0;        // of the next request, when not busy
  std::int64_t started_ms = 0;    // of the request in flight
  std::int64_t poll_took_ms = 0;  // sum of the service times of the poll under way
  bool detectors_told = false;    // of the poll under way
  std::int64_t detectors_at_ms = 0;
  bool poll_again = false;  // an event of a leak came while a poll was under way
  bool heard = false;       // another event came while a poll was under way
  std::int64_t retry_ms = retry_first_ms;
  std::int64_t login_retry_ms = login_retry_first_ms;
  int failures = 0;  // in a row
  bool lost = true;  // the logic was told so

  std::deque<job> jobs;     // the first is on the lane while it is busy
  std::optional<job> lent;  // a command that goes by the poll lane
  std::int64_t warm_at_ms = 0;
  std::int64_t coolant_at_ms = 0;
  std::uint64_t coolant_reads = 0;

  event_cutter cutter;
  bool streaming = false;
  std::int64_t stream_heard_ms = 0;
  std::int64_t stream_due_ms = 0;
};

device_io::device_io(clock_ms clock, sink emit, std::function<std::int64_t(const std::string&)> interval)
    : clock_(std::move(clock)), emit_(std::move(emit)), interval_(std::move(interval)) {}

device_io::~device_io() {
  follow(nullptr);
}

void device_io::follow(const ArmingRecord* record) {
  std::map<std::string, std::unique_ptr<connection>> next;
  const limits set = record == nullptr ? limits{} : limits_of(*record);
  if (record != nullptr) {
    for (const ArmedDevice& device : record->devices()) {
      const auto old = connections_.find(device.name());
      if (old != connections_.end() && same_access(old->second->spec, device) &&
          old->second->timeout_ms == set.request_timeout_ms) {
        next[device.name()] = std::move(old->second);
        connections_.erase(old);
        continue;
      }
      const auto session = sessions_.find(device.name());
      auto made = std::make_unique<connection>(
          device, session == sessions_.end() ? std::string() : session->second, set.request_timeout_ms);
      made->stream.on_chunk([this, raw = made.get()](std::string_view bytes) { stream_heard(*raw, bytes); });
      next[device.name()] = std::move(made);
    }
  }
  for (auto& [name, gone] : connections_) {
    polls_.abandon(gone->poll);
    commands_.abandon(gone->order);
    streams_.abandon(gone->stream);
  }
  connections_ = std::move(next);
}

bool device_io::sessions_changed() {
  return std::exchange(sessions_changed_, false);
}

// --- commands and read-backs
void device_io::run(const command& what) {
  const auto found = connections_.find(what.device);
  if (found == connections_.end()) return emit_(command_ended{what.key, 0});
  connection& of = *found->second;
  const bool waits = std::any_of(of.jobs.begin(), of.jobs.end(), [&what](const job& each) {
    return each.what == job::kind::command && each.key == what.key;
  });
  if (waits || (of.lent && of.lent->key == what.key)) return;
  // Before every read-back that waits; never before the request that is out.
  auto at = of.jobs.begin() + (of.order.busy() && !of.jobs.empty() ? 1 : 0);
  while (at != of.jobs.end() && at->what == job::kind::command) ++at;
  of.jobs.insert(at, {job::kind::command, what.key, what.valve});
  start_jobs(of, clock_());
}

void device_io::run(const read_back& what) {
  const auto found = connections_.find(what.device);
  if (found == connections_.end()) return;
  connection& of = *found->second;
  const auto add = [&of](const std::string& valve) {
    const bool waits = std::any_of(of.jobs.begin(), of.jobs.end(), [&valve](const job& each) {
      return each.what == job::kind::read_back && each.valve == valve;
    });
    if (!waits && of.jobs.size() < jobs_max) of.jobs.push_back({job::kind::read_back, {}, valve});
  };
  if (of.spec.valves().empty()) add({});
  for (const Valve& valve : of.spec.valves()) add(valve.name());
  start_jobs(of, clock_());
}

void device_io::run(const read_detectors& what) {
  const auto found = connections_.find(what.device);
  if (found != connections_.end()) poll_at_once(*found->second);
}

void device_io::push() {
  commands_.push();
  polls_.push();
}

// A command does not wait for a read-back, or for what keeps the connection open, to be served.
void device_io::lend_poll_lane(connection& of) {
  const bool waits =
      of.jobs.size() > 1 && of.jobs[0].what != job::kind::command && of.jobs[1].what == job::kind::command;
  if (!waits || of.lent || of.poll.busy()) return;
  const auto request = of.walk.trip_request(of.jobs[1].valve);
  if (!request.has_value()) return;
  of.lent = of.jobs[1];
  of.jobs.erase(of.jobs.begin() + 1);
  polls_.start(of.poll, *request);
}

void device_io::lent_finished(connection& of, int curl_code) {
  const job done = *std::exchange(of.lent, std::nullopt);
  const http_response response = curl_code == 0 ? of.poll.take_response() : http_response{};
  if (response.status == 401) {
    of.walk.drop_session();
    of.due_ms = clock_();
    of.jobs.insert(of.jobs.begin() + (of.order.busy() ? 1 : 0), done);
    return lose(of, of.walk.trouble());
  }
  emit_(command_ended{done.key, response.status});
}

void device_io::start_jobs(connection& of, std::int64_t now_ms) {
  if (of.jobs.empty()) return;
  if (of.order.busy()) return lend_poll_lane(of);
  if (of.job_waits()) return;  // until the poll's answer is here
  const job& next = of.jobs.front();
  const bool aside = next.what == job::kind::connector || next.what == job::kind::reservoir;
  const auto request = next.what == job::kind::command     ? of.walk.trip_request(next.valve)
                       : next.what == job::kind::read_back ? of.walk.read_back_request(next.valve)
                       : aside                             ? of.walk.aside_request(aside_of(next.what))
                                                           : of.walk.warm_request();
  if (!request.has_value()) {
    // Not known yet: a command waits for the login and the search, all else is asked for again.
    if (next.what != job::kind::command) of.jobs.pop_front();
    return;
  }
  of.warm_at_ms = now_ms + warm_every_ms;
  commands_.start(of.order, *request);
}

void device_io::job_finished(connection& of, int curl_code) {
  const job done = of.jobs.front();
  const http_response response = curl_code == 0 ? of.order.take_response() : http_response{};
  const bool session_over = response.status == 401;
  if (session_over) {
    of.walk.drop_session();
    of.due_ms = clock_();
  }
  // A command that only the session kept from being taken stays the first.
  if (!(session_over && done.what == job::kind::command)) of.jobs.pop_front();
  start_jobs(of, clock_());
  commands_.push();
  if (session_over) return lose(of, of.walk.trouble());
  if (done.what == job::kind::command) return emit_(command_ended{done.key, response.status});
  if (done.what == job::kind::connector || done.what == job::kind::reservoir) {
    of.walk.take_aside(aside_of(done.what), response);
    if (done.what == job::kind::connector)
      emit_(coolant_seen{of.name(), of.walk.coolant().value_or(coolant_read{})});
    return;
  }
  if (done.what != job::kind::read_back || response.status != 200) return;
  if (done.valve.empty()) return emit_(power_read{of.name(), decode_power(response.body)});
  emit_(valve_read{of.name() + "/" + done.valve, decode_valve(response.body).open_percent});
}

// --- the event stream
void device_io::start_stream(connection& of, std::int64_t now_ms) {
  if (of.stream.busy()) {
    if (now_ms - of.stream_heard_ms < stream_silent_ms) return;
    streams_.abandon(of.stream);
    return stream_lost(of, now_ms);
  }
  if (now_ms < of.stream_due_ms) return;
  const auto request = of.walk.stream_request();
  if (!request.has_value()) return;
  of.cutter = {};
  of.stream_heard_ms = now_ms;
  streams_.start(of.stream, *request);
}

// An event says only that something changed: what the detectors say is read, and judged like every reading.
void device_io::stream_heard(connection& of, std::string_view bytes) {
  set_streaming(of, true);
  of.stream_heard_ms = clock_();
  const event_cutter::outcome seen = of.cutter.feed(bytes);
  if (seen.leak || seen.gap) return poll_at_once(of);
  if (seen.events > 0) poll_soon(of);
}

void device_io::set_streaming(connection& of, bool on) {
  if (std::exchange(of.streaming, on) == on) return;
  of.walk.read_raw_always(on);
  emit_(stream_changed{of.name(), on});
}

// What happened in the gap is read at once; then it is subscribed again.
void device_io::stream_lost(connection& of, std::int64_t now_ms) {
  set_streaming(of, false);
  of.stream_due_ms = now_ms + stream_retry_ms;
  poll_at_once(of);
}

void device_io::poll_at_once(connection& of) {
  if (of.poll.busy())
    of.poll_again = true;
  else
    of.due_ms = std::min(of.due_ms, clock_());
}

void device_io::poll_soon(connection& of) {
  if (of.poll.busy())
    of.heard = true;
  else
    of.due_ms = std::min(of.due_ms, std::max(clock_(), of.detectors_at_ms + event_pace_ms));
}

// --- polls
void device_io::start_aside(connection& of, std::int64_t now_ms) {
  if (now_ms < of.coolant_at_ms || !of.jobs.empty()) return;
  if (!of.walk.aside_request(device_walk::aside::connector)) return;
  of.coolant_at_ms = now_ms + coolant_every_ms;
  of.jobs.push_back({job::kind::connector, {}, {}});
  const bool level = of.coolant_reads++ % reservoir_every == 0;
  if (level && of.walk.aside_request(device_walk::aside::reservoir))
    of.jobs.push_back({job::kind::reservoir, {}, {}});
  start_jobs(of, now_ms);
}

void device_io::start_due(std::int64_t now_ms) {
  for (auto& [name, each] : connections_) {
    if (now_ms >= each->warm_at_ms && each->walk.logged_in() && each->jobs.empty()) {
      each->jobs.push_back({});
      start_jobs(*each, now_ms);
    }
    if (each->walk.logged_in()) start_stream(*each, now_ms);
    start_aside(*each, now_ms);
    if (each->poll.busy() || each->due_ms > now_ms || each->poll_waits()) continue;
    each->started_ms = now_ms;
    polls_.start(each->poll, each->walk.next());
  }
}

void device_io::turn() {
  start_due(clock_());
  const auto owner = [](lane& of) -> connection& { return *static_cast<connection*>(of.owner()); };
  commands_.turn([this, owner](lane& of, int code) { job_finished(owner(of), code); });
  polls_.turn([this, owner](lane& of, int code) { finished(owner(of), code, clock_()); });
  streams_.turn([this, owner](lane& of, int) { stream_lost(owner(of), clock_()); });
  // What the answers led to leaves now, not after the next sleep.
  start_due(clock_());
  push();
}

void device_io::finished(connection& of, int curl_code, std::int64_t now_ms) {
  if (of.lent)
    lent_finished(of, curl_code);
  else
    poll_finished(of, curl_code, now_ms);
  start_jobs(of, clock_());
}

void device_io::poll_finished(connection& of, int curl_code, std::int64_t now_ms) {
  // A search is many requests, once; counted as a poll it would put the next one off by seconds.
  if (of.walk.polling()) of.poll_took_ms += now_ms - of.started_ms;
  if (curl_code == 0) return after_answer(of, of.walk.on(of.poll.take_response()), now_ms);
  of.walk.on_transport_failure();
  of.detectors_told = false;
  of.poll_took_ms = 0;
  of.due_ms = now_ms + of.retry_ms;
  of.retry_ms = std::min(of.retry_ms * 2, retry_last_ms);
  ++of.failures;
  const std::string why = of.poll.transport_error(curl_code);
  // One lost answer is bad luck and staleness judges it; another certificate, or three in a row, is a lost
  // device.
  if (of.poll.wrong_pin() || of.failures >= 3 || !of.walk.logged_in()) return lose(of, why);
  emit_(poll_failed{of.name(), why});
}

void device_io::online(connection& of) {
  emit_(device_online{of.name()});
  emit_(stream_changed{of.name(), of.streaming});
}

void device_io::lose(connection& of, const std::string& why) {
  of.lost = true;
  emit_(device_lost{of.name(), why});
}

void device_io::after_poll(connection& of, std::int64_t now_ms) {
  of.failures = 0;
  of.retry_ms = retry_first_ms;
  of.due_ms = now_ms;
  const std::int64_t took = std::exchange(of.poll_took_ms, 0);
  if (std::exchange(of.lost, false)) online(of);
  // The interval is that between two readings of the detectors.
  if (!of.detectors_told) of.detectors_at_ms = now_ms;
  const std::int64_t read_ms = of.detectors_at_ms;
  if (!std::exchange(of.detectors_told, false)) emit_(detectors_read{of.name(), of.walk.readings(), took});
  if (of.spec.kind() == "power_shelf") emit_(power_read{of.name(), of.walk.power()});
  for (const auto& [valve, open] : of.walk.valve_positions())
    emit_(valve_read{of.name() + "/" + valve, open});
  if (of.walk.coolant().has_value()) emit_(coolant_seen{of.name(), *of.walk.coolant()});
  emit_(device_cannot{of.name(), of.walk.cannot()});
  const bool heard = std::exchange(of.heard, false);
  const std::int64_t interval = heard ? std::min(event_pace_ms, interval_(of.name())) : interval_(of.name());
  of.due_ms = std::exchange(of.poll_again, false) ? now_ms : std::max(now_ms, read_ms + interval);
  start_jobs(of, now_ms);  // a command that waited for the search
}

void device_io::after_answer(connection& of, device_walk::news news, std::int64_t now_ms) {
  of.due_ms = now_ms;
  switch (news) {
    case device_walk::news::none:
      return;
    case device_walk::news::logged_in:
      of.login_retry_ms = login_retry_first_ms;
      if (!of.walk.session_uri().empty()) {
        sessions_[of.name()] = of.walk.session_uri();
        sessions_changed_ = true;
      }
      of.poll_took_ms = 0;
      of.lost = false;
      start_jobs(of, now_ms);
      return online(of);
    case device_walk::news::detectors_done:
      of.detectors_told = true;
      of.detectors_at_ms = now_ms;
      return emit_(detectors_read{of.name(), of.walk.readings(), of.poll_took_ms});
    case device_walk::news::poll_done:
      return after_poll(of, now_ms);
    case device_walk::news::session_lost:
      of.poll_took_ms = 0;
      return lose(of, of.walk.trouble());
    case device_walk::news::login_refused:
      of.due_ms = now_ms + of.login_retry_ms;
      of.login_retry_ms = std::min(of.login_retry_ms * 2, login_retry_last_ms);
      return lose(of, of.walk.trouble());
    case device_walk::news::failed:
      of.poll_took_ms = 0;
      of.due_ms = now_ms + of.retry_ms;
      of.retry_ms = std::min(of.retry_ms * 2, retry_last_ms);
      if (!of.walk.logged_in()) return lose(of, of.walk.trouble());
      return emit_(poll_failed{of.name(), of.walk.trouble()});
  }
}

void device_io::wait(std::vector<pollfd>* extra, std::int64_t limit_ms) {
  const std::int64_t now_ms = clock_();
  for (const auto& [name, each] : connections_) {
    if (!each->poll.busy() && !each->poll_waits()) limit_ms = std::min(limit_ms, each->due_ms - now_ms);
    if (each->coolant_at_ms > now_ms && each->jobs.empty())
      limit_ms = std::min(limit_ms, each->coolant_at_ms - now_ms);
  }
  lane_pool::wait(extra, limit_ms, {&polls_, &commands_, &streams_});
}

}  // namespace busbar::interlock
