// The CDU, read for one rack: its connector, its group of detectors, and how the unit itself does. Never
// commands.
#include <fmt/format.h>

#include <algorithm>

#include "actors/core/errors.hpp"
#include "actors/devices/redfish/driver.hpp"

namespace busbar::devices::redfish {

using core::fault;
using core::make_fault;

namespace {

void take_connector(cooling_facts& facts, json_view connector) {
  const status_words status = decode_status(connector);
  if (!status.state.empty() && !status.works()) return;
  facts.flow_lpm = decode_excerpt(connector["FlowLitersPerMinute"]);
  facts.dp_kpa = decode_excerpt(connector["DeltaPressurekPa"]);
  facts.supply_c = decode_excerpt(connector["SupplyTemperatureCelsius"]);
  facts.return_c = decode_excerpt(connector["ReturnTemperatureCelsius"]);
}

task<absl::StatusOr<fetched>> find_unit(driver_ptr d) {
  const absl::StatusOr<std::string> equipment = co_await root_link(d, "ThermalEquipment");
  if (!equipment.ok()) co_return equipment.status();
  const fetched body = co_await fetch(d->device, *equipment, priority::safety);
  if (!body.ok()) co_return body.status;
  const auto uri = body.body()["CDUs"].link();
  if (!uri)
    co_return make_fault(fault::BMC_BAD_DATA,
                         fmt::format("{} on {} links no CDUs", *equipment, d->device->address()));
  const listing list = co_await fetch_list(d->device, *uri, priority::safety);
  if (!list.ok()) co_return list.status;
  if (list.members.size() != 1) {
    co_return make_fault(fault::BMC_BAD_DATA, fmt::format("{} on {} lists {} cooling units; one is expected",
                                                          *uri, d->device->address(), list.members.size()));
  }
  fetched unit = co_await fetch(d->device, list.members.front(), priority::safety);
  if (!unit.ok()) co_return unit.status;
  co_return unit;
}

// One rack's rows of a list: those that are named, else those of its group.
std::vector<std::string> of_rack(const listing& list, const std::string& rack,
                                 const std::vector<std::string>& named) {
  std::vector<std::string> uris;
  for (const std::string& uri : list.members) {
    const std::string id = last_part(uri);
    const bool of_group = named.empty() && (id == rack || id.starts_with(rack + "_"));
    if (of_group || std::find(named.begin(), named.end(), id) != named.end()) uris.push_back(uri);
  }
  return uris;
}

std::optional<std::string> connector_in(const listing& list, const std::string& name) {
  const auto found = std::find_if(list.members.begin(), list.members.end(),
                                  [&name](const std::string& uri) { return last_part(uri) == name; });
  return found == list.members.end() ? std::nullopt : std::optional(*found);
}

// One that the manifest names and the CDU does not show is not dry.
void add_missing(cooling_facts& facts, const std::vector<std::string>& named, const std::string& rack) {
  for (const std::string& name : named) {
    const std::string shown = short_detector_name(name, rack);
    const bool read = std::any_of(facts.detectors.begin(), facts.detectors.end(),
                                  [&shown](const detector_facts& row) { return row.name == shown; });
    if (read) continue;
    detector_facts row;
    row.name = shown;
    row.detail = "the CDU shows no such detector";
    facts.detectors.push_back(std::move(row));
  }
}

task<absl::Status> take_detectors(driver_ptr d, std::shared_ptr<cooling_facts> facts, fetched unit,
                                  std::string rack, std::vector<std::string> named) {
  const auto detection_uri = unit.body()["LeakDetection"].link();
  if (!detection_uri) co_return absl::OkStatus();
  const fetched detection = co_await fetch(d->device, *detection_uri, priority::safety);
  if (detection.device_failed()) co_return detection.status;
  const auto list_uri = detection.body()["LeakDetectors"].link();
  if (!list_uri) co_return absl::OkStatus();
  const listing list = co_await fetch_list(d->device, *list_uri, priority::safety);
  if (list.device_failed()) co_return list.status;
  const std::vector<fetched> bodies =
      co_await fetch_all(d->device, of_rack(list, rack, named), priority::safety);
  for (const fetched& body : bodies) {
    if (body.device_failed()) co_return body.status;
    detector_facts row;
    if (body.ok()) row = judge_detector(body.body(), raw_leak::not_offered);
    if (!body.ok()) row.detail = std::string(body.status.message());
    row.name = short_detector_name(last_part(body.uri), rack);
    facts->detectors.push_back(std::move(row));
  }
  co_return absl::OkStatus();
}

}  // namespace

task<absl::StatusOr<cooling_facts>> read_cooling(driver_ptr d, credentials login, std::string rack,
                                                 cooling_place place) {
  // No session: a rack reads the CDU for years and may die at any moment, and sessions left behind would shut
  // others out.
  if (d->device->wrong_logins() > 0) {
    co_return make_fault(
        fault::CREDENTIAL_FACTORY_REFUSED,
        fmt::format("{} refused its reader {}; it is not asked again until its login is corrected",
                    d->device->address(), login.user));
  }
  if (!login.user.empty()) d->device->use_basic(login);
  const absl::StatusOr<fetched> unit = co_await find_unit(d);
  if (!unit.ok()) co_return unit.status();
  const auto facts = std::make_shared<cooling_facts>();
  facts->cdu_health = decode_status(unit->body()).health;
  const auto connectors = unit->body()["SecondaryCoolantConnectors"].link();
  if (connectors) {
    const listing list = co_await fetch_list(d->device, *connectors, priority::safety);
    if (list.device_failed()) co_return list.status;
    if (const auto uri = connector_in(list, place.connector.empty() ? rack : place.connector)) {
      const fetched body = co_await fetch(d->device, *uri, priority::safety);
      if (body.device_failed()) co_return body.status;
      if (body.ok()) take_connector(*facts, body.body());
    }
  }
  const absl::Status taken = co_await take_detectors(d, facts, *unit, rack, place.detectors);
  if (!taken.ok()) co_return taken;
  add_missing(*facts, place.detectors, rack);
  facts->certificate_sha256 = d->device->pin();
  co_return *facts;
}

}  // namespace busbar::devices::redfish
