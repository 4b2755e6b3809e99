// Leak detectors of a tray: found once by walking every chassis, then read with their raw values before
// anything else.
#include <fmt/format.h>

#include <algorithm>

#include "actors/core/errors.hpp"
#include "actors/devices/redfish/driver.hpp"

namespace busbar::devices::redfish {

using core::fault;
using core::make_fault;

namespace {

struct found_detectors {
  std::vector<detector_place> places;
  absl::Status failed;  // of the device: nothing is known
  bool sure = true;     // false: a part of the tree did not answer; look again next time
};

void note(found_detectors& found, const fetched& body) {
  if (body.device_failed()) found.failed = body.status;
  if (!body.ok() && !body.not_found()) found.sure = false;
}

task<found_detectors> detectors_of_chassis(driver_ptr d, fetched chassis) {
  found_detectors found;
  const auto thermal_uri = chassis.body()["ThermalSubsystem"].link();
  if (!thermal_uri) co_return found;
  const fetched thermal = co_await fetch(d->device, *thermal_uri, priority::safety);
  note(found, thermal);
  const auto detection_uri = thermal.body()["LeakDetection"].link();
  if (!thermal.ok() || !detection_uri) co_return found;
  const fetched detection = co_await fetch(d->device, *detection_uri, priority::safety);
  note(found, detection);
  const auto list_uri = detection.body()["LeakDetectors"].link();
  if (!detection.ok() || !list_uri) co_return found;
  const listing list = co_await fetch_list(d->device, *list_uri, priority::safety);
  if (list.device_failed()) found.failed = list.status;
  if (!list.complete) found.sure = false;
  if (list.members.empty()) co_return found;

  std::vector<std::string> sensors;
  if (const auto sensors_uri = chassis.body()["Sensors"].link()) {
    const listing offered = co_await fetch_list(d->device, *sensors_uri, priority::safety);
    if (offered.device_failed()) found.failed = offered.status;
    if (!offered.complete) found.sure = false;
    sensors = offered.members;
  }
  const std::string owner = chassis.body()["Id"].text().value_or(last_part(chassis.uri));
  for (const std::string& uri : list.members) {
    detector_place place;
    place.uri = uri;
    place.name = short_detector_name(last_part(uri), owner);
    const auto sensor = std::find_if(sensors.begin(), sensors.end(), [&uri](const std::string& one) {
      return last_part(one) == last_part(uri);
    });
    if (sensor != sensors.end()) place.sensor = *sensor;
    found.places.push_back(std::move(place));
  }
  co_return found;
}

task<found_detectors> find_detectors(driver_ptr d) {
  found_detectors all;
  const root_members chassis = co_await members_of_root(d, "Chassis", priority::safety);
  if (!chassis.list.ok()) {
    all.failed = chassis.list.status;
    co_return all;
  }
  all.sure = chassis.list.complete;
  for (const fetched& one : chassis.bodies) {
    note(all, one);
    if (!one.ok()) continue;
    const found_detectors some = co_await detectors_of_chassis(d, one);
    all.places.insert(all.places.end(), some.places.begin(), some.places.end());
    all.sure = all.sure && some.sure;
    if (!some.failed.ok()) all.failed = some.failed;
    if (!all.failed.ok()) co_return all;
  }
  co_return all;
}

// LEAK before UNKNOWN before DRY.
int weight(journal::Detector::Verdict verdict) {
  return verdict == journal::Detector::LEAK ? 2 : verdict == journal::Detector::DRY ? 0 : 1;
}

// Two detectors of one short name are one row to the rack: the worse of them.
void add_row(std::vector<detector_facts>& rows, detector_facts row) {
  const auto same = std::find_if(rows.begin(), rows.end(),
                                 [&row](const detector_facts& one) { return one.name == row.name; });
  if (same == rows.end()) {
    rows.push_back(std::move(row));
  } else if (weight(row.verdict) > weight(same->verdict)) {
    *same = std::move(row);
  }
}

}  // namespace

task<absl::StatusOr<std::vector<detector_facts>>> read_detectors(driver_ptr d) {
  if (!d->detectors) {
    const found_detectors found = co_await find_detectors(d);
    if (!found.failed.ok()) co_return found.failed;
    d->detectors = found.places;
    d->detectors_sure = found.sure;
  }
  const std::vector<detector_place> places = *d->detectors;
  if (!d->detectors_sure) d->detectors.reset();
  std::vector<std::string> uris;
  for (const detector_place& place : places) {
    uris.push_back(place.uri);
    if (!place.sensor.empty()) uris.push_back(place.sensor);
  }
  const std::vector<fetched> bodies = co_await fetch_all(d->device, uris, priority::safety);
  std::vector<detector_facts> rows;
  std::size_t next = 0;
  for (const detector_place& place : places) {
    const fetched& body = bodies[next++];
    const fetched* const sensor = place.sensor.empty() ? nullptr : &bodies[next++];
    if (body.device_failed()) co_return body.status;
    if (body.not_found()) d->detectors.reset();
    detector_facts row;
    if (body.ok()) {
      raw_leak raw = raw_leak::not_offered;
      if (sensor != nullptr) raw = sensor->ok() ? decode_raw_leak(sensor->body()) : raw_leak::unreadable;
      row = judge_detector(body.body(), raw);
    } else {
      row.detail = std::string(body.status.message());
    }
    row.name = place.name;
    add_row(rows, std::move(row));
  }
  co_return rows;
}

}  // namespace busbar::devices::redfish
