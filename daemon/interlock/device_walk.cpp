#include "daemon/interlock/device_walk.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace busbar::interlock {
namespace {

constexpr std::size_t token_max = 1024;
constexpr std::uint64_t raw_every = 4;            // polls
constexpr std::uint64_t search_again_after = 32;  // polls, while a needed detector is missing

std::string json_text(std::string_view text) {
  std::string out = "\"";
  for (const char each : text) {
    const auto byte = static_cast<unsigned char>(each);
    if (each == '"' || each == '\\') {
      out += '\\';
      out += each;
    } else if (byte < 0x20) {
      out += fmt::format("\\u{:04x}", byte);
    } else {
      out += each;
    }
  }
  return out + '"';
}

// Location may be a whole URL or a path.
std::string path_of(std::string_view location) {
  const auto scheme = location.find("://");
  if (scheme == std::string_view::npos) return std::string(location);
  const auto slash = location.find('/', scheme + 3);
  return slash == std::string_view::npos ? std::string() : std::string(location.substr(slash));
}

}  // namespace

device_walk::device_walk(ArmedDevice device, std::string stale_session)
    : device_(std::move(device)), stale_session_(std::move(stale_session)) {}

http_request device_walk::next() const {
  switch (stage_) {
    case stage::root:
      return {"GET", "/redfish/v1/", {}, {}};
    case stage::login:
      return {"POST",
              sessions_uri_,
              fmt::format("{{\"UserName\":{},\"Password\":{}}}", json_text(device_.account()),
                          json_text(device_.password())),
              {}};
    case stage::drop_stale:
      return {"DELETE", stale_session_, {}, token_};
    case stage::chassis_list:
      return {"GET", chassis_uri_, {}, token_};
    case stage::chassis:
    case stage::subsystem:
    case stage::detection:
    case stage::detector_list:
    case stage::sensor_list:
      return {"GET", at_, {}, token_};
    case stage::poll: {
      const found_detector& detector = found_.at(plan_.front().name);
      return {"GET", plan_.front().raw ? detector.raw_uri : detector.uri, {}, token_};
    }
  }
  return {};
}

device_walk::news device_walk::on(const http_response& response) {
  if (response.status == 401 && stage_ != stage::login && stage_ != stage::root) return lose_session();
  switch (stage_) {
    case stage::root:
      return after_root(response);
    case stage::login:
      return after_login(response);
    case stage::drop_stale:  // gone or refused is as good as deleted
      stale_session_.clear();
      stage_ = stage::chassis_list;
      return news::none;
    case stage::chassis_list:
      return after_chassis_list(response);
    case stage::chassis:
    case stage::subsystem:
    case stage::detection:
    case stage::detector_list:
    case stage::sensor_list:
      return after_search_step(response);
    case stage::poll:
      return after_reading(response);
  }
  return fail("no such stage");
}

void device_walk::on_transport_failure() {
  if (stage_ == stage::poll) return start_poll();
  stage_ = token_.empty() ? stage::root : stage::chassis_list;
}

device_walk::news device_walk::fail(std::string why) {
  trouble_ = std::move(why);
  on_transport_failure();
  return news::failed;
}

device_walk::news device_walk::lose_session() {
  token_.clear();
  session_uri_.clear();
  stage_ = stage::root;
  trouble_ = "the device ended the session";
  return news::session_lost;
}

device_walk::news device_walk::after_root(const http_response& response) {
  if (response.status != 200) return fail(fmt::format("service root: HTTP {}", response.status));
  const auto sessions = link_at(response.body, {"Links", "Sessions"});
  const auto chassis = link_at(response.body, {"Chassis"});
  if (!sessions.has_value() || !chassis.has_value())
    return fail("the service root links no Sessions or no Chassis");
  sessions_uri_ = *sessions;
  chassis_uri_ = *chassis;
  stage_ = stage::login;
  return news::none;
}

device_walk::news device_walk::after_login(const http_response& response) {
  stage_ = stage::root;
  if (response.status == 401) {
    trouble_ = "login refused for account " + device_.account();
    return news::login_refused;
  }
  if (response.status != 201 && response.status != 200)
    return fail(fmt::format("login: HTTP {}", response.status));
  if (response.token.empty() || response.token.size() > token_max) return fail("login: no X-Auth-Token");
  token_ = response.token;
  session_uri_ = path_of(response.location);
  if (session_uri_.empty() || session_uri_.front() != '/') session_uri_.clear();
  trouble_.clear();
  stage_ = stale_session_.empty() || stale_session_ == session_uri_ ? stage::chassis_list : stage::drop_stale;
  return news::logged_in;
}

device_walk::news device_walk::after_chassis_list(const http_response& response) {
  const auto members = member_links(response.body);
  if (response.status != 200 || !members.has_value())
    return fail(fmt::format("chassis list: HTTP {}", response.status));
  found_.clear();
  chassis_left_.assign(members->begin(), members->end());
  return next_chassis();
}

device_walk::news device_walk::next_chassis() {
  if (!all_found() && !chassis_left_.empty()) {
    at_ = chassis_left_.front();
    chassis_left_.pop_front();
    stage_ = stage::chassis;
    return news::none;
  }
  search_again_ = false;
  polls_since_search_ = 0;
  polls_ = 0;
  if (found_.empty()) return fail("the device shows none of the needed detectors");
  // What exists is polled even when some are missing: a leak it sees must latch.
  start_poll();
  return news::none;
}

// Chassis -> ThermalSubsystem -> LeakDetection -> LeakDetectors -> members, then the chassis' Sensors for
// their analog values. A chassis that lacks a step has no detectors.
device_walk::news device_walk::after_search_step(const http_response& response) {
  if (stage_ == stage::sensor_list) {
    if (response.status == 200) match_sensors(response.body);
    return next_chassis();
  }
  if (response.status != 200) return next_chassis();
  if (stage_ == stage::detector_list) {
    match_detectors(response.body);
    if (sensors_uri_.empty() || found_.empty()) return next_chassis();
    at_ = sensors_uri_;
    stage_ = stage::sensor_list;
    return news::none;
  }
  if (stage_ == stage::chassis) sensors_uri_ = link_at(response.body, {"Sensors"}).value_or("");
  const char* key = stage_ == stage::chassis     ? "ThermalSubsystem"
                    : stage_ == stage::subsystem ? "LeakDetection"
                                                 : "LeakDetectors";
  const auto link = link_at(response.body, {key});
  if (!link.has_value()) return next_chassis();
  at_ = *link;
  stage_ = stage_ == stage::chassis     ? stage::subsystem
           : stage_ == stage::subsystem ? stage::detection
                                        : stage::detector_list;
  return news::none;
}

void device_walk::match_detectors(const std::string& body) {
  for (const std::string& uri : member_links(body).value_or(std::vector<std::string>{})) {
    for (const std::string& name : device_.detectors()) {
      if (is_detector(last_segment(uri), name)) found_.try_emplace(name).first->second.uri = uri;
    }
  }
}

void device_walk::match_sensors(const std::string& body) {
  for (const std::string& uri : member_links(body).value_or(std::vector<std::string>{})) {
    for (auto& [name, detector] : found_) {
      if (last_segment(uri) == last_segment(detector.uri)) detector.raw_uri = uri;
    }
  }
}

bool device_walk::all_found() const {
  return found_.size() == static_cast<std::size_t>(device_.detectors_size());
}

void device_walk::start_poll() {
  stage_ = stage::poll;
  plan_.clear();
  readings_.clear();
  const bool with_raw = polls_ % raw_every == 0;
  for (const std::string& name : device_.detectors()) {
    const auto found = found_.find(name);
    if (found == found_.end()) {
      readings_[name] = {DetectorReading::UNKNOWN, "the device shows no such detector"};
      continue;
    }
    if (with_raw && !found->second.raw_uri.empty()) plan_.push_back({name, true});
    plan_.push_back({name, false});
  }
}

void device_walk::judge(const std::string& name, found_detector& detector) {
  readings_[name] = decode_detector(detector.body, last_segment(detector.uri), detector.raw);
}

device_walk::news device_walk::after_reading(const http_response& response) {
  const step_of_poll done = std::move(plan_.front());
  plan_.pop_front();
  found_detector& detector = found_.at(done.name);
  if (response.status == 404) search_again_ = true;  // a firmware update moved it
  if (done.raw) {
    detector.raw = response.status == 200 ? decode_raw(response.body) : raw_leak::unreadable;
    if (!detector.body.empty()) judge(done.name, detector);
    detector.body.clear();
  } else if (response.status != 200) {
    readings_[done.name] = {DetectorReading::UNKNOWN, fmt::format("HTTP {}", response.status)};
  } else {
    detector.body = response.body;
    judge(done.name, detector);
    const bool ask_raw = !detector.raw_uri.empty() && polls_ % raw_every != 0 &&
                         readings_[done.name].seen != DetectorReading::DRY;
    // Judged again with its present analog value before anybody sees the verdict.
    if (ask_raw) plan_.push_front({done.name, true});
    if (!ask_raw) detector.body.clear();
  }
  if (!plan_.empty()) return news::none;
  finish_poll();
  return news::poll_done;
}

void device_walk::finish_poll() {
  ++polls_;
  ++polls_since_search_;
  if (search_again_ || (!all_found() && polls_since_search_ >= search_again_after)) {
    stage_ = stage::chassis_list;
    return;
  }
  // readings() stays until the next answer; only the plan is laid anew.
  const auto kept = readings_;
  start_poll();
  readings_ = kept;
}

}  // namespace busbar::interlock
