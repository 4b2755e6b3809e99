// BIOS attributes by their names, and the device attributes of the baseline by dotted names.
#include <fmt/format.h>

#include <functional>
#include <set>

#include "actors/core/errors.hpp"
#include "actors/devices/redfish/driver.hpp"

namespace busbar::devices::redfish {

using core::fault;
using core::make_fault;

namespace {

struct bios_read {
  absl::Status status;
  fetched now;
  fetched pending;  // document empty: no Settings object
};

task<bios_read> fetch_bios(driver_ptr d) {
  bios_read bios;
  const absl::StatusOr<power_place> place = co_await find_power(d, priority::command);
  if (!place.ok()) {
    bios.status = place.status();
    co_return bios;
  }
  if (place->bios.empty()) {
    bios.status = make_fault(fault::CONFIG_READ_ONLY,
                             fmt::format("{} on {} has no Bios; its attributes cannot be read or set",
                                         place->uri, d->device->address()),
                             "a Bios resource", "none");
    co_return bios;
  }
  bios.now = co_await fetch(d->device, place->bios, priority::command);
  bios.status = bios.now.status;
  if (!bios.status.ok()) co_return bios;
  const auto settings = bios.now.body()["@Redfish.Settings"]["SettingsObject"].link();
  if (!settings) co_return bios;
  bios.pending = co_await fetch(d->device, *settings, priority::command);
  if (bios.pending.device_failed()) bios.status = bios.pending.status;
  co_return bios;
}

// A change that the device rejects by name of the attribute.
absl::Status as_config_fault(const absl::Status& status, const std::string& what, const std::string& wanted,
                             const std::string& now) {
  const std::string text(status.message());
  for (const char* word :
       {"PropertyNotWritable", "PropertyUnknown", "PropertyReadOnly", "PropertyValueNotInList",
        "PropertyValueTypeError", "PropertyValueOutOfRange", "PropertyValueFormatError"}) {
    if (text.find(word) != std::string::npos)
      return make_fault(fault::CONFIG_READ_ONLY, what + " was refused: " + text, wanted, now);
  }
  return status;
}

}  // namespace

task<absl::StatusOr<attribute_map>> read_bios(driver_ptr d, std::vector<std::string> names) {
  const bios_read bios = co_await fetch_bios(d);
  if (!bios.status.ok()) co_return bios.status;
  attribute_map all;
  for (const std::string& name : names) {
    attribute_facts facts;
    facts.value = bios.now.body()["Attributes"][name].canonical();
    const auto later = bios.pending.body()["Attributes"][name].canonical();
    if (later && later != facts.value) facts.pending = later;
    all.emplace(name, std::move(facts));
  }
  co_return all;
}

task<absl::Status> write_bios(driver_ptr d, value_map values) {
  const bios_read bios = co_await fetch_bios(d);
  if (!bios.status.ok()) co_return bios.status;
  const json_view now = bios.now.body()["Attributes"];
  std::vector<std::pair<std::string, std::string>> changes;
  std::string wanted, present;
  for (const auto& [name, value] : values) {
    const std::string what = fmt::format("BIOS attribute {} = {} on {}", name, value, d->device->address());
    if (now[name].missing())
      co_return make_fault(fault::CONFIG_READ_ONLY, what + ": the device has no such attribute", value,
                           "no such attribute");
    const auto json = json_like(now[name], value);
    if (!json)
      co_return make_fault(fault::CONFIG_READ_ONLY,
                           what + ": the attribute is of another type: " + now[name].raw(), value,
                           now[name].raw());
    wanted += fmt::format("{}{} = {}", wanted.empty() ? "" : ", ", name, value);
    present += fmt::format("{}{} = {}", present.empty() ? "" : ", ", name, now[name].raw());
    changes.emplace_back(name, *json);
  }
  if (changes.empty()) co_return absl::OkStatus();
  const std::string target = bios.pending.uri.empty() ? bios.now.uri : bios.pending.uri;
  const std::string body = json_object({{"Attributes", json_object(changes)}});
  const absl::Status changed = co_await patch(d->device, target, body, priority::command);
  co_return as_config_fault(changed, fmt::format("BIOS change on {}", d->device->address()), wanted, present);
}

namespace {

// Where one device attribute lives: the objects that hold it, and its place in each.
struct attribute_place {
  std::vector<std::string> uris;
  std::vector<std::string> path;  // keys from the body to the value
  absl::Status status;
};

task<attribute_place> place_reactions(driver_ptr d) {
  attribute_place place;
  place.path = {"CriticalReactionType"};
  const absl::StatusOr<std::vector<detector_facts>> read = co_await read_detectors(d);
  place.status = read.status();
  if (!read.ok() || !d->detectors) co_return place;
  for (const detector_place& one : *d->detectors) place.uris.push_back(one.uri);
  co_return place;
}

task<attribute_place> place_power_limits(driver_ptr d) {
  attribute_place place;
  place.path = {"PowerLimitWatts", "SetPoint"};
  const processors_read processors = co_await read_processors(d, priority::command);
  place.status = processors.failed;
  for (const fetched& one : processors.bodies) {
    if (one.body()["ProcessorType"].text() != "GPU") continue;
    if (const auto uri = one.body()["EnvironmentMetrics"].link()) place.uris.push_back(*uri);
  }
  if (place.status.ok() && !processors.complete) {
    place.status = make_fault(fault::INVENTORY_INCOMPLETE, processors.incomplete_why);
  }
  co_return place;
}

task<attribute_place> place_session_timeout(driver_ptr d) {
  attribute_place place;
  place.path = {"SessionTimeout"};
  const absl::StatusOr<std::string> uri = co_await root_link(d, "SessionService");
  place.status = uri.status();
  if (uri.ok()) place.uris.push_back(*uri);
  co_return place;
}

task<attribute_place> find_attribute(driver_ptr d, std::string name) {
  attribute_place place;
  if (name == "leak_reaction.critical") {
    place = co_await place_reactions(d);
  } else if (name == "gpu_power_limit_w") {
    place = co_await place_power_limits(d);
  } else if (name == "session_timeout_s") {
    place = co_await place_session_timeout(d);
  }
  co_return place;
}

json_view at(json_view body, const std::vector<std::string>& path) {
  for (const std::string& key : path) body = body[key];
  return body;
}

std::string wrap(const std::vector<std::string>& path, std::string value) {
  for (auto key = path.rbegin(); key != path.rend(); ++key) value = json_object({{*key, value}});
  return value;
}

}  // namespace

task<absl::StatusOr<attribute_map>> read_device(driver_ptr d, std::vector<std::string> names) {
  attribute_map all;
  for (const std::string& name : names) {
    attribute_facts facts;
    const attribute_place place = co_await find_attribute(d, name);
    if (!place.status.ok()) co_return place.status;
    const std::vector<fetched> bodies = co_await fetch_all(d->device, place.uris, priority::command);
    std::set<std::string> seen;
    bool some_say_nothing = false;
    for (const fetched& body : bodies) {
      if (body.device_failed()) co_return body.status;
      const auto value = at(body.body(), place.path).canonical();
      if (value) seen.insert(*value);
      // The aggregate of other detectors has no reaction of its own.
      const bool aggregate = last_part(body.uri).find("aggr") != std::string::npos;
      if (!value && !aggregate) some_say_nothing = true;
    }
    for (const std::string& value : seen) facts.value = facts.value ? *facts.value + ", " + value : value;
    if (facts.value && some_say_nothing) facts.value = *facts.value + ", not told";
    all.emplace(name, std::move(facts));
  }
  co_return all;
}

task<absl::Status> write_device(driver_ptr d, value_map values) {
  for (const auto& [name, value] : values) {
    const std::string what = fmt::format("device attribute {} = {} on {}", name, value, d->device->address());
    const attribute_place place = co_await find_attribute(d, name);
    if (!place.status.ok()) co_return place.status;
    const std::vector<fetched> bodies = co_await fetch_all(d->device, place.uris, priority::command);
    bool any = false;
    for (const fetched& body : bodies) {
      if (!body.ok()) co_return body.status;
      const json_view now = at(body.body(), place.path);
      if (now.missing()) continue;
      any = true;
      if (now.canonical() == value) continue;
      const auto json = json_like(now, value);
      if (!json)
        co_return make_fault(fault::CONFIG_READ_ONLY,
                             what + ": the attribute is of another type: " + now.raw(), value, now.raw());
      const std::string change = wrap(place.path, *json);
      const absl::Status changed = co_await patch(d->device, body.uri, change, priority::command);
      if (!changed.ok()) co_return as_config_fault(changed, what, value, now.raw());
    }
    if (!any)
      co_return make_fault(fault::CONFIG_READ_ONLY, what + ": the device has no such attribute", value,
                           "no such attribute");
  }
  co_return absl::OkStatus();
}

}  // namespace busbar::devices::redfish
