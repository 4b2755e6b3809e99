// Power, boot source and the manager's restart.
#include <fmt/format.h>

#include <algorithm>

#include "actors/core/errors.hpp"
#include "actors/devices/redfish/driver.hpp"

namespace busbar::devices::redfish {

using core::fault;
using core::make_fault;

namespace {

std::vector<std::string> links_in(json_view list) {
  std::vector<std::string> uris;
  for (const json_view& item : list.items()) {
    if (const auto uri = item.link()) uris.push_back(*uri);
  }
  return uris;
}

// A shelf and a rack controller have no host: what they are is a chassis.
bool is_chassis(MemberKind kind) {
  return kind == journal::POWER_SHELF || kind == journal::RACK_CONTROLLER;
}

// The resource that can be reset: a tray shows the host and its baseboard as two systems, only the host takes
// a reset; a shelf shows itself as two chassis.
const fetched* choose(MemberKind kind, const std::vector<fetched>& bodies) {
  const bool shelf = is_chassis(kind);
  const fetched* best = nullptr;
  int best_points = -1;
  for (const fetched& one : bodies) {
    if (!one.ok()) continue;
    int points = 0;
    if (decode_action(one.body(), shelf ? "Chassis.Reset" : "ComputerSystem.Reset", "ResetType").target)
      points += 2;
    if (shelf && one.body()["ChassisType"].text() == "Shelf") points += 4;
    if (points > best_points) {
      best = &one;
      best_points = points;
    }
  }
  return best;
}

}  // namespace

task<absl::StatusOr<power_place>> find_power(driver_ptr d, priority urgency) {
  if (d->power) co_return *d->power;
  const bool shelf = is_chassis(d->kind);
  const root_members all = co_await members_of_root(d, shelf ? "Chassis" : "Systems", urgency);
  if (!all.list.ok()) co_return all.list.status;
  const fetched* const chosen = choose(d->kind, all.bodies);
  if (chosen == nullptr) {
    for (const fetched& one : all.bodies) {
      if (!one.ok()) co_return one.status;
    }
    co_return make_fault(fault::BMC_BAD_DATA, fmt::format("{} on {} lists nothing that has power",
                                                          all.list.uri, d->device->address()));
  }
  const json_view body = chosen->body();
  const action_facts action =
      decode_action(body, shelf ? "Chassis.Reset" : "ComputerSystem.Reset", "ResetType");
  power_place place;
  place.uri = chosen->uri;
  place.target = action.target.value_or("");
  place.offered = action.values;
  place.settings = body["@Redfish.Settings"]["SettingsObject"].link().value_or(chosen->uri);
  place.bios = body["Bios"].link().value_or("");
  place.managers = links_in(body["Links"]["ManagedBy"]);
  if (place.offered.empty() && action.info_uri) {
    const fetched info = co_await fetch(d->device, *action.info_uri, urgency);
    if (info.device_failed()) co_return info.status;
    if (info.ok()) place.offered = decode_action_info(info.body(), "ResetType");
  }
  d->power = place;
  co_return place;
}

task<absl::StatusOr<power_facts>> read_power(driver_ptr d) {
  const absl::StatusOr<power_place> place = co_await find_power(d, priority::safety);
  if (!place.ok()) co_return place.status();
  const fetched main = co_await fetch(d->device, place->uri, priority::safety);
  if (main.not_found()) d->forget_places();
  if (!main.ok()) co_return main.status;
  power_facts facts;
  facts.state = decode_power_state(main.body());
  facts.offered = place->offered;
  facts.boot_progress = main.body()["BootProgress"]["LastState"].text().value_or("");
  co_return facts;
}

namespace {

bool is_already(reset_type type, journal::PowerState state) {
  switch (type) {
    case reset_type::on:
      return state == journal::POWER_ON || state == journal::POWERING_ON;
    case reset_type::force_off:
    case reset_type::graceful_shutdown:
      return state == journal::POWER_OFF || state == journal::POWERING_OFF;
    case reset_type::force_restart:
    case reset_type::power_cycle:
      return false;
  }
  return false;
}

std::string joined(const std::vector<std::string>& words) {
  std::string all;
  for (const std::string& word : words) all += (all.empty() ? "" : ", ") + word;
  return all.empty() ? "none" : all;
}

}  // namespace

task<absl::Status> reset(driver_ptr d, reset_type type) {
  const absl::Status answer = co_await reset_if(d, type, act_check());
  co_return answer;
}

task<absl::Status> reset_if(driver_ptr d, reset_type type, act_check allowed) {
  const bool off = type == reset_type::force_off || type == reset_type::graceful_shutdown;
  const priority urgency = off ? priority::safety : priority::command;
  const absl::StatusOr<power_place> place = co_await find_power(d, urgency);
  if (!place.ok()) co_return place.status();
  const std::string word(redfish_name(type));
  const bool offered = place->offered.empty() ||
                       std::find(place->offered.begin(), place->offered.end(), word) != place->offered.end();
  if (place->target.empty() || !offered) {
    co_return make_fault(fault::POWER_RESET_NOT_OFFERED,
                         fmt::format("{} on {} does not offer reset type {}; it offers: {}", place->uri,
                                     d->device->address(), word, joined(place->offered)));
  }
  const std::string body = json_object({{"ResetType", json_quote(word)}});
  request wanted;
  wanted.method = http_method::post;
  wanted.uri = place->target;
  wanted.urgency = urgency;
  wanted.body = body;
  wanted.still_allowed = allowed;
  const response answer = co_await d->device->send(wanted);
  if (answer.good()) co_return absl::OkStatus();
  if (is_withheld(answer.status)) co_return answer.status;
  const absl::Status refused = fault_of_answer(*d->device, wanted, answer);
  if (!answer.status.ok() || (answer.http != 400 && answer.http != 409)) co_return refused;
  // A refusal because it is so already is success, if the state read says so.
  const absl::StatusOr<power_facts> seen = co_await read_power(d);
  if (seen.ok() && is_already(type, seen->state)) co_return absl::OkStatus();
  co_return make_fault(
      fault::POWER_RESET_NOT_OFFERED,
      fmt::format("reset type {} was refused and the state read is another: {}", word, refused.ToString()));
}

task<absl::Status> set_boot_once(driver_ptr d, boot_facts wanted) {
  const absl::StatusOr<power_place> place = co_await find_power(d, priority::command);
  if (!place.ok()) co_return place.status();
  std::vector<std::pair<std::string, std::string>> boot;
  boot.emplace_back("BootSourceOverrideEnabled", json_quote(wanted.enabled));
  boot.emplace_back("BootSourceOverrideTarget", json_quote(wanted.target));
  if (!wanted.uri.empty()) boot.emplace_back("HttpBootUri", json_quote(wanted.uri));
  const std::string body = json_object({{"Boot", json_object(boot)}});
  const absl::Status changed = co_await patch(d->device, place->settings, body, priority::command);
  co_return changed;
}

task<absl::StatusOr<boot_facts>> read_boot_once(driver_ptr d) {
  const absl::StatusOr<power_place> place = co_await find_power(d, priority::command);
  if (!place.ok()) co_return place.status();
  const fetched settings = co_await fetch(d->device, place->settings, priority::command);
  if (settings.not_found()) d->forget_places();
  if (!settings.ok()) co_return settings.status;
  co_return decode_boot(settings.body());
}

task<absl::Status> reset_manager(driver_ptr d) {
  const absl::StatusOr<power_place> place = co_await find_power(d, priority::command);
  if (!place.ok()) co_return place.status();
  const root_members managers = co_await members_of_root(d, "Managers", priority::command);
  if (!managers.list.ok()) co_return managers.list.status;
  std::string target;
  for (const fetched& one : managers.bodies) {
    if (!one.ok()) continue;
    const action_facts action = decode_action(one.body(), "Manager.Reset", "ResetType");
    if (!action.target) continue;
    const bool named =
        std::find(place->managers.begin(), place->managers.end(), one.uri) != place->managers.end();
    if (target.empty() || named) target = *action.target;
    if (named) break;
  }
  if (target.empty()) {
    co_return make_fault(fault::POWER_RESET_NOT_OFFERED,
                         fmt::format("no manager of {} offers a reset", d->device->address()));
  }
  const std::string body = json_object({{"ResetType", json_quote("GracefulRestart")}});
  const response answer = co_await post(d->device, target, body, priority::command);
  if (answer.good()) {
    d->device->session_is_gone();
    co_return absl::OkStatus();
  }
  request named;
  named.method = http_method::post;
  named.uri = target;
  co_return fault_of_answer(*d->device, named, answer);
}

}  // namespace busbar::devices::redfish
