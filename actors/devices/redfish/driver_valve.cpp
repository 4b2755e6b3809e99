// One valve behind a rack controller: its CoolantConnector under the chassis' thermal subsystem.
#include <fmt/format.h>

#include <algorithm>

#include "actors/core/errors.hpp"
#include "actors/devices/redfish/driver.hpp"

namespace busbar::devices::redfish {

using core::fault;
using core::make_fault;

namespace {

// Reads every second go without waking a BMC that nobody has logged in to yet.
absl::Status session_needed(const driver_ptr& d) {
  if (!d->device->session_user().empty()) return absl::OkStatus();
  return make_fault(fault::BMC_UNREACHABLE,
                    fmt::format("no session is open on {} yet; nothing was sent", d->device->address()));
}

task<absl::StatusOr<std::string>> find_connector(driver_ptr d, std::string connector) {
  const auto known = d->connectors.find(connector);
  if (known != d->connectors.end()) co_return known->second;
  const root_members chassis = co_await members_of_root(d, "Chassis", priority::command);
  if (!chassis.list.ok()) co_return chassis.list.status;
  std::vector<std::string> seen;
  for (const fetched& one : chassis.bodies) {
    if (one.device_failed()) co_return one.status;
    const auto thermal_uri = one.body()["ThermalSubsystem"].link();
    if (!thermal_uri) continue;
    const fetched thermal = co_await fetch(d->device, *thermal_uri, priority::command);
    if (thermal.device_failed()) co_return thermal.status;
    const auto connectors = thermal.body()["CoolantConnectors"].link();
    if (!connectors) continue;
    const listing list = co_await fetch_list(d->device, *connectors, priority::command);
    if (list.device_failed()) co_return list.status;
    for (const std::string& uri : list.members) {
      seen.push_back(last_part(uri));
      if (last_part(uri) != connector) continue;
      d->connectors[connector] = uri;
      co_return uri;
    }
  }
  co_return make_fault(fault::BMC_BAD_DATA,
                       fmt::format("{} shows no coolant connector {}; it shows [{}]", d->device->address(),
                                   connector, fmt::join(seen, ", ")),
                       connector, fmt::format("{}", fmt::join(seen, ", ")));
}

task<absl::StatusOr<fetched>> fetch_connector(driver_ptr d, std::string connector) {
  if (const absl::Status missing = session_needed(d); !missing.ok()) co_return missing;
  const absl::StatusOr<std::string> uri = co_await find_connector(d, connector);
  if (!uri.ok()) co_return uri.status();
  fetched body = co_await fetch(d->device, *uri, priority::command);
  if (body.not_found()) d->connectors.erase(connector);  // looked for anew the next time
  if (!body.ok()) co_return body.status;
  co_return body;
}

std::optional<double> percent(json_view excerpt) {
  const std::optional<double> value = decode_excerpt(excerpt);
  return value && *value >= -5.0 && *value <= 105.0 ? value : std::nullopt;
}

absl::Status refused(const driver_ptr& d, const std::string& uri, const response& answer) {
  if (answer.good()) return absl::OkStatus();
  if (!answer.status.ok()) return answer.status;
  request asked;
  asked.method = http_method::post;
  asked.uri = uri;
  return fault_of_answer(*d->device, asked, answer);
}

// A set-point where the connector has one: in a Control of its own, or in the connector itself.
task<absl::Status> write_set_point(driver_ptr d, std::string uri, json_view control, double wanted) {
  const auto source = control["DataSourceUri"].text();
  if (source) {
    const std::string body = json_object({{"SetPoint", format_number(wanted)}});
    co_return co_await patch(d->device, plain_uri(*source), body, priority::command);
  }
  const std::string inner = json_object({{"SetPoint", format_number(wanted)}});
  const std::string body = json_object({{"ValvePositionControlPercent", inner}});
  co_return co_await patch(d->device, uri, body, priority::command);
}

}  // namespace

task<absl::StatusOr<valve_facts>> read_valve(driver_ptr d, std::string connector) {
  const absl::StatusOr<fetched> body = co_await fetch_connector(d, connector);
  if (!body.ok()) co_return body.status();
  const json_view view = body->body();
  const status_words status = decode_status(view);
  valve_facts facts;
  facts.state = status.state;
  facts.health = status.health;
  // Disabled is what a closed connector says of itself; what is absent or broken says nothing of its stem.
  const bool speaks = status.state.empty() || status.works() || status.state == "Disabled";
  if (speaks) {
    facts.position_percent = percent(view["ValvePositionPercent"]);
    facts.flow_lpm = decode_excerpt(view["FlowLitersPerMinute"]);
    facts.dp_kpa = decode_excerpt(view["DeltaPressurekPa"]);
  }
  co_return facts;
}

task<absl::Status> write_valve(driver_ptr d, std::string connector, double wanted) {
  const absl::StatusOr<fetched> body = co_await fetch_connector(d, connector);
  if (!body.ok()) co_return body.status();
  const json_view control = body->body()["ValvePositionControlPercent"];
  if (!control.missing()) co_return co_await write_set_point(d, body->uri, control, wanted);
  const action_facts action = decode_action(body->body(), "CoolantConnector.ValveControl", "ValveState");
  const std::string what = fmt::format("{} on {}", body->uri, d->device->address());
  if (!action.target) {
    co_return make_fault(fault::CONFIG_READ_ONLY,
                         what + " offers neither a set-point nor CoolantConnector.ValveControl");
  }
  if (wanted > 0.0 && wanted < 100.0) {
    co_return make_fault(
        fault::CONFIG_READ_ONLY,
        fmt::format("{} is open or closed; it cannot be put to {} %", what, format_number(wanted)));
  }
  const std::string word = wanted > 0.0 ? "Open" : "Closed";
  if (!action.values.empty() &&
      std::find(action.values.begin(), action.values.end(), word) == action.values.end()) {
    co_return make_fault(fault::CONFIG_READ_ONLY,
                         fmt::format("{} offers [{}], not {}", what, fmt::join(action.values, ", "), word));
  }
  const std::string order =
      json_object({{"ValveState", json_quote(word)}, {"ValveStateReason", json_quote("Normal")}});
  const response answer = co_await post(d->device, *action.target, order, priority::command);
  co_return refused(d, *action.target, answer);
}

}  // namespace busbar::devices::redfish
