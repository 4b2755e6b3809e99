#include "daemon/interlock/device_walk.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace busbar::interlock {
namespace {

constexpr std::size_t token_max = 1024;
constexpr std::size_t visits_max = 256;

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

constexpr const char* group_query = "?$expand=.($levels=1)";
// A list of sensors is read as a whole while it holds at most so many times the detectors that are asked for.
constexpr std::size_t sensors_a_detector = 4;

}  // namespace

device_walk::device_walk(ArmedDevice device, std::string stale_session)
    : device_(std::move(device)), stale_session_(std::move(stale_session)) {}

http_request device_walk::next() const {
  switch (stage_) {
    case stage::root:
      return {"GET", "/redfish/v1/", {}, {}};
    case stage::login:
      return {"POST",
              root_.sessions,
              fmt::format("{{\"UserName\":{},\"Password\":{}}}", json_text(device_.account()),
                          json_text(device_.password())),
              {}};
    case stage::drop_stale:
      return {"DELETE", stale_session_, {}, token_};
    case stage::search:
      return {"GET", visits_.front().uri, {}, token_};
    case stage::poll:
      break;
  }
  const step_of_poll& step = plan_.front();
  const auto get = [this](const std::string& path) { return http_request{"GET", path, {}, token_}; };
  switch (step.what) {
    case reading_of::group:
    case reading_of::raw_group:
      return get(step.name + group_query);
    case reading_of::detector:
      return get(found_.at(step.name).uri);
    case reading_of::raw:
      return get(found_.at(step.name).raw_uri);
    case reading_of::power:
      return get(reset_.uri);
    case reading_of::valve:
      return get(valves_.at(step.name).uri);
    case reading_of::connector:
      return get(connector_uri_);
    case reading_of::reservoir:
      return get(reservoir_uri_);
  }
  return get("/redfish/v1/");
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
      start_search();
      return news::none;
    case stage::search:
      return after_visit(response);
    case stage::poll:
      return after_reading(response);
  }
  return fail("no such stage");
}

void device_walk::on_transport_failure() {
  if (stage_ == stage::poll) return start_poll();
  if (token_.empty())
    stage_ = stage::root;
  else
    start_search();
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
  const auto root = decode_root(response.body);
  const bool cdu = device_.kind() == "cdu";
  if (!root.has_value() || (cdu ? root->thermal.empty() : root->chassis.empty()))
    return fail(
        fmt::format("the service root links no Sessions or no {}", cdu ? "ThermalEquipment" : "Chassis"));
  root_ = *root;
  expands_ = root_.expands;
  raw_expands_ = root_.expands;
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
  if (stale_session_.empty() || stale_session_ == session_uri_)
    start_search();
  else
    stage_ = stage::drop_stale;
  return news::logged_in;
}

void device_walk::start_search() {
  stage_ = stage::search;
  search_again_ = false;
  found_.clear();
  dry_bodies_.clear();
  reset_taken_ = false;  // what commands need stays until the search finds it again: a trip does not wait
  connector_uri_.clear();
  reservoir_uri_.clear();
  coolant_.reset();
  visits_.clear();
  if (device_.kind() == "cdu")
    visits_.push_back({place::thermal, root_.thermal});
  else
    visits_.push_back({place::chassis_list, root_.chassis});
  if (is_tray_walk() && !root_.systems.empty()) visits_.push_back({place::system_list, root_.systems});
  if (!root_.events.empty()) visits_.push_back({place::event_service, root_.events});
}

void device_walk::go_on(place what, const std::optional<std::string>& uri) {
  if (uri.has_value() && visits_.size() < visits_max) visits_.push_front({what, *uri});
}

// In the order of the list, before what was waiting.
void device_walk::go_on_all(place what, const std::string& body) {
  auto uris = member_links(body).value_or(std::vector<std::string>{});
  for (auto uri = uris.rbegin(); uri != uris.rend(); ++uri) go_on(what, *uri);
}

// A part that does not answer is a part that is missing; the rest is looked at all the same.
device_walk::news device_walk::after_visit(const http_response& response) {
  const visit at = visits_.front();
  visits_.pop_front();
  if (at.what == place::chassis_list && (response.status != 200 || !member_links(response.body).has_value()))
    return fail(fmt::format("chassis list: HTTP {}", response.status));
  if (response.status == 200) look_at(at, response.body);
  return visits_.empty() ? end_search() : news::none;
}

void device_walk::look_at(const visit& at, const std::string& body) {
  switch (at.what) {
    case place::chassis_list:
      return go_on_all(place::chassis, body);
    case place::chassis:
      return look_at_chassis(at, body);
    case place::subsystem:
      if (device_.valves_size() > 0) go_on(place::connector_list, link_at(body, {"CoolantConnectors"}));
      return go_on(place::detection, link_at(body, {"LeakDetection"}));
    case place::detection:
      return go_on(place::detector_list, link_at(body, {"LeakDetectors"}));
    case place::detector_list:
      return match_detectors(at, body);
    case place::sensor_list:
      return match_sensors(at, body);
    case place::system_list:
      return go_on_all(place::system, body);
    case place::system:
      if (!reset_taken_) take_reset(at.uri, body, "ComputerSystem.Reset");
      return;
    case place::action_info:
      reset_.offered = decode_reset_types(body);
      return;
    case place::connector_list:
      return go_on_all(place::connector, body);
    case place::connector:
      return look_at_connector(at, body);
    case place::thermal:
      return go_on(place::unit_list, link_at(body, {"CDUs"}));
    case place::unit_list:
      return go_on_all(place::unit, body);
    case place::unit:
      go_on(place::reservoir_list, link_at(body, {"Reservoirs"}));
      go_on(place::connector_list, link_at(body, {"SecondaryCoolantConnectors"}));
      return go_on(place::detection, link_at(body, {"LeakDetection"}));
    case place::reservoir_list:
      if (const auto members = member_links(body); members && !members->empty() && reservoir_uri_.empty())
        reservoir_uri_ = members->front();
      return;
    case place::event_service:
      stream_uri_ = stream_in(body);
      return;
  }
}

void device_walk::look_at_chassis(const visit& at, const std::string& body) {
  if (device_.kind() == "power_shelf") {
    const bool better = !reset_taken_ || is_shelf_chassis(body);
    if (better) take_reset(at.uri, body, "Chassis.Reset");
    return;
  }
  // Sensors after the detectors that they belong to.
  if (!device_.detectors().empty()) go_on(place::sensor_list, link_at(body, {"Sensors"}));
  const auto thermal = link_at(body, {"ThermalSubsystem"});
  if (thermal.has_value()) return go_on(place::subsystem, thermal);
  if (!device_.detectors().empty() && !visits_.empty() && visits_.front().what == place::sensor_list)
    visits_.pop_front();  // a chassis without detectors
}

void device_walk::take_reset(const std::string& uri, const std::string& body, const char* action) {
  const auto reset = decode_reset(uri, body, action);
  if (!reset.has_value()) return;
  reset_ = *reset;
  reset_taken_ = true;
  std::erase_if(visits_, [](const visit& each) { return each.what == place::action_info; });
  if (reset_.offered.empty() && !reset_.info.empty()) go_on(place::action_info, reset_.info);
}

void device_walk::look_at_connector(const visit& at, const std::string& body) {
  const std::string name(last_segment(at.uri));
  if (device_.kind() == "cdu") {
    if (name == device_.connector()) connector_uri_ = at.uri;
    return;
  }
  for (const Valve& valve : device_.valves()) {
    if (valve.name() == name) valves_[name] = {at.uri, decode_valve(body).target};
  }
}

void device_walk::match_detectors(const visit& at, const std::string& body) {
  for (const std::string& uri : member_links(body).value_or(std::vector<std::string>{})) {
    for (const std::string& name : device_.detectors()) {
      if (!is_detector(last_segment(uri), name)) continue;
      const auto [row, fresh] = found_.try_emplace(name);
      if (fresh) row->second.uri = uri, row->second.list_uri = at.uri;
    }
  }
}

void device_walk::match_sensors(const visit& at, const std::string& body) {
  const auto uris = member_links(body).value_or(std::vector<std::string>{});
  const bool small = uris.size() <= sensors_a_detector * static_cast<std::size_t>(device_.detectors_size());
  for (const std::string& uri : uris) {
    for (auto& [name, detector] : found_) {
      if (last_segment(uri) != last_segment(detector.uri)) continue;
      detector.raw_uri = uri;
      detector.raw_list = small ? at.uri : std::string();
    }
  }
}

bool device_walk::all_found() const {
  return found_.size() == static_cast<std::size_t>(device_.detectors_size());
}

std::string device_walk::what_is_missing() const {
  const bool switched = is_tray_walk() || device_.kind() == "power_shelf";
  if (switched && reset_.target.empty()) return "cannot turn it off: no reset action was found";
  if (switched && off_type(reset_.offered).empty())
    return "cannot turn it off: neither ForceOff nor GracefulShutdown is offered";
  for (const Valve& valve : device_.valves()) {
    const auto found = valves_.find(valve.name());
    if (found == valves_.end()) return fmt::format("cannot close valve {}: there is none", valve.name());
    if (found->second.target.empty())
      return fmt::format("cannot close valve {}: ValveControl is not offered", valve.name());
  }
  if (!device_.connector().empty() && connector_uri_.empty())
    return fmt::format("cannot read the coolant: there is no connector {}", device_.connector());
  return {};
}

device_walk::news device_walk::end_search() {
  polls_since_search_ = 0;
  if (!device_.detectors().empty() && found_.empty()) return fail("none of the needed detectors was found");
  cannot_ = what_is_missing();
  // What exists is polled even when some are missing: a leak it sees must latch.
  start_poll();
  if (plan_.empty()) return fail(cannot_.empty() ? "the device has nothing to read" : cannot_);
  return news::none;
}

std::optional<http_request> device_walk::trip_request(const std::string& valve) const {
  if (token_.empty()) return std::nullopt;
  if (!valve.empty()) {
    const auto found = valves_.find(valve);
    if (found == valves_.end() || found->second.target.empty()) return std::nullopt;
    return http_request{"POST", found->second.target,
                        R"({"ValveState":"Closed","ValveStateReason":"LeakDetected"})", token_};
  }
  const std::string_view type = off_type(reset_.offered);
  if (reset_.target.empty() || type.empty()) return std::nullopt;
  return http_request{"POST", reset_.target, fmt::format(R"({{"ResetType":"{}"}})", type), token_};
}

std::optional<http_request> device_walk::read_back_request(const std::string& valve) const {
  if (token_.empty()) return std::nullopt;
  if (valve.empty())
    return reset_.uri.empty() ? std::nullopt : std::optional(http_request{"GET", reset_.uri, {}, token_});
  const auto found = valves_.find(valve);
  return found == valves_.end() ? std::nullopt
                                : std::optional(http_request{"GET", found->second.uri, {}, token_});
}

std::optional<http_request> device_walk::aside_request(aside what) const {
  const std::string& uri = what == aside::connector ? connector_uri_ : reservoir_uri_;
  if (!has_aside() || stage_ != stage::poll || token_.empty() || uri.empty()) return std::nullopt;
  return http_request{"GET", uri, {}, token_};
}

std::optional<http_request> device_walk::warm_request() const {
  if (token_.empty()) return std::nullopt;
  return http_request{"GET", "/redfish/v1/", {}, token_};
}

std::optional<http_request> device_walk::stream_request() const {
  if (token_.empty() || stream_uri_.empty()) return std::nullopt;
  return http_request{"GET", stream_uri_, {}, token_};
}

}  // namespace busbar::interlock
