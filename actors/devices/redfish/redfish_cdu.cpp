#include "actors/devices/redfish/redfish_cdu.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "actors/core/errors.hpp"
#include "actors/devices/redfish/driver.hpp"

namespace busbar::devices::redfish {
namespace {

using core::fault;
using core::make_fault;

// Where a value is written: a Control, or a property of the object that shows it.
struct control_place {
  std::string uri;
  std::string property;  // empty: the object is the Control itself
};

struct unit {
  driver_ptr d;
  credentials login;
  std::map<cdu_value, control_place> controls;              // as seen at the last read
  std::map<cdu_value, std::vector<std::string>> duty_uris;  // Controls of pumps and of the facility valve
};
using unit_ptr = std::shared_ptr<unit>;

task<absl::StatusOr<fetched>> find_cooling_unit(unit_ptr u) {
  if (u->d->device->wrong_logins() > 0) {
    co_return make_fault(
        fault::CREDENTIAL_FACTORY_REFUSED,
        fmt::format("{} refused the login {}; it is not asked again until its login is corrected",
                    u->d->device->address(), u->login.user));
  }
  if (!u->login.user.empty()) u->d->device->use_basic(u->login);
  const absl::StatusOr<std::string> equipment = co_await root_link(u->d, "ThermalEquipment");
  if (!equipment.ok()) co_return equipment.status();
  const fetched body = co_await fetch(u->d->device, *equipment, priority::telemetry);
  if (!body.ok()) co_return body.status;
  const auto cdus = body.body()["CDUs"].link();
  if (!cdus) {
    co_return make_fault(fault::BMC_BAD_DATA,
                         fmt::format("{} on {} links no CDUs", *equipment, u->d->device->address()));
  }
  const listing list = co_await fetch_list(u->d->device, *cdus, priority::telemetry);
  if (!list.ok()) co_return list.status;
  if (list.members.size() != 1) {
    co_return make_fault(fault::BMC_BAD_DATA,
                         fmt::format("{} on {} lists {} cooling units; one is expected", *cdus,
                                     u->d->device->address(), list.members.size()));
  }
  fetched found = co_await fetch(u->d->device, list.members.front(), priority::telemetry);
  if (!found.ok()) co_return found.status;
  co_return found;
}

// The bodies behind a link that may be absent. A device that does not answer at all is told by `down`.
struct bodies_read {
  std::vector<fetched> bodies;
  absl::Status down;
};
task<bodies_read> bodies_behind(unit_ptr u, json_view from) {
  bodies_read read;
  const auto uri = from.link();
  if (!uri) co_return read;
  const listing list = co_await fetch_list(u->d->device, *uri, priority::telemetry, list_of::bodies);
  if (list.device_failed()) read.down = list.status;
  if (!list.ok()) co_return read;
  read.bodies = co_await fetch_members(u->d->device, list, priority::telemetry);
  for (const fetched& one : read.bodies) {
    if (one.device_failed()) read.down = one.status;
  }
  co_return read;
}

bool counts(const fetched& one) {
  if (!one.ok()) return false;
  const status_words status = decode_status(one.body());
  return status.state.empty() || status.works();
}

set_point_facts decode_set_point(json_view control) {
  set_point_facts facts;
  facts.value = control["SetPoint"].number();
  facts.least = control["AllowableMin"].number();
  facts.most = control["AllowableMax"].number();
  const std::string mode = control["ControlMode"].text().value_or("");
  facts.writable = facts.value.has_value() && mode != "Disabled";
  return facts;
}

// A control as a connector shows it; its own object is where it is written, if the connector names one.
void take_control(unit& u, cdu_facts& facts, json_view shown, cdu_value what, const control_place& here) {
  if (shown.missing()) return;
  set_point_facts& into = what == cdu_value::supply_set_point ? facts.supply_set_point : facts.dp_set_point;
  if (into.value.has_value()) return;
  into = decode_set_point(shown);
  const auto source = shown["DataSourceUri"].text();
  u.controls[what] = source ? control_place{*source, {}} : here;
}

void take_connector_bodies(unit& u, cdu_facts& facts, const std::vector<fetched>& bodies) {
  for (const fetched& one : bodies) {
    connector_facts row;
    row.id = last_part(one.uri);
    if (counts(one)) {
      const json_view body = one.body();
      row.flow_lpm = decode_excerpt(body["FlowLitersPerMinute"]);
      row.dp_kpa = decode_excerpt(body["DeltaPressurekPa"]);
      row.supply_c = decode_excerpt(body["SupplyTemperatureCelsius"]);
      row.return_c = decode_excerpt(body["ReturnTemperatureCelsius"]);
      row.heat_kw = decode_excerpt(body["HeatRemovedkW"]);
      take_control(u, facts, body["SupplyTemperatureControlCelsius"], cdu_value::supply_set_point,
                   {one.uri, "SupplyTemperatureControlCelsius"});
      take_control(u, facts, body["DeltaPressureControlkPa"], cdu_value::dp_set_point,
                   {one.uri, "DeltaPressureControlkPa"});
    }
    facts.connectors.push_back(std::move(row));
  }
}

// A Control that takes a pump or a valve from the unit's own controller, where its object is named.
void take_duty(unit& u, cdu_value what, json_view shown) {
  const auto source = shown["DataSourceUri"].text();
  if (source) u.duty_uris[what].push_back(*source);
}

void take_facility(unit& u, cdu_facts& facts, const std::vector<fetched>& bodies) {
  for (const fetched& one : bodies) {
    if (!counts(one)) continue;
    facts.facility_flow_lpm = decode_excerpt(one.body()["FlowLitersPerMinute"]);
    facts.facility_supply_c = decode_excerpt(one.body()["SupplyTemperatureCelsius"]);
    facts.facility_return_c = decode_excerpt(one.body()["ReturnTemperatureCelsius"]);
    facts.facility_valve_percent = decode_excerpt(one.body()["ValvePositionPercent"]);
    take_duty(u, cdu_value::valve_duty, one.body()["ValvePositionControlPercent"]);
    return;
  }
}

void take_pumps(unit& u, cdu_facts& facts, const std::vector<fetched>& bodies) {
  constexpr double standstill_percent = 0.5;
  for (const fetched& one : bodies) {
    pump_facts pump;
    pump.id = last_part(one.uri);
    if (one.ok()) {
      const status_words status = decode_status(one.body());
      pump.health = status.health;
      pump.speed_percent = decode_excerpt(one.body()["PumpSpeedPercent"]);
      if (pump.speed_percent) pump.running = *pump.speed_percent > standstill_percent;
      if (!pump.running && !status.state.empty() && !status.works()) pump.running = false;
      take_duty(u, cdu_value::pump_duty, one.body()["SpeedControlPercent"]);
    }
    facts.pumps.push_back(std::move(pump));
  }
}

void take_reservoirs(unit&, cdu_facts& facts, const std::vector<fetched>& bodies) {
  for (const fetched& one : bodies) {
    if (!counts(one)) continue;
    facts.level_percent = decode_excerpt(one.body()["FluidLevelPercent"]);
    facts.system_kpa = decode_excerpt(one.body()["InternalPressurekPa"]);
    return;
  }
}

void take_detectors(cdu_facts& facts, const std::vector<fetched>& bodies) {
  for (const fetched& one : bodies) {
    detector_facts row;
    if (one.ok()) row = judge_detector(one.body(), raw_leak::not_offered);
    if (!one.ok()) row.detail = std::string(one.status.message());
    row.name = last_part(one.uri);
    facts.detectors.push_back(std::move(row));
  }
}

// The watchdog of a duty: makers put it where the schema has no place for it.
std::optional<double> override_timeout(json_view control) {
  for (const auto& [maker, body] : control["Oem"].entries()) {
    if (const auto seconds = body["OverrideTimeoutSeconds"].number()) return seconds;
  }
  return std::nullopt;
}

bool is_duty(const unit& u, const std::string& uri) {
  return std::any_of(u.duty_uris.begin(), u.duty_uris.end(), [&uri](const auto& row) {
    return std::find(row.second.begin(), row.second.end(), uri) != row.second.end();
  });
}

// Controls of the unit's chassis: set-points where the connectors show none, and who has the duties.
void take_chassis_controls(unit& u, cdu_facts& facts, const std::vector<fetched>& bodies) {
  for (const fetched& one : bodies) {
    if (!one.ok()) continue;
    const std::string type = one.body()["ControlType"].text().value_or("");
    const control_place here{one.uri, {}};
    const bool pressure = type == "PressurekPa" || type == "Pressure";
    if (is_duty(u, one.uri)) {
      const auto mode = one.body()["ControlMode"].text();
      if (mode) facts.own_control = facts.own_control.value_or(true) && *mode == "Automatic";
      if (!facts.watchdog_s) facts.watchdog_s = override_timeout(one.body());
    } else if (type == "Temperature") {
      take_control(u, facts, one.body(), cdu_value::supply_set_point, here);
    } else if (pressure) {
      take_control(u, facts, one.body(), cdu_value::dp_set_point, here);
    }
    // The excerpt of a connector may leave out what its Control says.
    for (const auto& [what, place] : u.controls) {
      if (place.uri != one.uri) continue;
      set_point_facts& into =
          what == cdu_value::supply_set_point ? facts.supply_set_point : facts.dp_set_point;
      if (const set_point_facts full = decode_set_point(one.body()); full.value) into = full;
    }
  }
}

task<absl::Status> take_controls(unit_ptr u, std::shared_ptr<cdu_facts> facts, json_document of_unit) {
  const std::vector<json_view> chassis = of_unit.root()["Links"]["Chassis"].items();
  for (const json_view one : chassis) {
    const auto uri = one.link();
    if (!uri) continue;
    const fetched body = co_await fetch(u->d->device, *uri, priority::telemetry);
    if (body.device_failed()) co_return body.status;
    if (!body.ok()) continue;
    const bodies_read controls = co_await bodies_behind(u, body.body()["Controls"]);
    if (!controls.down.ok()) co_return controls.down;
    take_chassis_controls(*u, *facts, controls.bodies);
  }
  co_return absl::OkStatus();
}

task<absl::Status> take_air(unit_ptr u, std::shared_ptr<cdu_facts> facts, json_document of_unit) {
  const auto uri = of_unit.root()["EnvironmentMetrics"].link();
  if (!uri) co_return absl::OkStatus();
  const fetched body = co_await fetch(u->d->device, *uri, priority::telemetry);
  if (body.device_failed()) co_return body.status;
  if (!body.ok()) co_return absl::OkStatus();
  facts->air_c = decode_excerpt(body.body()["AmbientTemperatureCelsius"]);
  if (!facts->air_c) facts->air_c = decode_excerpt(body.body()["TemperatureCelsius"]);
  facts->humidity_percent = decode_excerpt(body.body()["HumidityPercent"]);
  co_return absl::OkStatus();
}

task<absl::StatusOr<cdu_facts>> read_cdu(unit_ptr u) {
  const absl::StatusOr<fetched> found = co_await find_cooling_unit(u);
  if (!found.ok()) co_return found.status();
  const json_view body = found->body();
  const auto facts = std::make_shared<cdu_facts>();
  facts->source = found->uri;
  facts->health = decode_status(body).health;
  u->duty_uris.clear();
  using taker = void (*)(unit&, cdu_facts&, const std::vector<fetched>&);
  const std::vector<std::pair<const char*, taker>> lists = {
      {"PrimaryCoolantConnectors", &take_facility}, {"Pumps", &take_pumps}, {"Reservoirs", &take_reservoirs}};
  const bodies_read connectors = co_await bodies_behind(u, body["SecondaryCoolantConnectors"]);
  if (!connectors.down.ok()) co_return connectors.down;
  take_connector_bodies(*u, *facts, connectors.bodies);
  for (const auto& [key, take] : lists) {
    const bodies_read read = co_await bodies_behind(u, body[key]);
    if (!read.down.ok()) co_return read.down;
    take(*u, *facts, read.bodies);
  }
  if (const auto detection_uri = body["LeakDetection"].link()) {
    const fetched detection = co_await fetch(u->d->device, *detection_uri, priority::telemetry);
    if (detection.device_failed()) co_return detection.status;
    const bodies_read detectors = co_await bodies_behind(u, detection.body()["LeakDetectors"]);
    if (!detectors.down.ok()) co_return detectors.down;
    take_detectors(*facts, detectors.bodies);
  }
  const absl::Status controls = co_await take_controls(u, facts, found->document);
  if (!controls.ok()) co_return controls;
  const absl::Status air = co_await take_air(u, facts, found->document);
  if (!air.ok()) co_return air;
  take_connectors(*facts);
  co_return *facts;
}

absl::Status has_none(const unit& u, cdu_value what) {
  return absl::UnimplementedError(
      fmt::format("{} shows no Control for its {}", u.d->device->address(), name_of(what)));
}

// A duty is for every pump; the first that refuses ends it, and the watchdog gives back what was taken.
task<absl::Status> write_duty(unit_ptr u, cdu_value what, double value) {
  const bool back = what == cdu_value::own_control;
  std::vector<std::string> uris;
  for (const auto& [of, controls] : u->duty_uris) {
    if (back || of == what) uris.insert(uris.end(), controls.begin(), controls.end());
  }
  if (uris.empty()) co_return has_none(*u, what);
  const std::string body =
      back ? json_object({{"ControlMode", json_quote("Automatic")}})
           : json_object({{"ControlMode", json_quote("Override")}, {"SetPoint", format_number(value)}});
  for (const std::string& uri : uris) {
    const absl::Status written = co_await patch(u->d->device, uri, body, priority::command);
    if (!written.ok()) co_return written;
  }
  co_return absl::OkStatus();
}

task<absl::Status> write_cdu(unit_ptr u, cdu_value what, double value) {
  if (u->controls.empty()) {  // where things stand is learned by reading
    const absl::StatusOr<cdu_facts> read = co_await read_cdu(u);
    if (!read.ok()) co_return read.status();
  }
  const bool is_set_point = what == cdu_value::supply_set_point || what == cdu_value::dp_set_point;
  if (!is_set_point) co_return co_await write_duty(u, what, value);
  const auto place = u->controls.find(what);
  if (place == u->controls.end()) co_return has_none(*u, what);
  const std::string set = json_object({{"SetPoint", format_number(value)}});
  const std::string body =
      place->second.property.empty() ? set : json_object({{place->second.property, set}});
  co_return co_await patch(u->d->device, place->second.uri, body, priority::command);
}

class redfish_cdu final : public cdu {
 public:
  redfish_cdu(unit_ptr u, std::shared_ptr<scheduler> loop) : unit_(std::move(u)), loop_(std::move(loop)) {}
  ~redfish_cdu() override {
    loop_->post([u = unit_] { u->d->device->close(); });
  }
  void read(answer<cdu_facts> reply) override {
    loop_->post(
        [u = unit_, reply = std::move(reply)] { start<absl::StatusOr<cdu_facts>>(read_cdu(u), reply); });
  }
  void write(cdu_value what, double value, done reply) override {
    loop_->post([u = unit_, what, value, reply = std::move(reply)] {
      start<absl::Status>(write_cdu(u, what, value), reply);
    });
  }

 private:
  const unit_ptr unit_;
  const std::shared_ptr<scheduler> loop_;
};

}  // namespace

std::shared_ptr<cdu> make_redfish_cdu(std::string address, credentials login,
                                      std::shared_ptr<http_transport> transport,
                                      std::shared_ptr<scheduler> loop, device_options options) {
  auto u = std::make_shared<unit>();
  u->d = std::make_shared<driver>();
  u->d->device = std::make_shared<device>(std::move(address), std::move(transport), loop, options);
  u->login = std::move(login);
  return std::make_shared<redfish_cdu>(std::move(u), std::move(loop));
}

}  // namespace busbar::devices::redfish
