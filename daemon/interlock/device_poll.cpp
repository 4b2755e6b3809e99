// The polls of a device_walk: one group read a cycle where the device expands collections, else detector by
// detector.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "daemon/interlock/device_walk.hpp"

namespace busbar::interlock {
namespace {

constexpr std::uint64_t raw_every = 4;            // polls
constexpr std::uint64_t search_again_after = 32;  // polls, while a needed detector is missing

}  // namespace

void device_walk::start_poll() {
  stage_ = stage::poll;
  plan_.clear();
  readings_.clear();
  plan_detectors();
  if (device_.kind() == "power_shelf" && !reset_.uri.empty()) plan_.push_back({reading_of::power, {}});
  for (const auto& [name, valve] : valves_) plan_.push_back({reading_of::valve, name});
  if (has_aside()) return;
  if (!connector_uri_.empty()) plan_.push_back({reading_of::connector, {}});
  if (!reservoir_uri_.empty()) plan_.push_back({reading_of::reservoir, {}});
}

bool device_walk::reads_raw() const {
  return raw_always_ || polls_ % raw_every == 0;
}

void device_walk::plan_detectors() {
  const bool with_raw = reads_raw();
  plan_with_raw_ = with_raw;
  std::set<std::string> lists;
  std::set<std::string> raw_lists;
  for (const std::string& name : device_.detectors()) {
    const auto found = found_.find(name);
    if (found == found_.end()) {
      readings_[name] = {DetectorReading::UNKNOWN, "the device shows no such detector"};
      continue;
    }
    found->second.body.clear();
    if (with_raw && raw_expands_ && !found->second.raw_list.empty())
      raw_lists.insert(found->second.raw_list);
    else if (with_raw && !found->second.raw_uri.empty())
      plan_.push_back({reading_of::raw, name});
    if (!expands_)
      plan_.push_back({reading_of::detector, name});
    else
      lists.insert(found->second.list_uri);
  }
  for (const std::string& list : raw_lists) plan_.push_front({reading_of::raw_group, list});
  for (const std::string& list : lists) plan_.push_back({reading_of::group, list});
}

void device_walk::judge(const std::string& name, found_detector& detector) {
  readings_[name] =
      decode_detector(detector.body, last_segment(detector.uri), detector.raw, device_.quirks());
}

// Judged again with its present analog value before anybody sees the verdict.
void device_walk::take_detector(const std::string& name, found_detector& detector, const std::string& body) {
  detector.body = body;
  judge(name, detector);
  const bool ask_raw =
      !detector.raw_uri.empty() && !plan_with_raw_ && readings_[name].seen != DetectorReading::DRY;
  if (ask_raw)
    plan_.push_front({reading_of::raw, name});
  else
    detector.body.clear();
}

void device_walk::take_raw(const std::string& name, found_detector& detector, const http_response& response) {
  if (response.status == 404) search_again_ = true;
  note_raw(detector, response.status == 200 ? decode_raw(response.body) : raw_leak::unreadable);
  if (!detector.body.empty()) judge(name, detector);
  detector.body.clear();
}

void device_walk::note_raw(found_detector& detector, raw_leak raw) {
  if (detector.raw == raw) return;
  detector.raw = raw;
  dry_bodies_.erase(detector.list_uri);
}

// What the one answer does not hold is read one by one in this very poll: a value that is not there would let
// a detector's word stand alone.
void device_walk::take_raw_group(const std::string& list, const http_response& response) {
  std::map<std::string, raw_leak> values;
  if (response.status == 200) {
    each_member(response.body, [&values](const std::string& uri, devices::redfish::json_view body) {
      values[uri] = devices::redfish::decode_raw_leak(body);
    });
  }
  // A trouble of the moment is asked again as a whole; a list that is not given so is not.
  if (values.empty() && response.status < 502) raw_expands_ = false;
  for (auto& [name, detector] : found_) {
    if (detector.raw_list != list) continue;
    const auto value = values.find(detector.raw_uri);
    if (value != values.end())
      note_raw(detector, value->second);
    else
      plan_.push_front({reading_of::raw, name});
  }
}

void device_walk::take_group(const std::string& list, const std::string& body) {
  if (const auto last = dry_bodies_.find(list); last != dry_bodies_.end() && last->second == body) {
    for (const auto& [name, detector] : found_) {
      if (detector.list_uri == list) readings_[name] = dry_readings_[name];
    }
    return;
  }
  std::map<std::string, reading> judged;
  std::map<std::string, std::string> bodies;
  const std::size_t members = each_member(
      body, [this, &list, &judged, &bodies](const std::string& uri, devices::redfish::json_view member) {
        for (const auto& [name, detector] : found_) {
          if (detector.list_uri != list || detector.uri != uri) continue;
          judged[name] = decode_detector(member, last_segment(uri), detector.raw, device_.quirks());
          if (judged[name].seen != DetectorReading::DRY) bodies[name] = member.raw();
        }
      });
  if (members == 0) {
    // It says that it expands and does not: one by one from now on.
    expands_ = false;
    for (const auto& [name, detector] : found_) {
      if (detector.list_uri == list) plan_.push_back({reading_of::detector, name});
    }
    return;
  }
  bool all_dry = true;
  for (auto& [name, detector] : found_) {
    if (detector.list_uri != list) continue;
    const auto one = judged.find(name);
    all_dry = all_dry && one != judged.end() && one->second.seen == DetectorReading::DRY;
    if (one == judged.end())
      readings_[name] = {DetectorReading::UNKNOWN, "the group does not hold it"}, search_again_ = true;
    else if (one->second.seen == DetectorReading::DRY)
      readings_[name] = dry_readings_[name] = one->second;
    else
      take_detector(name, detector, bodies[name]);
  }
  if (all_dry)
    dry_bodies_[list] = body;
  else
    dry_bodies_.erase(list);
}

void device_walk::take_aside(aside what, const http_response& response) {
  take_other({what == aside::connector ? reading_of::connector : reading_of::reservoir, {}}, response);
}

void device_walk::take_other(const step_of_poll& done, const http_response& response) {
  const bool ok = response.status == 200;
  if (response.status == 404) search_again_ = true;
  if (done.what == reading_of::power) power_ = ok ? decode_power(response.body) : power_seen::unknown;
  if (done.what == reading_of::valve)
    positions_[done.name] = ok ? decode_valve(response.body).open_percent : std::nullopt;
  if (done.what == reading_of::connector) {
    const auto level = coolant_ ? coolant_->level_percent : std::nullopt;
    coolant_.emplace().level_percent = level;
    if (ok) decode_connector(response.body, &*coolant_);
  }
  if (done.what == reading_of::reservoir) {
    if (!coolant_) coolant_.emplace();
    coolant_->level_percent.reset();
    if (ok) decode_reservoir(response.body, &*coolant_);
  }
}

device_walk::news device_walk::after_reading(const http_response& response) {
  const step_of_poll done = std::move(plan_.front());
  plan_.pop_front();
  switch (done.what) {
    case reading_of::raw:
      take_raw(done.name, found_.at(done.name), response);
      break;
    case reading_of::raw_group:
      take_raw_group(done.name, response);
      break;
    case reading_of::detector:
      if (response.status == 404) search_again_ = true;  // a firmware update moved it
      if (response.status == 200)
        take_detector(done.name, found_.at(done.name), response.body);
      else
        readings_[done.name] = {DetectorReading::UNKNOWN, fmt::format("HTTP {}", response.status)};
      break;
    case reading_of::group:
      if (response.status == 200) {
        take_group(done.name, response.body);
        break;
      }
      if (response.status == 404) search_again_ = true;
      if (response.status == 400 || response.status == 501) expands_ = false;
      for (const auto& [name, detector] : found_) {
        if (detector.list_uri == done.name)
          readings_[name] = {DetectorReading::UNKNOWN, fmt::format("HTTP {}", response.status)};
      }
      break;
    case reading_of::power:
    case reading_of::valve:
    case reading_of::connector:
    case reading_of::reservoir:
      take_other(done, response);
      break;
  }
  // A verdict does not wait for what else is read of the device.
  const auto of_detectors = [](const step_of_poll& step) {
    return step.what == reading_of::raw || step.what == reading_of::raw_group ||
           step.what == reading_of::detector || step.what == reading_of::group;
  };
  if (!plan_.empty())
    return of_detectors(done) && !of_detectors(plan_.front()) ? news::detectors_done : news::none;
  finish_poll();
  return news::poll_done;
}

void device_walk::finish_poll() {
  ++polls_;
  ++polls_since_search_;
  // readings() stays until the next answer; only the plan is laid anew.
  const auto kept = readings_;
  if (search_again_ || (!all_found() && polls_since_search_ >= search_again_after))
    start_search();
  else
    start_poll();
  readings_ = kept;
}

}  // namespace busbar::interlock
